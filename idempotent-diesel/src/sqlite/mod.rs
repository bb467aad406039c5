//! A [`Store`](idempotent_core::store::Store) in a SQLite file.
//!
//! Every write goes through one thread that owns one connection. What queues while it commits shares the next commit, so
//! that a busy agent pays for one sync to the disk where many requests finish. Reads have threads and connections of their
//! own and never wait for it. Several processes may use one file.
//!
//! # The agent's own tables
//!
//! They may be in the same file. Three ways to write to them, none of which meets a lock:
//!
//! - **effects** of an idempotent handler: they commit with its answer, or not at all;
//! - [`SqliteStore::write`]: on the writer thread, in the next shared commit, durable when it returns;
//! - a connection of your own, from [`SqliteStore::connect`] or set up by [`configure`]. The store holds no transaction
//!   while a handler runs, so such a connection waits for the writer's short transactions only, as the writer does for it.
//!   Keep its transactions short: nothing else is written meanwhile.
//!
//! An effect or write must leave transactions as it found them; `connection.transaction(…)` inside is fine (a savepoint). One
//! that executes `COMMIT` or `ROLLBACK` as SQL fails, and only it.

mod builder;
mod connection;
mod headers;
mod jobs;
mod migrations;
mod queue;
mod readers;
mod rows;
mod schema;
mod statements;
mod stats;
mod store;
mod touches;
mod transaction;
mod writer;

pub use self::{
    builder::SqliteStoreBuilder,
    connection::{OpenError, configure},
    stats::SqliteStats,
    store::SqliteStore,
};
pub(crate) use store::Shared;

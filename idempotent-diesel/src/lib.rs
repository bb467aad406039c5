//! Diesel-backed stores for idempotent.
//!
//! [`SqliteStore`] keeps answers in a SQLite file: its own, or the one that the agent's tables are in.

#[cfg(feature = "sqlite")]
pub mod sqlite;

#[cfg(feature = "sqlite")]
pub use sqlite::SqliteStore;

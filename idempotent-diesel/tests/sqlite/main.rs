//! `SqliteStore`, by its promises.

mod contract;
mod support;

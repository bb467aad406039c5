//! `SqliteStore`, by its promises.

mod contract;
mod corruption;
mod durability;
mod effects;
mod files;
mod group_commit;
mod own_queries;
mod processes;
mod retention;
mod sharing;
mod support;
mod trouble;

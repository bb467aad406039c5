//! For tests: the contract suite that every [`Store`](crate::store::Store) passes, and a store in memory that passes it.
//!
//! Both come with the cargo feature `testing`.

pub mod contract;
mod memory;

pub use memory::{MemoryConnection, MemoryStore};

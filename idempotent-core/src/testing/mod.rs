//! For tests: the contract suite that every [`Store`](crate::store::Store) passes, a store in memory that passes it, and one
//! that fails on demand.
//!
//! All come with the cargo feature `testing`.

pub mod contract;
mod faulty;
mod memory;

pub use faulty::{Fault, Faults, FaultyStore, StoreCall};
pub use memory::{MemoryConnection, MemoryStore};

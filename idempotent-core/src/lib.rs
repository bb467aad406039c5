//! The gate of idempotent: request hash, JSON-RPC, single flight, leases and replay over any store.

pub mod json;
pub mod request_hash;

pub use request_hash::RequestHash;

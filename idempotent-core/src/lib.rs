//! The gate of idempotent: request hash, JSON-RPC, single flight, leases and replay over any store.

//! Diesel-backed stores for idempotent.

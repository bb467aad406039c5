//! The #[idempotent] attribute macro.

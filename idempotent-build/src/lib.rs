//! The #[idempotent] annotation as an ordinary library, and the build.rs helper that makes the AgentCard from it.

pub mod card;

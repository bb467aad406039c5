//! The `#[idempotent]` annotation as an ordinary library, and the build.rs helper that makes the AgentCard from it.
//!
//! A proc-macro crate can export nothing but macros, so what the macro and a build script share lives here: the
//! annotation's grammar, its model and its checks, in [`syntax`]; the card and what proves it, in [`card`].

pub mod card;
pub mod syntax;

pub use card::{agent_card, fragment};

//! The AgentCard, made in a build script from a base card and the crate's annotations.
#![allow(dead_code)]

mod base;
mod cfg;
mod declaration;
mod json;
mod walk;

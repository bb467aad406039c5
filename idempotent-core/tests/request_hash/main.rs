//! The request hash, against vectors, a reference reader and serde_jcs.
//!
//! Nothing here depends on how serde_json is built; `tests/serde-json-features` runs the same suite with its features on.

#![allow(unreachable_pub)]

mod allocations;
mod corpus;
mod differential;
mod envelope;
mod generator;
mod reference;
mod typed;
mod vectors;
mod violations;

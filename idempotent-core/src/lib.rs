//! The gate of [`idempotent`](https://docs.rs/idempotent): request hash, JSON-RPC, single flight, leases and replay over any
//! store.
//!
//! Use the facade crate `idempotent`, which adds the attribute macro and the stores. This crate is for those who write a
//! [store](store::Store) of their own.

mod annotated;
pub mod card;
pub mod client;
mod clock;
mod config;
mod context;
mod effects;
mod engine;
mod error;
mod expansion;
pub mod extension;
mod gate;
mod handler;
pub mod json;
mod message_id;
mod metrics;
mod recording;
pub mod request_hash;
mod response;
pub mod rpc;
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;

pub use clock::{Clock, ManualClock, SystemClock};
pub use config::{Config, ConfigError, MAX_ENTRIES_VARIABLE, ReplayId, ReplayedHeader, TTL_VARIABLE};
pub use context::IdempotencyContext;
pub use effects::Effects;
pub use engine::{Idempotency, SuppliesIdempotency};
pub use extension::Dialect;
pub use message_id::{Key, MalformedMessageId, MessageId, Scope, ToScope};
pub use metrics::{Metrics, Outcome};
pub use request_hash::RequestHash;

/// What generated code names; no part of the API.
#[doc(hidden)]
pub mod __private {
    pub use axum::{
        extract::{FromRequest, FromRequestParts},
        response::Response,
    };

    pub use crate::{
        annotated::{AnnotatedBy, MethodKey},
        card::{Card, CardMethod, Places as CardPlaces},
        engine::SuppliesIdempotency,
        expansion::*,
        handler::{Annotation, Call, NoBody, Operation, global_scope, respond, scope},
        message_id::Scope,
        rpc::{Reply, rpc_method},
        store::OnTakeover,
    };
}

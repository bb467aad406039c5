#![doc = include_str!("../README.md")]
//!
//! ## Where to look
//!
//! - [`macro@idempotent`]: the annotation and its options.
//! - [`JsonRpcRouter`], [`Params`], [`RpcError`], [`RpcStream`]: a handler's surroundings; [`IntoRpcResponse`] lists what it
//!   may return.
//! - [`Effects`], [`IdempotencyContext`], [`Dialect`]: what it may ask for.
//! - [`Idempotency`] and [`Config`]: the engine and its settings.
//! - [`agent_card!`] and [`Card`]: the AgentCard, made at build time by `idempotent_build`.
//! - [`client::RetryableRequest`]: the other side, a request that can be sent again.
//! - [`store::Store`]: the contract of a store of your own. [`json`]: the canonical form and the hash.

mod agent_card;
mod rpc_methods;

pub use idempotent_core::{
    Clock, Config, ConfigError, Dialect, Effects, IdempotencyContext, Key, MAX_ENTRIES_VARIABLE, MalformedMessageId,
    ManualClock, MessageId, Metrics, Outcome, ReplayId, ReplayedHeader, RequestHash, Scope, SuppliesIdempotency,
    SystemClock, TTL_VARIABLE, ToScope,
    card::{self, Card, CardMethod, RuntimeParams},
    client, extension, json, request_hash,
    rpc::{self, IntoRpcResponse, JsonRpcRouter, Params, RpcError, RpcResult, RpcStream},
    store,
};
#[cfg(feature = "sqlite")]
pub use idempotent_diesel::SqliteStore;
pub use idempotent_macros::idempotent;

#[cfg(not(feature = "sqlite"))]
pub use idempotent_core::Idempotency;
/// The engine that a router's state supplies to its annotated handlers; on SQLite unless another connection type is named.
#[cfg(feature = "sqlite")]
pub type Idempotency<C = <SqliteStore as store::Store>::Connection> = idempotent_core::Idempotency<C>;

/// What generated code names; no part of the API.
#[doc(hidden)]
pub mod __private {
    pub use idempotent_core::__private::*;
    pub use idempotent_macros::{agent_card, rpc_methods};
}

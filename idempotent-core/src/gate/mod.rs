//! The gate between a request and its handler: one state machine over a [`Store`](crate::store::Store).
//!
//! ```text
//! headers ── activation? ── key shape ── scope ── hash ──▶ inspect / claim
//!                                                  ├─ completed, same hash ─▶ replay
//!                                                  ├─ other hash/operation ─▶ 422 (completed or in flight)
//!                                                  ├─ in flight here ───────▶ follow its flight
//!                                                  ├─ in flight elsewhere ──▶ wait, then look again
//!                                                  └─ won ─▶ run in a task of its own, record, complete
//! ```
//!
//! - [`serve`](serve::serve): what one request does, in the task of its connection. May be dropped at any await.
//! - [`Flight`](flight::Flight): one key's execution in this process, which any number of requests follow.
//! - [`drive`](drive::drive): claims, runs, records and completes, in a task that no connection owns.

pub(crate) mod claim;
pub(crate) mod drive;
pub(crate) mod flight;
pub(crate) mod heartbeat;
pub(crate) mod patience;
pub(crate) mod replay_id;
pub(crate) mod serve;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use axum::response::Response;
use futures_core::future::BoxFuture;

use crate::{
    context::IdempotencyContext,
    effects::Effects,
    extension::{Activation, Dialect},
    message_id::Key,
    request_hash::RequestHash,
    rpc::{json_text::JsonText, reply::Failed},
    store::OnTakeover,
};

/// What one request asks of the gate.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) key: Key,
    pub(crate) request_hash: RequestHash,
    /// The operation's 0.3 method name.
    pub(crate) operation: &'static str,
    pub(crate) on_takeover: OnTakeover,
    /// The key as errors show it.
    pub(crate) shown: JsonText,
    pub(crate) caller: Caller,
}

impl Ask {
    /// Whether this is what a claim or an entry was made for.
    pub(crate) fn is_for(&self, request_hash: RequestHash, operation: &str) -> bool {
        self.request_hash == request_hash && self.operation == operation
    }
}

/// Whom an answer goes to.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// The request's JSON-RPC id.
    pub(crate) id: JsonText,
    pub(crate) dialect: Dialect,
    pub(crate) activation: Activation,
}

/// The operation, not yet begun.
pub(crate) struct Work<C> {
    /// What it is counted as.
    pub(crate) method: &'static str,
    /// Runs the body extractors and the handler.
    pub(crate) run: BoxFuture<'static, Answer>,
    pub(crate) context: IdempotencyContext,
    pub(crate) effects: Effects<C>,
    pub(crate) extracting: Extracting,
}

/// Whether an extractor runs under the claim: a panic then is not the operation's, which has not begun.
#[derive(Debug, Clone, Default)]
pub(crate) struct Extracting(Arc<AtomicBool>);

impl Extracting {
    pub(crate) fn set(&self, extracting: bool) {
        self.0.store(extracting, Ordering::Release);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// What came of running a handler.
#[derive(Debug)]
pub(crate) struct Answer(pub(crate) Ran);

#[derive(Debug)]
pub(crate) enum Ran {
    /// The handler's body has begun, and this is its answer.
    Answered { response: Response, failed: Failed },
    /// An extractor turned the request down before that.
    Refused(Response),
}

//! [`Effects`]: writes of a handler that commit together with its stored answer.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use axum::extract::FromRequestParts;
use http::request::Parts;

use crate::{
    engine::SuppliesIdempotency,
    rpc::{RpcError, RpcRejection, call},
    store::{Effect, EffectError},
};

/// Collects writes that commit in the transaction that stores the operation's answer, or not at all.
///
/// `C` is the connection type of the engine's store; another one does not compile. A handler that returns `Err` or panics, a
/// stream that ends with an error, and a raw response with status 400 or above are stored without effects. So is an operation
/// one of whose effects fails: its answer is then -32603 with HTTP 500.
///
/// An effect is a `Fn`: after a failed commit it runs again, in a new transaction.
///
/// While the store cannot be reached, an operation that ran is answered all the same; its answer and its effects are stored once
/// they can be. An effect that fails only then cannot change the answer any more: the answer is stored without effects, and the
/// failure is logged.
///
/// ```
/// # type Connection = Vec<String>;
/// use idempotent_core::{Effects, rpc::RpcError};
///
/// async fn charge(effects: Effects<Connection>) -> Result<(), RpcError> {
///     effects.push(|ledger: &mut Connection| Ok(ledger.push("charged".into())));
///     Ok(())
/// }
/// ```
pub struct Effects<C>(Arc<Mutex<Collected<C>>>);

enum Collected<C> {
    Open(Vec<Effect<C>>),
    Taken,
}

impl<C> Effects<C> {
    pub(crate) fn collect() -> Self {
        Self(Arc::new(Mutex::new(Collected::Open(Vec::new()))))
    }

    /// Adds a write. They run in the order in which they were pushed.
    ///
    /// Pushing after the operation's answer is complete (from a task that outlives the handler) is logged and does nothing.
    pub fn push<F>(&self, effect: F)
    where
        F: Fn(&mut C) -> Result<(), EffectError> + Send + Sync + 'static,
    {
        match &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Collected::Open(effects) => effects.push(Arc::new(effect)),
            Collected::Taken => {
                tracing::error!("an effect was pushed after its operation had been answered; it is dropped")
            }
        }
    }

    /// Ends the collection.
    pub(crate) fn take(&self) -> Vec<Effect<C>> {
        match std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), Collected::Taken) {
            Collected::Open(effects) => effects,
            Collected::Taken => Vec::new(),
        }
    }
}

impl<C> Clone for Effects<C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<C> fmt::Debug for Effects<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Effects").finish_non_exhaustive()
    }
}

impl<S, C> FromRequestParts<S> for Effects<C>
where
    S: SuppliesIdempotency<C> + Send + Sync,
    C: 'static,
{
    type Rejection = RpcRejection;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        parts.extensions.get::<Self>().cloned().ok_or_else(|| outside_annotated_handler(parts, "Effects"))
    }
}

/// The rejection of an extractor that only an annotated handler can use.
pub(crate) fn outside_annotated_handler(parts: &Parts, extractor: &str) -> RpcRejection {
    tracing::error!("`{extractor}` was extracted by a handler that is not annotated with #[idempotent]");
    let id = call::of(parts).map_or(crate::rpc::json_text::JsonText::NULL, |call| call.id());
    RpcRejection::error(RpcError::internal("Internal error"), id)
}

//! [`IdempotencyContext`]: what a handler may know about the execution it is.

use std::sync::{Arc, OnceLock};

use axum::extract::FromRequestParts;
use http::request::Parts;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::{
    effects::outside_annotated_handler,
    message_id::{MessageId, Scope},
    request_hash::RequestHash,
    rpc::RpcRejection,
    store::Claim,
};

/// The execution that a handler is: its key, which attempt it is, and keys for what it calls in turn.
///
/// An extractor for annotated handlers.
///
/// ```
/// use idempotent_core::{IdempotencyContext, rpc::RpcError};
///
/// async fn pay(context: IdempotencyContext) -> Result<String, RpcError> {
///     // The same for every retry and takeover of this request, so Stripe charges once.
///     Ok(context.downstream_key("stripe", "charge"))
/// }
/// ```
#[derive(Debug, Clone)]
pub struct IdempotencyContext(Arc<OnceLock<Execution>>);

#[derive(Debug)]
struct Execution {
    scope: Scope,
    message_id: Option<MessageId>,
    request_hash: Option<RequestHash>,
    attempt: u32,
    fencing_token: Option<i64>,
    /// What downstream keys of an execution without a key are derived from.
    nonce: Uuid,
}

impl IdempotencyContext {
    pub(crate) fn unset() -> Self {
        Self(Arc::new(OnceLock::new()))
    }

    /// The context of an execution under a claim. A context is set once; later calls do nothing.
    pub(crate) fn set(&self, claim: &Claim, request_hash: RequestHash) {
        let _ = self.0.set(Execution {
            scope: claim.key.scope.clone(),
            message_id: Some(claim.key.message_id),
            request_hash: Some(request_hash),
            attempt: claim.attempt,
            fencing_token: Some(claim.token.0),
            nonce: Uuid::nil(),
        });
    }

    fn execution(&self) -> &Execution {
        self.0.get_or_init(|| Execution {
            scope: Scope::global(),
            message_id: None,
            request_hash: None,
            attempt: 1,
            fencing_token: None,
            nonce: Uuid::now_v7(),
        })
    }

    /// The request's `messageId`; `None` when the request did not activate the extension, and therefore runs without a key.
    pub fn message_id(&self) -> Option<MessageId> {
        self.execution().message_id
    }

    /// The hash of the request's `params`; `None` without a key.
    pub fn request_hash(&self) -> Option<RequestHash> {
        self.execution().request_hash
    }

    /// 1, and one more each time that a request took the operation over from an owner that died.
    pub fn attempt(&self) -> u32 {
        self.execution().attempt
    }

    /// A number that is larger for every later claim. Whoever guards a resource can refuse a smaller one than it has seen.
    /// `None` without a key.
    pub fn fencing_token(&self) -> Option<i64> {
        self.execution().fencing_token
    }

    /// An idempotency key for a call that this operation makes: a UUID that is the same for every retry and takeover of this
    /// request, and another for every other scope, `messageId`, service or name.
    ///
    /// Its form is a UUIDv8 (RFC 9562 section 5.8), so another A2A agent takes it as a `messageId`. Without a key it is the same
    /// within this execution only.
    pub fn downstream_key(&self, service: &str, name: &str) -> String {
        let execution = self.execution();
        let id = execution.message_id.map_or(execution.nonce, |id| *id.as_uuid());
        let mut hasher = Sha256::new();
        hasher.update(b"idempotent/downstream-key/v1");
        hasher.update(id.as_bytes());
        for part in [execution.scope.as_stored(), service, name] {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part.as_bytes());
        }
        let digest = hasher.finalize();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string()
    }
}

impl<S: Send + Sync> FromRequestParts<S> for IdempotencyContext {
    type Rejection = RpcRejection;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let context = parts.extensions.get::<Self>().cloned();
        context.ok_or_else(|| outside_annotated_handler(parts, "IdempotencyContext"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{message_id::Key, store::ClaimToken};

    fn context(scope: &str, id: &str, attempt: u32) -> IdempotencyContext {
        let context = IdempotencyContext::unset();
        let key = Key { scope: Scope::of(scope), message_id: id.parse().expect("a UUID") };
        context.set(&Claim { key, token: ClaimToken(i64::from(attempt)), attempt }, RequestHash::from_bytes([0; 32]));
        context
    }

    const A: &str = "01983a7e-0000-7000-8000-00000000000a";
    const B: &str = "01983a7e-0000-7000-8000-00000000000b";

    #[test]
    fn a_downstream_key_is_stable_over_attempts_and_differs_in_everything_else() {
        let key = context("alice", A, 1).downstream_key("stripe", "charge");
        assert_eq!(key, context("alice", A, 2).downstream_key("stripe", "charge"));
        assert!(key.parse::<MessageId>().is_ok());
        for other in [
            context("bob", A, 1).downstream_key("stripe", "charge"),
            context("alice", B, 1).downstream_key("stripe", "charge"),
            context("alice", A, 1).downstream_key("stripe", "refund"),
            context("alice", A, 1).downstream_key("stripec", "harge"),
        ] {
            assert_ne!(key, other);
        }
    }

    #[test]
    fn without_a_key_a_downstream_key_holds_within_the_execution() {
        let (one, other) = (IdempotencyContext::unset(), IdempotencyContext::unset());
        assert_eq!(one.downstream_key("a", "b"), one.clone().downstream_key("a", "b"));
        assert_ne!(one.downstream_key("a", "b"), other.downstream_key("a", "b"));
    }
}

//! The promises that a [`Store`] makes, each as a test named after it.
//!
//! A store of your own passes when the tests that [`store_contract!`](crate::store_contract) writes do. They need a
//! [`Harness`]: a fresh store, its clock, and an effect whose outcome can be counted.
//!
//! ```
//! use std::{sync::Arc, time::Duration};
//! use futures_core::future::BoxFuture;
//! use idempotent_core::{
//!     ManualClock,
//!     store::Effect,
//!     testing::{MemoryConnection, MemoryStore, contract::Harness},
//! };
//!
//! struct InMemory {
//!     store: MemoryStore,
//!     clock: ManualClock,
//! }
//!
//! impl Harness for InMemory {
//!     type Store = MemoryStore;
//!
//!     fn store(&self) -> &MemoryStore {
//!         &self.store
//!     }
//!
//!     fn advance(&self, by: Duration) -> BoxFuture<'_, ()> {
//!         self.clock.advance(by);
//!         Box::pin(async {})
//!     }
//!
//!     fn effect(&self, name: &str) -> Effect<MemoryConnection> {
//!         let name = name.to_owned();
//!         Arc::new(move |connection| {
//!             connection.insert(&name);
//!             Ok(())
//!         })
//!     }
//!
//!     fn committed<'a>(&'a self, name: &'a str) -> BoxFuture<'a, u64> {
//!         Box::pin(async move { self.store.rows().iter().filter(|row| *row == name).count() as u64 })
//!     }
//! }
//!
//! async fn fresh() -> InMemory {
//!     let clock = ManualClock::at_seconds(1_700_000_000);
//!     InMemory { store: MemoryStore::new(clock.clone()), clock }
//! }
//!
//! // In a test module: one #[tokio::test] for each promise.
//! idempotent_core::store_contract!(fresh);
//! ```

mod bodies;
mod claims;
mod completion;
mod eviction;
mod expiry;
mod keys;

use std::{borrow::Cow, time::Duration};

use bytes::Bytes;
use futures_core::future::BoxFuture;
use http::{HeaderMap, StatusCode};
use uuid::Uuid;

pub use self::{bodies::*, claims::*, completion::*, eviction::*, expiry::*, keys::*};
use crate::{
    message_id::{Key, MessageId, Scope},
    request_hash::RequestHash,
    store::{
        Claim, ClaimOutcome, ClaimRequest, CompleteOutcome, Completion, Effect, Entry, Occupant, OnTakeover, Store,
        StoredBody, StoredResponse,
    },
};

/// A fresh, empty store under test, with what the suite needs to know about it.
pub trait Harness: Send + Sync + 'static {
    /// The store under test.
    type Store: Store;

    /// The store. Its first retention is the default one.
    fn store(&self) -> &Self::Store;

    /// Moves the clock by which the store judges leases and TTLs. It stands still otherwise.
    fn advance(&self, by: Duration) -> BoxFuture<'_, ()>;

    /// A write that can be told from others by `name`.
    fn effect(&self, name: &str) -> Effect<<Self::Store as Store>::Connection>;

    /// How often the write `name` was committed.
    fn committed<'a>(&'a self, name: &'a str) -> BoxFuture<'a, u64>;
}

/// Writes one `#[tokio::test]` for each promise of [`contract`](crate::testing::contract), in the module where it is called.
///
/// Its argument is the path of an async function without arguments that returns a [`Harness`].
/// Its caller needs tokio with the features `macros` and `rt`.
#[macro_export]
macro_rules! store_contract {
    ($harness:path) => {
        $crate::store_contract!(@each $harness:
            a_vacant_key_is_won_by_exactly_one_of_many
            an_occupied_key_shows_hash_operation_and_lease
            the_same_nonce_answers_with_the_same_claim
            a_lapsed_claim_is_taken_over_with_a_larger_token
            a_lapsed_claim_is_taken_over_by_exactly_one_of_many
            a_renewed_claim_lasts
            a_lapsed_claim_that_nobody_took_over_is_still_current
            a_renewal_of_a_stale_claim_is_refused
            a_released_key_is_vacant
            a_release_of_a_stale_claim_changes_nothing
            tokens_only_grow
            a_dropped_call_leaves_nothing_open
            a_change_is_told_and_no_wait_is_for_ever
            an_answer_comes_back_byte_for_byte
            an_answer_is_stored_once
            a_key_is_never_vacant_between_claim_and_answer
            a_stale_owner_changes_nothing
            a_released_claim_cannot_complete
            effects_commit_with_the_answer_in_order
            a_failed_effect_changes_nothing
            a_panicking_effect_changes_nothing
            effects_without_a_key_commit_all_or_nothing
            one_failed_effect_spoils_nobody_elses_commit
            an_entry_answers_until_its_ttl_has_passed_strictly
            an_expired_entry_is_overwritten
            a_replay_does_not_prolong_an_entry
            an_abandoned_claim_is_refused_until_the_ttl_has_passed
            an_abandoned_claim_can_still_be_completed
            a_renewed_claim_outlives_the_ttl
            a_sweep_removes_what_has_expired
            a_shorter_ttl_holds_at_once
            the_least_recently_used_entry_is_evicted
            a_claim_is_never_evicted
            chunks_are_read_while_they_are_written
            chunks_belong_to_the_current_claim
            chunks_go_with_their_claim
            chunks_go_with_their_entry
            chunks_of_a_body_that_was_not_kept_are_gone
            a_tombstone_remembers_its_size
            an_empty_body_is_a_body
            a_large_body_is_kept
            scopes_share_nothing
            scopes_of_any_text_are_kept_apart
            message_ids_are_compared_as_uuids
        );
    };
    (@each $harness:path: $($promise:ident)*) => {
        $(
            #[tokio::test]
            async fn $promise() {
                $crate::testing::contract::$promise($harness().await).await;
            }
        )*
    };
}

/// How long the suite's claims last.
const LEASE: Duration = Duration::from_secs(30);

const OPERATION: &str = "message/send";

fn new_key() -> Key {
    Key { scope: Scope::of("tenant"), message_id: MessageId::generate() }
}

fn hash(seed: u8) -> RequestHash {
    RequestHash::from_bytes([seed; 32])
}

fn request(key: &Key) -> ClaimRequest {
    ClaimRequest {
        key: key.clone(),
        request_hash: hash(1),
        operation: Cow::Borrowed(OPERATION),
        lease: LEASE,
        on_takeover: OnTakeover::Run,
        nonce: Uuid::now_v7(),
    }
}

fn refusing(key: &Key) -> ClaimRequest {
    ClaimRequest { on_takeover: OnTakeover::Refuse, ..request(key) }
}

fn response(body: StoredBody) -> StoredResponse {
    StoredResponse { status: StatusCode::OK, headers: HeaderMap::new(), body }
}

fn completion<C>(claim: &Claim, body: &str) -> Completion<C> {
    completion_with(claim, response(StoredBody::Whole(Bytes::copy_from_slice(body.as_bytes()))))
}

fn completion_with<C>(claim: &Claim, response: StoredResponse) -> Completion<C> {
    Completion {
        claim: claim.clone(),
        request_hash: hash(1),
        operation: Cow::Borrowed(OPERATION),
        response,
        effects: Vec::new(),
    }
}

async fn win<S: Store>(store: &S, key: &Key) -> Claim {
    won(store.claim(request(key)).await.expect("the store answers"))
}

fn won(outcome: ClaimOutcome) -> Claim {
    match outcome {
        ClaimOutcome::Won(claim) => claim,
        ClaimOutcome::Occupied(occupant) => panic!("the key should have been vacant: {occupant:?}"),
    }
}

async fn store_answer<S: Store>(store: &S, key: &Key, body: &str) -> Claim {
    let claim = win(store, key).await;
    stored(store, completion(&claim, body)).await;
    claim
}

async fn stored<S: Store>(store: &S, completion: Completion<S::Connection>) {
    let outcome = store.complete(completion).await.expect("the store answers");
    assert!(matches!(outcome, CompleteOutcome::Stored), "{outcome:?}");
}

async fn superseded<S: Store>(store: &S, completion: Completion<S::Connection>) {
    let outcome = store.complete(completion).await.expect("the store answers");
    assert!(matches!(outcome, CompleteOutcome::Superseded), "{outcome:?}");
}

async fn occupant<S: Store>(store: &S, key: &Key) -> Option<Occupant> {
    store.inspect(key).await.expect("the store answers")
}

async fn entry<S: Store>(store: &S, key: &Key) -> Entry {
    match occupant(store, key).await {
        Some(Occupant::Completed(entry)) => entry,
        other => panic!("the key should hold an entry: {other:?}"),
    }
}

async fn body<S: Store>(store: &S, key: &Key) -> Bytes {
    match entry(store, key).await.response.body {
        StoredBody::Whole(bytes) => bytes,
        other => panic!("the body should be whole: {other:?}"),
    }
}

async fn assert_vacant<S: Store>(store: &S, key: &Key) {
    let found = occupant(store, key).await;
    assert!(found.is_none(), "the key should be vacant: {found:?}");
}

async fn assert_in_flight<S: Store>(store: &S, key: &Key) {
    let found = occupant(store, key).await;
    assert!(matches!(found, Some(Occupant::InFlight { .. })), "the key should be claimed: {found:?}");
}

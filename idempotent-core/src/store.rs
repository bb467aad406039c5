//! What the gate asks of a database: the [`Store`] trait.
//!
//! A store keeps two kinds of rows. A **claim** says "this operation runs now, here, until its lease ends"; an **entry** is
//! the finished operation's answer (spec section 4.4). Per [`Key`] there is at most one of either. Everything that must be
//! atomic is one method here, so that a store can make it one transaction:
//!
//! - [`claim`](Store::claim) turns a vacant key into a claim, or says what is there;
//! - [`complete`](Store::complete) turns a claim into an entry, together with the operation's effects, or changes nothing;
//! - [`release`](Store::release) turns a claim into a vacant key.
//!
//! A key is **vacant** when it has neither row, when its entry is past its TTL (`inserted_at + ttl_seconds < now`, strictly,
//! in whole seconds), or when its claim's lease has ended under [`OnTakeover::Run`]. Only the store judges this, by one clock.
//!
//! A store knows no HTTP beyond status, headers and bytes.

use std::{borrow::Cow, error::Error, fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_core::future::BoxFuture;
use http::{HeaderMap, StatusCode};
use uuid::Uuid;

use crate::{message_id::Key, request_hash::RequestHash};

/// What happens to a claim whose owner died before it stored an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OnTakeover {
    /// The next request with the key runs the operation again (`on_takeover = "run"`, the default).
    #[default]
    Run,
    /// No request runs it again before the TTL has passed since the claim: they get `IDEMPOTENCY_OUTCOME_UNKNOWN`
    /// (`on_takeover = "refuse"`). A store makes such a claim durable before it answers [`Store::claim`].
    Refuse,
}

/// How long entries are kept, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Seconds for which an entry answers; at least 1. Spec section 3.3: 86,400.
    pub ttl_seconds: u64,
    /// Number of entries above which the least recently used ones are evicted, within 5 seconds; at least 1.
    pub max_entries: u64,
}

impl Retention {
    /// Whether the TTL of something that happened at `since` has passed at `now` (both in seconds since the Unix epoch): the
    /// strict `since + ttl_seconds < now` of spec section 4.4.
    pub fn has_passed(&self, since: u64, now: u64) -> bool {
        since.saturating_add(self.ttl_seconds) < now
    }
}

impl Default for Retention {
    /// The spec's values: 86,400 seconds and 100,000 entries.
    fn default() -> Self {
        Self { ttl_seconds: 86_400, max_entries: 100_000 }
    }
}

/// Names one claim among all that a store has ever granted; a later one is always larger.
///
/// This is a fencing token: whoever holds a smaller one than the current claim's can change nothing any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClaimToken(pub i64);

/// A request for the right to run an operation.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    /// The operation's key.
    pub key: Key,
    /// The hash of its `params`.
    pub request_hash: RequestHash,
    /// The operation's 0.3 method name, bound to the key beside the hash.
    pub operation: Cow<'static, str>,
    /// How long the claim lasts unless it is renewed. Never zero.
    pub lease: Duration,
    /// What becomes of the claim when its owner dies.
    pub on_takeover: OnTakeover,
    /// Drawn at random once per attempt to claim. Asking again with the same nonce after an error answers with the claim that
    /// the first call made, if it made one.
    pub nonce: Uuid,
}

/// The right to run an operation and to store its answer, until the lease ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The operation's key.
    pub key: Key,
    /// The claim's fencing token.
    pub token: ClaimToken,
    /// 1 for the first claim of this key, one more for each takeover.
    pub attempt: u32,
}

/// Answer to [`Store::claim`].
#[derive(Debug, Clone)]
pub enum ClaimOutcome {
    /// The caller may run the operation.
    Won(Claim),
    /// The key was not vacant. Nothing was changed.
    Occupied(Occupant),
}

/// What stands under a key that is not vacant.
#[derive(Debug, Clone)]
pub enum Occupant {
    /// The operation has been answered.
    Completed(Entry),
    /// The operation runs, here or elsewhere.
    InFlight {
        /// The hash that the claim was made with.
        request_hash: RequestHash,
        /// The operation that the claim was made with.
        operation: String,
        /// How much of the lease is left.
        lease_left: Duration,
    },
    /// The owner died under [`OnTakeover::Refuse`]: whether the operation took effect is unknown.
    Abandoned {
        /// The hash that the claim was made with.
        request_hash: RequestHash,
        /// The operation that the claim was made with.
        operation: String,
    },
}

/// A finished operation (spec section 4.4).
#[derive(Debug, Clone)]
pub struct Entry {
    /// The hash of the `params` that were answered.
    pub request_hash: RequestHash,
    /// The operation that answered, by its 0.3 method name.
    pub operation: String,
    /// The answer.
    pub response: StoredResponse,
    /// When it was stored, in seconds since the Unix epoch.
    pub inserted_at: u64,
}

/// An answer as it is stored: no hop-by-hop headers, and no header that each server sets by itself.
#[derive(Debug, Clone)]
pub struct StoredResponse {
    /// HTTP status.
    pub status: StatusCode,
    /// End-to-end headers in order, repeats and non-UTF-8 values included.
    pub headers: HeaderMap,
    /// The bytes.
    pub body: StoredBody,
}

/// The body of a [`StoredResponse`].
#[derive(Debug, Clone)]
pub enum StoredBody {
    /// All bytes.
    Whole(Bytes),
    /// The bytes lie in chunks 0 to `chunks - 1`, written by [`Store::append_chunk`] under `token`, followed by `rest`.
    Chunked {
        /// The claim that wrote the chunks.
        token: ClaimToken,
        /// How many chunks there are; more than 0.
        chunks: u32,
        /// What came after the last chunk.
        rest: Bytes,
    },
    /// A tombstone: the operation ran, but its body was too large to keep (or broke off).
    NotRetained {
        /// How many bytes the body had.
        bytes: u64,
    },
}

/// A write that commits with the entry: see [`Store::complete`].
///
/// It may be called more than once, each time in a transaction whose predecessor was rolled back.
pub type Effect<C> = Arc<dyn Fn(&mut C) -> Result<(), EffectError> + Send + Sync>;

/// Why an effect could not be written. Its text goes to the log, never to a client.
pub type EffectError = Box<dyn Error + Send + Sync>;

/// Everything that [`Store::complete`] writes at once.
pub struct Completion<C> {
    /// The claim that the operation ran under.
    pub claim: Claim,
    /// The hash of its `params`.
    pub request_hash: RequestHash,
    /// The operation, by its 0.3 method name.
    pub operation: Cow<'static, str>,
    /// The answer.
    pub response: StoredResponse,
    /// Writes of the handler's own, run in order in the same transaction.
    pub effects: Vec<Effect<C>>,
}

impl<C> Clone for Completion<C> {
    fn clone(&self) -> Self {
        Self {
            claim: self.claim.clone(),
            request_hash: self.request_hash,
            operation: self.operation.clone(),
            response: self.response.clone(),
            effects: self.effects.clone(),
        }
    }
}

impl<C> fmt::Debug for Completion<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completion")
            .field("claim", &self.claim)
            .field("request_hash", &self.request_hash)
            .field("operation", &self.operation)
            .field("response", &self.response)
            .field("effects", &self.effects.len())
            .finish()
    }
}

/// Answer to [`Store::complete`].
#[derive(Debug)]
pub enum CompleteOutcome {
    /// Entry and effects are durable.
    Stored,
    /// The claim is not the current one any more. Nothing was changed.
    Superseded,
    /// An effect returned an error or panicked. Nothing was changed; the claim still stands.
    EffectFailed(EffectError),
}

/// What a sweep removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    /// Entries past their TTL, and claims abandoned for longer than that.
    pub expired: u64,
    /// Entries evicted because there were more than [`Retention::max_entries`].
    pub evicted: u64,
}

/// A store could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database does not answer, or refuses. Whether the call took effect is unknown. Clients get
    /// `IDEMPOTENCY_STORE_UNAVAILABLE`.
    #[error("the idempotency store is unavailable: {0}")]
    Unavailable(#[source] Box<dyn Error + Send + Sync>),
    /// A row is there but cannot be read. It is never executed over. Clients get `IDEMPOTENCY_STORE_CORRUPT`.
    #[error("a row of the idempotency store cannot be read: {0}")]
    Corrupt(String),
}

impl StoreError {
    /// An [`StoreError::Unavailable`] from any error.
    pub fn unavailable(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Unavailable(error.into())
    }
}

/// The result of a store's method.
pub type StoreResult<T> = Result<T, StoreError>;

/// A durable place for claims and entries.
///
/// Every method may be called from any task at any time, and its future may be dropped at any point: work that has begun is
/// then finished or undone, never left open. The module's documentation tells what must be atomic; `testing::contract`
/// (feature `testing`) is the suite that every store passes.
pub trait Store: Send + Sync + 'static {
    /// The connection that [`Effect`]s write with.
    type Connection: 'static;

    /// Tells the store what to keep. Called before the first request, and possibly again.
    fn set_retention(&self, retention: Retention);

    /// What stands under a key, `None` when it is vacant. Changes nothing and does not wait for writers.
    fn inspect<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, StoreResult<Option<Occupant>>>;

    /// Claims a vacant key, else tells what is there. Of any number of concurrent calls for one key, at most one wins.
    ///
    /// A takeover (the old claim's lease has ended under [`OnTakeover::Run`]) counts the attempt up, deletes the old claim's
    /// chunks and gives a new, larger token.
    fn claim(&self, request: ClaimRequest) -> BoxFuture<'_, StoreResult<ClaimOutcome>>;

    /// Lets the claim last `lease` from now. `false` when it is not the current claim any more.
    ///
    /// A claim whose lease has ended, but which nobody has taken over, is still the current one.
    fn renew<'a>(&'a self, claim: &'a Claim, lease: Duration) -> BoxFuture<'a, StoreResult<bool>>;

    /// Writes entry and effects and removes the claim, all or nothing; [`CompleteOutcome::Stored`] only once that is durable.
    ///
    /// Called again with a claim that is already stored, it answers `Stored` without running an effect again.
    fn complete(&self, completion: Completion<Self::Connection>) -> BoxFuture<'_, StoreResult<CompleteOutcome>>;

    /// Removes a claim and its chunks, if it is still the current one: the operation has not begun.
    fn release<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, StoreResult<()>>;

    /// Writes a chunk of a response that is still being recorded. Chunks are numbered from 0 without gaps; writing the same
    /// number again replaces it. `false` when the claim is not the current one any more.
    fn append_chunk<'a>(&'a self, claim: &'a Claim, index: u32, bytes: Bytes) -> BoxFuture<'a, StoreResult<bool>>;

    /// Reads a chunk of a recording, in progress or finished. `None` when it is not there (any more).
    fn read_chunk(&self, token: ClaimToken, index: u32) -> BoxFuture<'_, StoreResult<Option<Bytes>>>;

    /// Commits effects that belong to no key, all or nothing: those of a request that did not ask for idempotency.
    fn commit(&self, effects: Vec<Effect<Self::Connection>>) -> BoxFuture<'_, StoreResult<Result<(), EffectError>>>;

    /// Notes that an entry was replayed, for the eviction order. Returns at once; written later, in the background.
    fn touch(&self, key: &Key);

    /// Returns when the key may have changed, and after `at_most` in any case.
    ///
    /// The default just sleeps; a store that can be told of changes returns sooner.
    fn changed<'a>(&'a self, key: &'a Key, at_most: Duration) -> BoxFuture<'a, ()> {
        let _ = key;
        Box::pin(tokio::time::sleep(at_most))
    }

    /// Removes everything expired, and what is over the bound. Never a claim that may still be completed.
    ///
    /// Stores sweep in the background by themselves; this does it now, and says how much there was.
    fn sweep(&self) -> BoxFuture<'_, StoreResult<Swept>>;
}

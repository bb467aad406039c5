//! A [`Store`] in memory: the reference model, and a quick store for tests of what stands on one.

use std::{
    collections::{BTreeMap, HashMap},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use futures_core::future::BoxFuture;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::{
    clock::{Clock, SystemClock},
    message_id::Key,
    request_hash::RequestHash,
    store::{
        Claim, ClaimOutcome, ClaimRequest, ClaimToken, CompleteOutcome, Completion, Effect, EffectError, Entry,
        Occupant, OnTakeover, Retention, Store, StoreResult, StoredBody, Swept,
    },
};

/// A store whose rows live and die with it.
///
/// Clones share their rows, as two processes on one database would. It forgets everything at the end of the process, so it
/// does not conform to the spec's AC-4: it is for tests.
///
/// ```
/// use idempotent_core::{ManualClock, store::Store, testing::MemoryStore};
/// use std::sync::Arc;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let store = MemoryStore::new(ManualClock::at_seconds(1_700_000_000));
/// let committed = store.commit(vec![Arc::new(|connection| { connection.insert("a task"); Ok(()) })]).await?;
/// assert!(committed.is_ok());
/// assert_eq!(store.rows(), ["a task"]);
/// # Ok::<(), idempotent_core::store::StoreError>(()) }).unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
    clock: Arc<dyn Clock>,
    changed: Arc<Notify>,
}

/// What the effects of a [`MemoryStore`] write with: a table of text rows.
#[derive(Debug, Clone, Default)]
pub struct MemoryConnection {
    rows: Vec<String>,
}

impl MemoryConnection {
    /// Adds a row.
    pub fn insert(&mut self, row: impl Into<String>) {
        self.rows.push(row.into());
    }

    /// The rows so far, those of this transaction included.
    pub fn rows(&self) -> &[String] {
        &self.rows
    }
}

#[derive(Debug, Default)]
struct State {
    retention: Retention,
    last_token: i64,
    last_used: u64,
    claims: HashMap<Key, ClaimRow>,
    entries: HashMap<Key, EntryRow>,
    chunks: BTreeMap<(ClaimToken, u32), Bytes>,
    connection: MemoryConnection,
}

#[derive(Debug)]
struct ClaimRow {
    token: ClaimToken,
    attempt: u32,
    nonce: Uuid,
    request_hash: RequestHash,
    operation: String,
    on_takeover: OnTakeover,
    claimed_at: u64,
    lease_until_millis: u64,
}

#[derive(Debug)]
struct EntryRow {
    token: ClaimToken,
    entry: Entry,
    last_used: u64,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new(SystemClock)
    }
}

impl MemoryStore {
    /// An empty store that judges leases and TTLs by `clock`.
    pub fn new(clock: impl Clock) -> Self {
        Self { state: Arc::default(), clock: Arc::new(clock), changed: Arc::default() }
    }

    /// Every row that an effect has committed, in order.
    pub fn rows(&self) -> Vec<String> {
        self.state().connection.rows.clone()
    }

    /// How many entries there are, expired ones that no sweep has removed included.
    pub fn entries(&self) -> usize {
        self.state().entries.len()
    }

    /// How many claims there are, lapsed ones included.
    pub fn claims(&self) -> usize {
        self.state().claims.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Effects are the only foreign code that runs under the lock, and their panics are caught.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn occupant(&self, key: &Key, now_millis: u64) -> Option<Occupant> {
        let now = now_millis / 1000;
        if let Some(row) = self.entries.get(key)
            && !self.retention.has_passed(row.entry.inserted_at, now)
        {
            return Some(Occupant::Completed(row.entry.clone()));
        }
        let claim = self.claims.get(key)?;
        let (request_hash, operation) = (claim.request_hash, claim.operation.clone());
        if now_millis < claim.lease_until_millis {
            let lease_left = Duration::from_millis(claim.lease_until_millis - now_millis);
            return Some(Occupant::InFlight { request_hash, operation, lease_left });
        }
        let refused = claim.on_takeover == OnTakeover::Refuse && !self.retention.has_passed(claim.claimed_at, now);
        refused.then_some(Occupant::Abandoned { request_hash, operation })
    }

    fn is_current(&self, claim: &Claim) -> bool {
        self.claims.get(&claim.key).is_some_and(|row| row.token == claim.token)
    }

    fn remove_claim(&mut self, key: &Key) -> Option<ClaimRow> {
        let row = self.claims.remove(key)?;
        self.remove_chunks(row.token);
        Some(row)
    }

    fn remove_entry(&mut self, key: &Key) {
        if let Some(row) = self.entries.remove(key) {
            self.remove_chunks(row.token);
        }
    }

    fn remove_chunks(&mut self, token: ClaimToken) {
        self.chunks.retain(|(owner, _), _| *owner != token);
    }

    fn claim(&mut self, request: ClaimRequest, now_millis: u64) -> ClaimOutcome {
        if let Some(row) = self.claims.get(&request.key)
            && row.nonce == request.nonce
        {
            return ClaimOutcome::Won(Claim { key: request.key, token: row.token, attempt: row.attempt });
        }
        if let Some(occupant) = self.occupant(&request.key, now_millis) {
            return ClaimOutcome::Occupied(occupant);
        }
        self.remove_entry(&request.key);
        let attempt = self.remove_claim(&request.key).map_or(1, |lapsed| lapsed.attempt.saturating_add(1));
        self.last_token += 1;
        let token = ClaimToken(self.last_token);
        let row = ClaimRow {
            token,
            attempt,
            nonce: request.nonce,
            request_hash: request.request_hash,
            operation: request.operation.into_owned(),
            on_takeover: request.on_takeover,
            claimed_at: now_millis / 1000,
            lease_until_millis: lease_end(now_millis, request.lease),
        };
        self.claims.insert(request.key.clone(), row);
        ClaimOutcome::Won(Claim { key: request.key, token, attempt })
    }

    fn complete(&mut self, completion: Completion<MemoryConnection>, now_millis: u64) -> CompleteOutcome {
        let claim = &completion.claim;
        if !self.is_current(claim) {
            let stored = self.entries.get(&claim.key).is_some_and(|row| row.token == claim.token);
            return if stored { CompleteOutcome::Stored } else { CompleteOutcome::Superseded };
        }
        if let Err(error) = self.run(&completion.effects) {
            return CompleteOutcome::EffectFailed(error);
        }
        self.claims.remove(&claim.key);
        if !matches!(completion.response.body, StoredBody::Chunked { .. }) {
            self.remove_chunks(claim.token);
        }
        self.last_used += 1;
        let entry = Entry {
            request_hash: completion.request_hash,
            operation: completion.operation.into_owned(),
            response: completion.response,
            inserted_at: now_millis / 1000,
        };
        let row = EntryRow { token: claim.token, entry, last_used: self.last_used };
        self.entries.insert(completion.claim.key, row);
        CompleteOutcome::Stored
    }

    fn run(&mut self, effects: &[Effect<MemoryConnection>]) -> Result<(), EffectError> {
        let mut connection = self.connection.clone();
        for effect in effects {
            match catch_unwind(AssertUnwindSafe(|| effect(&mut connection))) {
                Ok(outcome) => outcome?,
                Err(_) => return Err("the effect panicked".into()),
            }
        }
        self.connection = connection;
        Ok(())
    }

    fn sweep(&mut self, now_millis: u64) -> Swept {
        let now = now_millis / 1000;
        let retention = self.retention;
        let expired = |row: &EntryRow| retention.has_passed(row.entry.inserted_at, now);
        let old: Vec<Key> = self.entries.iter().filter(|(_, row)| expired(row)).map(|(key, _)| key.clone()).collect();
        let abandoned: Vec<Key> = self
            .claims
            .iter()
            .filter(|(_, row)| row.on_takeover == OnTakeover::Refuse)
            .filter(|(_, row)| row.lease_until_millis <= now_millis && retention.has_passed(row.claimed_at, now))
            .map(|(key, _)| key.clone())
            .collect();
        old.iter().for_each(|key| self.remove_entry(key));
        for key in &abandoned {
            self.remove_claim(key);
        }
        let bound = usize::try_from(retention.max_entries).unwrap_or(usize::MAX);
        let excess = self.entries.len().saturating_sub(bound);
        let mut by_use: Vec<(u64, Key)> = self.entries.iter().map(|(key, row)| (row.last_used, key.clone())).collect();
        by_use.sort_by_key(|(last_used, _)| *last_used);
        by_use.iter().take(excess).for_each(|(_, key)| self.remove_entry(key));
        Swept { expired: (old.len() + abandoned.len()) as u64, evicted: excess as u64 }
    }
}

fn lease_end(now_millis: u64, lease: Duration) -> u64 {
    now_millis.saturating_add(u64::try_from(lease.as_millis()).unwrap_or(u64::MAX))
}

impl Store for MemoryStore {
    type Connection = MemoryConnection;

    fn set_retention(&self, retention: Retention) {
        self.state().retention = retention;
    }

    fn inspect<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, StoreResult<Option<Occupant>>> {
        Box::pin(async move { Ok(self.state().occupant(key, self.clock.now_millis())) })
    }

    fn claim(&self, request: ClaimRequest) -> BoxFuture<'_, StoreResult<ClaimOutcome>> {
        Box::pin(async move { Ok(self.state().claim(request, self.clock.now_millis())) })
    }

    fn renew<'a>(&'a self, claim: &'a Claim, lease: Duration) -> BoxFuture<'a, StoreResult<bool>> {
        Box::pin(async move {
            let mut state = self.state();
            let row = state.claims.get_mut(&claim.key).filter(|row| row.token == claim.token);
            Ok(row.map(|row| row.lease_until_millis = lease_end(self.clock.now_millis(), lease)).is_some())
        })
    }

    fn complete(&self, completion: Completion<MemoryConnection>) -> BoxFuture<'_, StoreResult<CompleteOutcome>> {
        Box::pin(async move {
            let outcome = self.state().complete(completion, self.clock.now_millis());
            self.changed.notify_waiters();
            Ok(outcome)
        })
    }

    fn release<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, StoreResult<()>> {
        Box::pin(async move {
            let mut state = self.state();
            if state.is_current(claim) {
                state.remove_claim(&claim.key);
            }
            self.changed.notify_waiters();
            Ok(())
        })
    }

    fn append_chunk<'a>(&'a self, claim: &'a Claim, index: u32, bytes: Bytes) -> BoxFuture<'a, StoreResult<bool>> {
        Box::pin(async move {
            let mut state = self.state();
            let current = state.is_current(claim);
            if current {
                state.chunks.insert((claim.token, index), bytes);
            }
            Ok(current)
        })
    }

    fn read_chunk(&self, token: ClaimToken, index: u32) -> BoxFuture<'_, StoreResult<Option<Bytes>>> {
        Box::pin(async move { Ok(self.state().chunks.get(&(token, index)).cloned()) })
    }

    fn commit(&self, effects: Vec<Effect<MemoryConnection>>) -> BoxFuture<'_, StoreResult<Result<(), EffectError>>> {
        Box::pin(async move { Ok(self.state().run(&effects)) })
    }

    fn touch(&self, key: &Key) {
        let mut state = self.state();
        state.last_used += 1;
        let now = state.last_used;
        if let Some(row) = state.entries.get_mut(key) {
            row.last_used = now;
        }
    }

    fn changed<'a>(&'a self, key: &'a Key, at_most: Duration) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let told = self.changed.notified();
            if self.state().claims.contains_key(key) {
                let _ = tokio::time::timeout(at_most, told).await;
            }
        })
    }

    fn sweep(&self) -> BoxFuture<'_, StoreResult<Swept>> {
        Box::pin(async move { Ok(self.state().sweep(self.clock.now_millis())) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{clock::ManualClock, testing::contract::Harness};

    struct InMemory {
        store: MemoryStore,
        clock: ManualClock,
    }

    impl Harness for InMemory {
        type Store = MemoryStore;

        fn store(&self) -> &MemoryStore {
            &self.store
        }

        fn advance(&self, by: Duration) -> BoxFuture<'_, ()> {
            self.clock.advance(by);
            Box::pin(async {})
        }

        fn effect(&self, name: &str) -> Effect<MemoryConnection> {
            let name = name.to_owned();
            Arc::new(move |connection| {
                connection.insert(name.as_str());
                Ok(())
            })
        }

        fn committed<'a>(&'a self, name: &'a str) -> BoxFuture<'a, u64> {
            Box::pin(async move { self.store.rows().iter().filter(|row| *row == name).count() as u64 })
        }
    }

    async fn fresh() -> InMemory {
        let clock = ManualClock::at_seconds(1_700_000_000);
        InMemory { store: MemoryStore::new(clock.clone()), clock }
    }

    crate::store_contract!(fresh);
}

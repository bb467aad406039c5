//! A store that fails on demand, as networks, databases and operating systems do.

use std::{
    collections::{BTreeMap, VecDeque},
    future::pending,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use futures_core::future::BoxFuture;
use tokio::sync::watch;

use crate::{
    message_id::Key,
    store::{
        Claim, ClaimOutcome, ClaimRequest, ClaimToken, CompleteOutcome, Completion, Effect, EffectError, Occupant,
        Retention, Store, StoreError, StoreResult, Swept,
    },
};

/// The methods of a [`Store`] that can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StoreCall {
    /// [`Store::inspect`]
    Inspect,
    /// [`Store::claim`]
    Claim,
    /// [`Store::renew`]
    Renew,
    /// [`Store::complete`]
    Complete,
    /// [`Store::release`]
    Release,
    /// [`Store::append_chunk`]
    AppendChunk,
    /// [`Store::read_chunk`]
    ReadChunk,
    /// [`Store::commit`]
    Commit,
    /// [`Store::sweep`]
    Sweep,
}

/// What goes wrong with one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The call fails, and did nothing.
    FailBefore,
    /// The call does its work, then its answer is lost: it fails too.
    FailAfter,
    /// The call finds a row that it cannot read.
    Corrupt,
    /// The call reaches the store this much later.
    Delay(Duration),
    /// The call's answer comes this much later.
    DelayAnswer(Duration),
    /// The call is transmitted twice; the second answer is the one that arrives.
    Twice,
    /// The call never reaches the store and never returns.
    Hang,
    /// The call does its work and never returns.
    HangAfter,
    /// The call panics, and did nothing.
    PanicBefore,
    /// The call does its work, then panics.
    PanicAfter,
    /// The process dies: neither this call nor any later one reaches the store or returns.
    DieBefore,
    /// The call does its work, then the process dies.
    DieAfter,
}

/// The controls of a [`FaultyStore`]. Clones control the same store.
///
/// Faults are taken from three places, the first that has one: those planned for a method
/// ([`next`](Faults::next)), those planned for the n-th call of any method ([`at`](Faults::at)), and the seeded ones
/// ([`seeded`](Faults::seeded)).
#[derive(Debug, Clone)]
pub struct Faults(Arc<Mutex<Plan>>);

#[derive(Debug)]
struct Plan {
    next: BTreeMap<StoreCall, VecDeque<Fault>>,
    at: BTreeMap<u64, Fault>,
    seeded: Option<Seeded>,
    down: bool,
    mode: watch::Sender<Mode>,
    calls: BTreeMap<StoreCall, u64>,
    injected: BTreeMap<StoreCall, u64>,
    failed: BTreeMap<StoreCall, u64>,
    total: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Alive,
    /// Stopped, as by SIGSTOP: calls wait.
    Frozen,
    Dead,
}

impl Default for Faults {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Plan {
            next: BTreeMap::new(),
            at: BTreeMap::new(),
            seeded: None,
            down: false,
            mode: watch::Sender::new(Mode::Alive),
            calls: BTreeMap::new(),
            injected: BTreeMap::new(),
            failed: BTreeMap::new(),
            total: 0,
        })))
    }
}

impl Faults {
    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Plans a fault for the next call of `operation` that has none yet.
    pub fn next(&self, operation: StoreCall, fault: Fault) -> &Self {
        self.plan().next.entry(operation).or_default().push_back(fault);
        self
    }

    /// Plans a fault for the call with this number, whatever it calls; the first call is number 0.
    pub fn at(&self, call: u64, fault: Fault) -> &Self {
        self.plan().at.insert(call, fault);
        self
    }

    /// From now on this many calls in 1,000 fail in one way or another, but none hangs, panics or dies. The same seed gives
    /// the same faults to the same calls.
    pub fn seeded(&self, seed: u64, per_mille: u16) -> &Self {
        self.plan().seeded = Some(Seeded { state: seed, per_mille });
        self
    }

    /// An outage: every call fails at once, until [`up`](Faults::up).
    pub fn down(&self) {
        self.plan().down = true;
    }

    /// Ends an outage.
    pub fn up(&self) {
        self.plan().down = false;
    }

    /// Stops the process, as SIGSTOP does: calls wait until [`thaw`](Faults::thaw).
    pub fn freeze(&self) {
        self.enter(Mode::Frozen);
    }

    /// Lets a stopped process go on.
    pub fn thaw(&self) {
        self.enter(Mode::Alive);
    }

    /// Kills the process: no call reaches the store or returns any more.
    pub fn kill(&self) {
        self.enter(Mode::Dead);
    }

    fn enter(&self, mode: Mode) {
        // Whoever is dead stays dead.
        self.plan().mode.send_if_modified(|current| *current != Mode::Dead && std::mem::replace(current, mode) != mode);
    }

    /// Whether the process is dead.
    pub fn is_dead(&self) -> bool {
        *self.plan().mode.borrow() == Mode::Dead
    }

    /// Returns when the process has died.
    pub async fn dead(&self) {
        let mut mode = self.plan().mode.subscribe();
        // The sender lives as long as the plan, which `self` holds.
        let _ = mode.wait_for(|mode| *mode == Mode::Dead).await;
    }

    /// Returns when the process is not stopped; never when it is dead.
    pub async fn running(&self) {
        let mut mode = self.plan().mode.subscribe();
        // The sender lives as long as the plan, which `self` holds.
        if mode.wait_for(|mode| *mode == Mode::Alive).await.is_err() {
            pending::<()>().await;
        }
    }

    /// How often `operation` has been called.
    pub fn calls(&self, operation: StoreCall) -> u64 {
        self.plan().calls.get(&operation).copied().unwrap_or(0)
    }

    /// How many calls of `operation` have met a fault, an outage included.
    pub fn injected(&self, operation: StoreCall) -> u64 {
        self.plan().injected.get(&operation).copied().unwrap_or(0)
    }

    /// How many calls of `operation` have met a fault other than a delay or a repetition, or a process that is stopped or dead:
    /// whoever did not wait for these does not know what they did.
    pub fn failed(&self, operation: StoreCall) -> u64 {
        self.plan().failed.get(&operation).copied().unwrap_or(0)
    }

    /// How many calls of any method have met a fault.
    pub fn total_injected(&self) -> u64 {
        self.plan().injected.values().sum()
    }

    /// Forgets every fault that is still planned, and ends an outage.
    pub fn calm(&self) {
        let mut plan = self.plan();
        plan.next.clear();
        plan.at.clear();
        plan.seeded = None;
        plan.down = false;
    }

    /// As [`running`](Faults::running), for a call of `operation`.
    async fn lets_through(&self, operation: StoreCall) {
        {
            let mut plan = self.plan();
            if *plan.mode.borrow() != Mode::Alive {
                *plan.failed.entry(operation).or_default() += 1;
            }
        }
        self.running().await;
    }

    fn take(&self, operation: StoreCall) -> Option<Fault> {
        let mut plan = self.plan();
        let number = plan.total;
        plan.total += 1;
        *plan.calls.entry(operation).or_default() += 1;
        let fault = match plan.next.get_mut(&operation).and_then(VecDeque::pop_front) {
            Some(fault) => Some(fault),
            None if plan.down => Some(Fault::FailBefore),
            None => plan.at.remove(&number).or_else(|| plan.seeded.as_mut().and_then(Seeded::draw)),
        };
        if let Some(fault) = fault {
            *plan.injected.entry(operation).or_default() += 1;
            let only_slow = matches!(fault, Fault::Delay(_) | Fault::DelayAnswer(_) | Fault::Twice);
            *plan.failed.entry(operation).or_default() += u64::from(!only_slow);
        }
        fault
    }
}

/// SplitMix64: small, and the same everywhere.
#[derive(Debug)]
struct Seeded {
    state: u64,
    per_mille: u16,
}

impl Seeded {
    fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn draw(&mut self) -> Option<Fault> {
        if self.number() % 1000 >= u64::from(self.per_mille) {
            return None;
        }
        let pause = Duration::from_millis(self.number() % 500);
        Some(match self.number() % 5 {
            0 => Fault::FailBefore,
            1 => Fault::FailAfter,
            2 => Fault::Delay(pause),
            3 => Fault::DelayAnswer(pause),
            _ => Fault::Twice,
        })
    }
}

/// A [`Store`] with [`Faults`]: one process's view of the store inside, which other views may share.
///
/// ```
/// use idempotent_core::testing::{Fault, FaultyStore, MemoryStore, StoreCall};
/// use idempotent_core::Idempotency;
///
/// let store = FaultyStore::new(MemoryStore::default());
/// let faults = store.faults();
/// let idempotency = Idempotency::new(store);
/// // The next answer is stored, but the gate does not get to know it.
/// faults.next(StoreCall::Complete, Fault::FailAfter);
/// ```
#[derive(Debug, Clone)]
pub struct FaultyStore<S> {
    inner: S,
    faults: Faults,
}

impl<S: Store> FaultyStore<S> {
    /// A view of `inner` without any fault yet.
    pub fn new(inner: S) -> Self {
        Self { inner, faults: Faults::default() }
    }

    /// The controls.
    pub fn faults(&self) -> Faults {
        self.faults.clone()
    }

    async fn suffer<'a, T: Send>(
        &'a self,
        operation: StoreCall,
        mut call: impl FnMut() -> BoxFuture<'a, StoreResult<T>> + Send,
    ) -> StoreResult<T> {
        self.faults.lets_through(operation).await;
        let fault = self.faults.take(operation);
        match fault {
            Some(Fault::FailBefore) => return Err(StoreError::unavailable("a fault before the call")),
            Some(Fault::Corrupt) => return Err(StoreError::Corrupt("a fault in the row".into())),
            Some(Fault::Delay(pause)) => tokio::time::sleep(pause).await,
            Some(Fault::Twice) => drop(call().await),
            Some(Fault::Hang) => pending::<()>().await,
            Some(Fault::PanicBefore) => panic!("a fault before the call"),
            Some(Fault::DieBefore) => {
                self.faults.kill();
                pending::<()>().await;
            }
            _ => {}
        }
        let answer = call().await;
        match fault {
            Some(Fault::FailAfter) => return Err(StoreError::unavailable("a fault after the call")),
            Some(Fault::DelayAnswer(pause)) => tokio::time::sleep(pause).await,
            Some(Fault::HangAfter) => pending::<()>().await,
            Some(Fault::PanicAfter) => panic!("a fault after the call"),
            Some(Fault::DieAfter) => self.faults.kill(),
            _ => {}
        }
        self.faults.lets_through(operation).await;
        answer
    }
}

impl<S: Store> Store for FaultyStore<S> {
    type Connection = S::Connection;

    fn set_retention(&self, retention: Retention) {
        self.inner.set_retention(retention);
    }

    fn inspect<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, StoreResult<Option<Occupant>>> {
        Box::pin(self.suffer(StoreCall::Inspect, || self.inner.inspect(key)))
    }

    fn claim(&self, request: ClaimRequest) -> BoxFuture<'_, StoreResult<ClaimOutcome>> {
        Box::pin(self.suffer(StoreCall::Claim, move || self.inner.claim(request.clone())))
    }

    fn renew<'a>(&'a self, claim: &'a Claim, lease: Duration) -> BoxFuture<'a, StoreResult<bool>> {
        Box::pin(self.suffer(StoreCall::Renew, move || self.inner.renew(claim, lease)))
    }

    fn complete(&self, completion: Completion<Self::Connection>) -> BoxFuture<'_, StoreResult<CompleteOutcome>> {
        Box::pin(self.suffer(StoreCall::Complete, move || self.inner.complete(completion.clone())))
    }

    fn release<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, StoreResult<()>> {
        Box::pin(self.suffer(StoreCall::Release, move || self.inner.release(claim)))
    }

    fn append_chunk<'a>(&'a self, claim: &'a Claim, index: u32, bytes: Bytes) -> BoxFuture<'a, StoreResult<bool>> {
        Box::pin(self.suffer(StoreCall::AppendChunk, move || self.inner.append_chunk(claim, index, bytes.clone())))
    }

    fn read_chunk(&self, token: ClaimToken, index: u32) -> BoxFuture<'_, StoreResult<Option<Bytes>>> {
        Box::pin(self.suffer(StoreCall::ReadChunk, move || self.inner.read_chunk(token, index)))
    }

    fn commit(&self, effects: Vec<Effect<Self::Connection>>) -> BoxFuture<'_, StoreResult<Result<(), EffectError>>> {
        Box::pin(self.suffer(StoreCall::Commit, move || self.inner.commit(effects.clone())))
    }

    fn touch(&self, key: &Key) {
        if !self.faults.is_dead() {
            self.inner.touch(key);
        }
    }

    fn changed<'a>(&'a self, key: &'a Key, at_most: Duration) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            self.faults.running().await;
            self.inner.changed(key, at_most).await;
            self.faults.running().await;
        })
    }

    fn sweep(&self) -> BoxFuture<'_, StoreResult<Swept>> {
        Box::pin(self.suffer(StoreCall::Sweep, || self.inner.sweep()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::MemoryStore;

    #[tokio::test(start_paused = true)]
    async fn faults_strike_before_or_after_the_work_as_planned() {
        let rows = MemoryStore::default();
        let store = FaultyStore::new(rows.clone());
        let faults = store.faults();
        let write = || -> Vec<Effect<_>> {
            vec![Arc::new(|connection: &mut crate::testing::MemoryConnection| {
                connection.insert("row");
                Ok(())
            })]
        };
        faults.next(StoreCall::Commit, Fault::FailBefore);
        faults.next(StoreCall::Commit, Fault::FailAfter);
        faults.next(StoreCall::Commit, Fault::Twice);
        assert!(store.commit(write()).await.is_err());
        assert_eq!(rows.rows().len(), 0);
        assert!(store.commit(write()).await.is_err());
        assert_eq!(rows.rows().len(), 1);
        assert!(store.commit(write()).await.is_ok());
        assert_eq!(rows.rows().len(), 3);
        assert_eq!((faults.calls(StoreCall::Commit), faults.injected(StoreCall::Commit)), (3, 3));
        faults.at(3, Fault::DieAfter);
        let dies = tokio::time::timeout(Duration::from_secs(60), store.commit(write())).await;
        assert!(dies.is_err() && faults.is_dead());
        faults.thaw();
        assert!(tokio::time::timeout(Duration::from_secs(60), store.commit(write())).await.is_err());
        assert_eq!(rows.rows().len(), 4);
    }

    #[tokio::test]
    async fn a_seed_gives_the_same_faults_again() {
        let drawn = |seed| {
            let mut seeded = Seeded { state: seed, per_mille: 300 };
            (0..100).map(|_| seeded.draw()).collect::<Vec<_>>()
        };
        assert_eq!(drawn(7), drawn(7));
        assert_ne!(drawn(7), drawn(8));
        let struck = drawn(7).iter().flatten().count();
        assert!((10..=60).contains(&struck), "{struck}");
    }
}

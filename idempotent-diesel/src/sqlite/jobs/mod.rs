//! What the writer thread does: each operation of the store as a [`Job`] of one batch.

mod chunk;
mod claim;
mod complete;
mod effects;
mod lease;
mod ledger;
mod sweep;

use std::ops::Range;

use diesel::SqliteConnection;
use idempotent_core::store::{EffectError, StoreError, StoreResult};
use tokio::sync::oneshot;

pub(crate) use self::{
    chunk::AppendJob,
    claim::ClaimJob,
    complete::CompleteJob,
    effects::{CommitJob, WriteJob, Written},
    lease::{ReleaseJob, RenewJob},
    ledger::recount,
    sweep::{SweepJob, TouchJob, has_work},
};
use super::{
    rows::{Moment, store_error},
    touches::Touches,
};

/// How sure a batch must be before anybody is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Durability {
    /// May be lost at a power cut, together with the process that was told of it.
    Normal,
    /// On the disk.
    Full,
}

/// One operation in the writer's queue.
///
/// A batch may have to be done again, so [`run`](Job::run) may be called more than once; whatever it did before was rolled back.
pub(crate) trait Job: Send {
    fn durability(&self) -> Durability {
        Durability::Normal
    }

    /// How many tokens it may need.
    fn tokens(&self) -> u32 {
        0
    }

    /// About how many bytes it writes.
    fn bytes(&self) -> usize {
        256
    }

    /// Whether it runs code that others wrote.
    fn is_foreign(&self) -> bool {
        false
    }

    /// Whether nobody waits for it any more, and it need not be begun.
    fn is_moot(&self) -> bool {
        false
    }

    /// Whether a step of a sweep must not take its time.
    fn is_urgent(&self) -> bool {
        false
    }

    /// Does its writes, and keeps what it will answer.
    fn run(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure>;

    /// Answers, now that its writes are committed. It may have a successor, to be done later.
    fn answer(self: Box<Self>) -> Option<Box<dyn Job>>;

    /// Answers that it failed, and that nothing of it was written.
    fn fail(self: Box<Self>, failure: Failure);
}

/// Why a job's writes must be undone.
#[derive(Debug)]
pub(crate) enum Failure {
    Store(StoreError),
    /// Foreign code refused or panicked.
    Effect(EffectError),
    /// Foreign code of [`WriteJob`] refused or panicked; the job has kept what it said.
    Foreign,
}

impl Failure {
    pub(crate) fn into_store_error(self) -> StoreError {
        match self {
            Self::Store(error) => error,
            Self::Effect(error) => StoreError::Unavailable(error),
            Self::Foreign => StoreError::unavailable("the write was rolled back"),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<diesel::result::Error> for Failure {
    fn from(error: diesel::result::Error) -> Self {
        Self::Store(store_error(error))
    }
}

/// The transaction that a job runs in.
pub(crate) struct Batch<'a> {
    pub(crate) connection: &'a mut SqliteConnection,
    pub(crate) moment: Moment,
    pub(crate) touches: &'a Touches,
    /// Tokens that are reserved and not yet given out.
    pub(crate) tokens: Range<i64>,
    /// How many entries it added, less those that it removed.
    pub(crate) entries: i64,
}

impl Batch<'_> {
    fn token(&mut self) -> Result<i64, Failure> {
        self.tokens.next().ok_or_else(|| StoreError::unavailable("no claim token is left in this batch").into())
    }

    fn mark(&self) -> i64 {
        self.touches.mark(self.moment.now_millis)
    }
}

/// Where a job's answer goes.
#[derive(Debug)]
pub(crate) struct Reply<T> {
    sender: oneshot::Sender<StoreResult<T>>,
    outcome: Option<T>,
}

/// Where a job's answer comes from.
pub(crate) type Answer<T> = oneshot::Receiver<StoreResult<T>>;

impl<T> Reply<T> {
    pub(crate) fn new() -> (Self, Answer<T>) {
        let (sender, receiver) = oneshot::channel();
        (Self { sender, outcome: None }, receiver)
    }

    fn keep(&mut self, outcome: T) {
        self.outcome = Some(outcome);
    }

    fn is_moot(&self) -> bool {
        self.sender.is_closed()
    }

    fn send(self) {
        let outcome = self.outcome.ok_or_else(|| StoreError::unavailable("the operation was not carried out"));
        // Nobody waiting is nobody's loss: what was done stands.
        let _ = self.sender.send(outcome);
    }

    fn fail(self, error: StoreError) {
        let _ = self.sender.send(Err(error));
    }
}

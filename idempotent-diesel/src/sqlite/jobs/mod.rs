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
    chunk::Appending,
    claim::Claiming,
    complete::Completing,
    effects::{Committing, WriteJob, Written},
    lease::{Releasing, Renewing},
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

/// What a job needs of its batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Needs {
    pub(crate) durability: Durability,
    /// How many tokens, at most.
    pub(crate) tokens: u32,
    /// About how many bytes it writes.
    pub(crate) bytes: usize,
    /// Whether it runs code that others wrote.
    pub(crate) is_foreign: bool,
}

impl Default for Needs {
    fn default() -> Self {
        Self { durability: Durability::Normal, tokens: 0, bytes: 256, is_foreign: false }
    }
}

/// One operation in the writer's queue.
///
/// A batch may have to be done again, so [`run`](Job::run) may be called more than once; whatever it did before was rolled back.
pub(crate) trait Job: Send {
    /// What it needs of its batch.
    fn needs(&self) -> Needs {
        Needs::default()
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

/// An operation that its caller waits for: a [`Job`] but for what becomes of its answer.
pub(crate) trait Operation: Send {
    /// What it answers.
    type Outcome: Send;

    /// Whether it need not be begun when its caller is gone.
    const NEEDS_ITS_CALLER: bool = false;

    /// What it needs of its batch.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Does its writes.
    fn run(&self, batch: &mut Batch<'_>) -> Result<Self::Outcome, Failure>;

    /// What it answers when its writes were undone because of `error`, which foreign code gave.
    fn refused(error: EffectError) -> StoreResult<Self::Outcome> {
        Err(StoreError::Unavailable(error))
    }
}

/// An operation in the writer's queue, and where its answer goes.
pub(crate) struct Awaited<O: Operation> {
    operation: O,
    outcome: Option<O::Outcome>,
    caller: Caller<O::Outcome>,
}

/// Where a job's answer goes. Nobody waiting is nobody's loss: what was done stands.
type Caller<T> = oneshot::Sender<StoreResult<T>>;

/// Where a job's answer comes from.
pub(crate) type Answer<T> = oneshot::Receiver<StoreResult<T>>;

impl<O: Operation> Awaited<O> {
    pub(crate) fn new(operation: O) -> (Self, Answer<O::Outcome>) {
        let (caller, answer) = oneshot::channel();
        (Self { operation, outcome: None, caller }, answer)
    }
}

impl<O: Operation> Job for Awaited<O> {
    fn needs(&self) -> Needs {
        self.operation.needs()
    }

    fn is_moot(&self) -> bool {
        O::NEEDS_ITS_CALLER && self.caller.is_closed()
    }

    fn run(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        self.outcome = Some(self.operation.run(batch)?);
        Ok(())
    }

    fn answer(self: Box<Self>) -> Option<Box<dyn Job>> {
        let outcome = self.outcome.ok_or_else(|| StoreError::unavailable("the operation was not carried out"));
        let _ = self.caller.send(outcome);
        None
    }

    fn fail(self: Box<Self>, failure: Failure) {
        let _ = self.caller.send(match failure {
            Failure::Effect(error) => O::refused(error),
            failure => Err(failure.into_store_error()),
        });
    }
}

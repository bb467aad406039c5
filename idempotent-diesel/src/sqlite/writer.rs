//! The thread that owns the one connection which writes.
//!
//! What queues while it commits goes into its next transaction, so that the cost of a commit is shared by all who wait for it.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use diesel::{QueryDsl, RunQueryDsl, SqliteConnection, connection::SimpleConnection, dsl::max, result::Error};
use idempotent_core::store::StoreError;

use super::{
    Shared,
    connection::{Reason, is_busy, tune_writer},
    jobs::{Durability, Failure, Job, SweepJob, TouchJob, has_work, recount},
    migrations,
    queue::Popped,
    schema::idempotency_cache,
    transaction::{Attempt, attempt, is_sound},
};

/// A transaction takes no more jobs than this…
const MAX_JOBS: usize = 256;
/// …nor more bytes, unless a single job has more.
const MAX_BYTES: usize = 8 << 20;
/// An effect that failed is often followed by others: for so many batches they do not cost their neighbours a second attempt.
const CAREFUL: u32 = 64;
/// How often it looks for what has expired and writes down what was replayed.
const TICK: Duration = Duration::from_secs(1);
/// How often it makes sure that the ledger is right; rows that others delete are not told to it.
const RECOUNT: Duration = Duration::from_secs(600);
/// While there are requests, a sweep rests for so many times as long as its last step took…
const REST: u32 = 4;
/// …and there are none when there was none for so long.
const QUIET: Duration = Duration::from_millis(10);
/// By how much every start of a writer moves the token counter forward. Claims are not synced to the disk, so a power cut
/// may take the counter back by those since the last answer; this is more than can ever be open.
const TOKEN_GAP: i64 = 1 << 20;

pub(crate) struct Writer {
    shared: Arc<Shared>,
    /// `None` after something went wrong with it; the next batch connects anew.
    connection: Option<SqliteConnection>,
    synchronous: Durability,
    next_tick: Instant,
    next_recount: Instant,
    /// For how many batches more to use savepoints from the start.
    careful: u32,
    /// Steps of sweeps.
    backlog: VecDeque<Box<dyn Job>>,
    /// When the next of them is due.
    next_step: Instant,
    /// When the last request was served.
    last_served: Instant,
}

/// Prepares the file, and returns the connection that did.
pub(crate) fn open(shared: &Shared) -> Result<SqliteConnection, Reason> {
    let mut connection = shared.settings.connect_first()?;
    migrations::migrate(&mut connection)?;
    connection.batch_execute("PRAGMA synchronous = FULL")?;
    connection.batch_execute(&format!("UPDATE idempotency_ledger SET last_token = last_token + {TOKEN_GAP}"))?;
    connection.batch_execute("PRAGMA synchronous = NORMAL")?;
    let last_used: Option<i64> =
        idempotency_cache::table.select(max(idempotency_cache::last_used)).get_result(&mut connection)?;
    shared.touches.start_after(last_used.unwrap_or(0));
    tune_writer(&mut connection)?;
    Ok(connection)
}

impl Writer {
    pub(crate) fn new(shared: Arc<Shared>, connection: SqliteConnection) -> Self {
        Self {
            shared,
            connection: Some(connection),
            synchronous: Durability::Normal,
            next_tick: Instant::now() + TICK,
            next_recount: Instant::now(),
            careful: 0,
            backlog: VecDeque::new(),
            next_step: Instant::now(),
            last_served: Instant::now(),
        }
    }

    /// Works until the queue is closed and empty.
    pub(crate) fn run(mut self) {
        loop {
            let due = match self.backlog.is_empty() {
                true => self.next_tick,
                false => self.next_step,
            };
            let patience = due.saturating_duration_since(Instant::now());
            let (mut jobs, mut bytes) = (0, 0);
            let popped = self.shared.writes.pop_batch(patience, |job| {
                jobs += 1;
                bytes += job.needs().bytes;
                jobs <= MAX_JOBS && bytes <= MAX_BYTES
            });
            let mut jobs = match popped {
                Popped::Items(jobs) => jobs,
                Popped::TimedOut => Vec::new(),
                Popped::Closed => break,
            };
            jobs.retain(|job| !job.is_moot());
            if !jobs.is_empty() {
                self.process(jobs);
                self.last_served = Instant::now();
            }
            if Instant::now() >= self.next_step {
                self.step();
            }
            if Instant::now() >= self.next_tick {
                self.next_tick = Instant::now() + TICK;
                self.tick();
            }
            if Instant::now() >= self.next_recount {
                self.next_recount = Instant::now() + RECOUNT;
                recount(&self.shared);
            }
        }
        self.backlog.clear();
        let mut last = TouchJob::new(&self.shared.touches).map(|touches| Box::new(touches) as Box<dyn Job>);
        while let Some(touches) = last.take() {
            self.process(vec![touches]);
            last = self.backlog.pop_front();
        }
    }

    /// Goes on with a sweep, in a transaction of its own, so that nobody waits for more than the one step.
    fn step(&mut self) {
        let Some(job) = self.backlog.pop_front() else { return };
        let begun = Instant::now();
        let share = match job.is_urgent() {
            _ if self.last_served.elapsed() > QUIET => 0,
            true => 1,
            false => REST,
        };
        self.process(vec![job]);
        self.next_step = Instant::now() + begun.elapsed() * share;
    }

    fn tick(&mut self) {
        if !self.backlog.is_empty() {
            return;
        }
        if let Some(touches) = TouchJob::new(&self.shared.touches) {
            self.backlog.push_back(Box::new(touches));
        }
        let moment = self.shared.moment();
        match self.connection.as_mut().map(|connection| has_work(connection, &moment)) {
            Some(Ok(true)) => self.backlog.push_back(Box::new(SweepJob::background())),
            Some(Err(error)) => tracing::warn!(%error, "the idempotency store could not be looked through"),
            _ => {}
        }
    }

    /// Does all jobs, in as few transactions as they allow, and answers each.
    fn process(&mut self, jobs: Vec<Box<dyn Job>>) {
        self.shared.counters.operations(jobs.len());
        // What need not wait for the disk does not: it goes first, in a transaction of its own.
        let (durable, quick): (Vec<_>, Vec<_>) =
            jobs.into_iter().partition(|job| job.needs().durability == Durability::Full);
        let careful = self.careful > 0;
        self.careful = self.careful.saturating_sub(1);
        let mut pending = VecDeque::from([(quick, careful), (durable, careful)]);
        while let Some((mut jobs, savepoints)) = pending.pop_front() {
            if jobs.is_empty() {
                continue;
            }
            let attempt = self.attempt(&mut jobs, savepoints);
            if !matches!(attempt, Attempt::Committed(_) | Attempt::Unavailable(_)) {
                self.shared.counters.redone();
            }
            match attempt {
                Attempt::Committed(failures) => self.answer(jobs, failures),
                Attempt::NeedsSavepoints => {
                    self.careful = CAREFUL;
                    pending.push_front((jobs, true));
                }
                Attempt::BrokenBy(number, failure) => {
                    if jobs.len() == 1 {
                        fail_all(jobs, || take(&failure));
                        continue;
                    }
                    // The others at once; it alone, and last, so that it can break nobody's work but its own.
                    let culprit = jobs.remove(number);
                    pending.push_front((jobs, savepoints));
                    pending.push_back((vec![culprit], true));
                }
                Attempt::Refused(error) => {
                    if jobs.len() == 1 {
                        fail_all(jobs, || Failure::Effect(error_of(&error)));
                        continue;
                    }
                    let half = jobs.split_off(jobs.len() / 2);
                    pending.push_front((half, savepoints));
                    pending.push_front((jobs, savepoints));
                }
                Attempt::Unavailable(error) => {
                    if !is_busy(&error) {
                        self.connection = None;
                    }
                    tracing::warn!(%error, path = %self.shared.settings.path.display(), "the idempotency store cannot be written");
                    fail_all(jobs, || Failure::Store(StoreError::Unavailable(error_of(&error))));
                }
            }
        }
    }

    fn attempt(&mut self, jobs: &mut [Box<dyn Job>], savepoints: bool) -> Attempt {
        let durability = jobs.iter().map(|job| job.needs().durability).max().unwrap_or(Durability::Normal);
        let shared = self.shared.clone();
        let connection = match self.connect(durability) {
            Ok(connection) => connection,
            Err(error) => return Attempt::Unavailable(error),
        };
        let attempt = attempt(connection, jobs, &shared, savepoints);
        if matches!(attempt, Attempt::Committed(_)) {
            self.shared.counters.commit(durability == Durability::Full);
        } else if matches!(attempt, Attempt::BrokenBy(..)) || !is_sound(connection) {
            self.connection = None;
        }
        attempt
    }

    /// The connection, set so that its next commit is as durable as that.
    fn connect(&mut self, durability: Durability) -> Result<&mut SqliteConnection, Error> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                self.synchronous = Durability::Normal;
                self.shared.settings.connect_writer().map_err(|reason| match reason {
                    Reason::Query(error) => error,
                    other => Error::QueryBuilderError(Box::new(other)),
                })?
            }
        };
        let connection = self.connection.insert(connection);
        if self.synchronous != durability {
            // Between transactions: SQLite ignores it within one.
            connection.batch_execute(match durability {
                Durability::Normal => "PRAGMA synchronous = NORMAL",
                Durability::Full => "PRAGMA synchronous = FULL",
            })?;
            self.synchronous = durability;
        }
        Ok(connection)
    }

    fn answer(&mut self, jobs: Vec<Box<dyn Job>>, failures: Vec<Option<Failure>>) {
        for (job, failure) in jobs.into_iter().zip(failures) {
            match failure {
                None => self.backlog.extend(job.answer()),
                Some(failure) => job.fail(failure),
            }
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Also when it panicked: nobody is to wait for a thread that is no more.
        self.shared.writes.close();
        while self.shared.writes.pop().is_some() {}
    }
}

fn fail_all(jobs: Vec<Box<dyn Job>>, failure: impl Fn() -> Failure) {
    for job in jobs {
        job.fail(failure());
    }
}

fn error_of(error: &Error) -> Box<dyn std::error::Error + Send + Sync> {
    error.to_string().into()
}

fn take(failure: &Failure) -> Failure {
    match failure {
        Failure::Store(StoreError::Corrupt(text)) => Failure::Store(StoreError::Corrupt(text.clone())),
        Failure::Store(error) => Failure::Store(StoreError::unavailable(error.to_string())),
        Failure::Effect(error) => Failure::Effect(error.to_string().into()),
        Failure::Foreign => Failure::Foreign,
    }
}

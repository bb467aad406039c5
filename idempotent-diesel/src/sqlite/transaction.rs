//! One attempt to do a batch of jobs in one transaction.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::{Duration, Instant},
};

use diesel::{
    QueryDsl, QueryResult, RunQueryDsl, SqliteConnection,
    connection::{AnsiTransactionManager, SimpleConnection, TransactionManager},
    result::{DatabaseErrorKind, Error},
};
use idempotent_core::store::StoreError;

use super::{
    Shared,
    connection::is_busy,
    jobs::{Batch, Failure, Job},
    rows::Moment,
    schema::idempotency_guard,
    statements::{CountEntries, ReserveTokens},
    touches::Touches,
};

/// Whether the connection may be used for another attempt.
pub(crate) fn is_sound(connection: &mut SqliteConnection) -> bool {
    let status = <Manager as TransactionManager<SqliteConnection>>::transaction_manager_status_mut(connection);
    matches!(status.transaction_depth(), Ok(None))
}

/// How an attempt ended. All but [`Attempt::Committed`] left nothing behind.
pub(crate) enum Attempt {
    /// Committed; for each job that failed alone, why.
    Committed(Vec<Option<Failure>>),
    /// A job failed that had no savepoint to go back to.
    NeedsSavepoints,
    /// The code of this job ended the transaction, or left it in another state than it found it in.
    BrokenBy(usize, Failure),
    /// SQLite refused the commit for what is in it: a deferred constraint.
    Refused(Error),
    /// The database cannot be written now.
    Unavailable(Error),
}

type Manager = AnsiTransactionManager;

/// The depth of diesel's transaction stack while a batch is open, and while one of its savepoints is.
const IN_BATCH: u32 = 1;
const IN_SAVEPOINT: u32 = 2;

pub(crate) fn attempt(
    connection: &mut SqliteConnection,
    jobs: &mut [Box<dyn Job>],
    shared: &Shared,
    savepoints: bool,
) -> Attempt {
    if let Err(error) = begin(connection, shared.settings.busy_timeout) {
        return Attempt::Unavailable(error);
    }
    // Judged by the time at which the lock was had, not asked for.
    let attempt = run(connection, jobs, shared.moment(), &shared.touches, savepoints);
    let failures = match attempt {
        Ok(failures) => failures,
        Err(attempt) => {
            if !matches!(attempt, Attempt::BrokenBy(..)) {
                // SQLite may have rolled back already. A connection that it leaves in doubt is not used again.
                let _ = Manager::rollback_transaction(connection);
            }
            return attempt;
        }
    };
    match Manager::commit_transaction(connection) {
        Ok(()) => Attempt::Committed(failures),
        Err(error @ Error::DatabaseError(DatabaseErrorKind::ForeignKeyViolation, _)) => Attempt::Refused(error),
        Err(error) => Attempt::Unavailable(error),
    }
}

/// Waits for its turn now, where SQLite does wait, and not in the middle of the transaction, where it does not.
fn begin(connection: &mut SqliteConnection, at_most: Duration) -> QueryResult<()> {
    let deadline = Instant::now() + at_most;
    loop {
        match Manager::begin_transaction_sql(connection, "BEGIN IMMEDIATE") {
            Err(error) if is_busy(&error) && Instant::now() < deadline => {}
            begun => return begun,
        }
    }
}

fn run(
    connection: &mut SqliteConnection,
    jobs: &mut [Box<dyn Job>],
    moment: Moment,
    touches: &Touches,
    savepoints: bool,
) -> Result<Vec<Option<Failure>>, Attempt> {
    let guarded = jobs.iter().any(|job| job.needs().is_foreign);
    if guarded {
        connection.batch_execute("INSERT INTO idempotency_guard (blocked) VALUES (0)").map_err(Attempt::Unavailable)?;
    }
    let tokens = i64::from(jobs.iter().map(|job| job.needs().tokens).sum::<u32>());
    let mut batch = Batch { connection, moment, touches, tokens: 0..0, entries: 0 };
    if tokens > 0 {
        let last: i64 = ReserveTokens { count: &tokens }.get_result(batch.connection).map_err(Attempt::Unavailable)?;
        batch.tokens = last - tokens + 1..last + 1;
    }
    let mut failures = Vec::with_capacity(jobs.len());
    for (number, job) in jobs.iter_mut().enumerate() {
        failures.push(match savepoints {
            true => run_in_savepoint(&mut batch, number, &mut **job)?,
            false => run_plainly(&mut batch, number, &mut **job).map(|()| None)?,
        });
    }
    let entries = batch.entries;
    if entries != 0 {
        CountEntries { delta: &entries }.execute(connection).map_err(Attempt::Unavailable)?;
    }
    if guarded {
        connection.batch_execute("DELETE FROM idempotency_guard").map_err(Attempt::Unavailable)?;
    }
    Ok(failures)
}

/// Most jobs succeed: the price of savepoints is paid by a second attempt when one does not.
fn run_plainly(batch: &mut Batch<'_>, number: usize, job: &mut dyn Job) -> Result<(), Attempt> {
    let foreign = job.needs().is_foreign;
    let outcome = catch_unwind(AssertUnwindSafe(|| job.run(batch)));
    // Whatever follows must not be committed by itself, outside a transaction that foreign code has ended.
    if foreign && !is_intact(batch.connection) {
        let failure = match outcome {
            Ok(Err(failure)) => failure,
            _ => broken("it ended the transaction, or left one of its own open"),
        };
        return Err(Attempt::BrokenBy(number, failure));
    }
    match outcome {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(Attempt::NeedsSavepoints),
    }
}

/// Whether this is the transaction that the batch began, at the depth that it left.
fn is_intact(connection: &mut SqliteConnection) -> bool {
    depth(connection) == Some(IN_BATCH)
        && idempotency_guard::table.select(idempotency_guard::blocked).get_result(connection) == Ok(0_i64)
}

fn run_in_savepoint(batch: &mut Batch<'_>, number: usize, job: &mut dyn Job) -> Result<Option<Failure>, Attempt> {
    Manager::begin_transaction(batch.connection).map_err(Attempt::Unavailable)?;
    let entries = batch.entries;
    let outcome = catch_unwind(AssertUnwindSafe(|| job.run(batch)))
        .unwrap_or_else(|_| Err(StoreError::unavailable("the operation panicked").into()));
    let connection = &mut *batch.connection;
    match outcome {
        Ok(()) if depth(connection) == Some(IN_SAVEPOINT) => match Manager::commit_transaction(connection) {
            Ok(()) => Ok(None),
            Err(error) => Err(Attempt::BrokenBy(number, broken(error))),
        },
        Ok(()) => {
            Err(Attempt::BrokenBy(number, broken("it left a transaction open, or ended one that was not its own")))
        }
        Err(failure) => match roll_back_savepoint(connection) {
            Ok(true) => {
                batch.entries = entries;
                Ok(Some(failure))
            }
            _ => Err(Attempt::BrokenBy(number, failure)),
        },
    }
}

fn broken(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Failure {
    Failure::Effect(format!("an effect broke the transaction that it ran in: {}", cause.into()).into())
}

/// Whether the transaction is as it was before the savepoint.
fn roll_back_savepoint(connection: &mut SqliteConnection) -> QueryResult<bool> {
    // Code that panicked or gave up half-way may have left savepoints of its own.
    while depth(connection).is_some_and(|depth| depth >= IN_SAVEPOINT) {
        Manager::rollback_transaction(connection)?;
    }
    Ok(depth(connection) == Some(IN_BATCH))
}

fn depth(connection: &mut SqliteConnection) -> Option<u32> {
    let status = <Manager as TransactionManager<SqliteConnection>>::transaction_manager_status_mut(connection);
    status.transaction_depth().ok().flatten().map(u32::from)
}

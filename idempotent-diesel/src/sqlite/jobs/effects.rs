//! Writes of the application's own: [`Store::commit`](idempotent_core::store::Store::commit) and `SqliteStore::write`.

use std::{
    any::Any,
    error::Error,
    panic::{AssertUnwindSafe, catch_unwind},
};

use diesel::SqliteConnection;
use idempotent_core::store::{Effect, EffectError, StoreError, StoreResult};
use tokio::sync::oneshot;

use super::{Answer, Batch, Caller, Durability, Failure, Job, Needs, Operation};
use crate::sqlite::connection::is_environmental;

/// Runs effects in order, up to the first that fails.
pub(super) fn run(connection: &mut SqliteConnection, effects: &[Effect<SqliteConnection>]) -> Result<(), Failure> {
    for effect in effects {
        match catch_unwind(AssertUnwindSafe(|| effect(connection))) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(classify(error)),
            Err(panic) => return Err(Failure::Effect(format!("an effect panicked: {}", text_of(&*panic)).into())),
        }
    }
    Ok(())
}

/// An effect that failed since the disk is full has not been refused by the application.
fn classify(error: EffectError) -> Failure {
    let mut cause: Option<&(dyn Error + 'static)> = Some(&*error);
    while let Some(current) = cause {
        if current.downcast_ref::<diesel::result::Error>().is_some_and(is_environmental) {
            return Failure::Store(StoreError::Unavailable(error));
        }
        cause = current.source();
    }
    Failure::Effect(error)
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no message)")
}

pub(crate) struct Committing {
    pub(crate) effects: Vec<Effect<SqliteConnection>>,
}

impl Operation for Committing {
    type Outcome = Result<(), EffectError>;

    fn needs(&self) -> Needs {
        Needs { durability: Durability::Full, is_foreign: true, ..Needs::default() }
    }

    fn run(&self, batch: &mut Batch<'_>) -> Result<Self::Outcome, Failure> {
        run(batch.connection, &self.effects)?;
        Ok(Ok(()))
    }

    fn refused(error: EffectError) -> StoreResult<Self::Outcome> {
        Ok(Err(error))
    }
}

/// How a [`WriteJob`]'s closure ended.
pub(crate) enum Written<T, E> {
    Returned(Result<T, E>),
    Panicked(Box<dyn Any + Send>),
}

pub(crate) struct WriteJob<F, T, E> {
    write: F,
    written: Option<Written<T, E>>,
    caller: Caller<Written<T, E>>,
}

impl<F, T, E> WriteJob<F, T, E> {
    pub(crate) fn new(write: F) -> (Self, Answer<Written<T, E>>) {
        let (caller, answer) = oneshot::channel();
        (Self { write, written: None, caller }, answer)
    }
}

impl<F, T, E> Job for WriteJob<F, T, E>
where
    F: Fn(&mut SqliteConnection) -> Result<T, E> + Send,
    T: Send,
    E: Send,
{
    fn needs(&self) -> Needs {
        Needs { durability: Durability::Full, is_foreign: true, ..Needs::default() }
    }

    fn is_moot(&self) -> bool {
        self.caller.is_closed()
    }

    fn run(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let written = match catch_unwind(AssertUnwindSafe(|| (self.write)(batch.connection))) {
            Ok(returned) => Written::Returned(returned),
            Err(panic) => Written::Panicked(panic),
        };
        let succeeded = matches!(written, Written::Returned(Ok(_)));
        self.written = Some(written);
        if succeeded { Ok(()) } else { Err(Failure::Foreign) }
    }

    fn answer(self: Box<Self>) -> Option<Box<dyn Job>> {
        let written = self.written.ok_or_else(|| StoreError::unavailable("the write was not carried out"));
        let _ = self.caller.send(written);
        None
    }

    fn fail(self: Box<Self>, failure: Failure) {
        let outcome = match (failure, self.written) {
            (Failure::Foreign, Some(written)) => Ok(written),
            (failure, _) => Err(failure.into_store_error()),
        };
        let _ = self.caller.send(outcome);
    }
}

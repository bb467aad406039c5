//! Writes of the application's own: [`Store::commit`](idempotent_core::store::Store::commit) and `SqliteStore::write`.

use std::{
    any::Any,
    error::Error,
    panic::{AssertUnwindSafe, catch_unwind},
};

use diesel::SqliteConnection;
use idempotent_core::store::{Effect, EffectError, StoreError};
use tokio::sync::oneshot;

use super::{Answer, Batch, Durability, Failure, Job, Reply};
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

pub(crate) struct CommitJob {
    effects: Vec<Effect<SqliteConnection>>,
    reply: Reply<Result<(), EffectError>>,
}

impl CommitJob {
    pub(crate) fn new(effects: Vec<Effect<SqliteConnection>>) -> (Self, Answer<Result<(), EffectError>>) {
        let (reply, answer) = Reply::new();
        (Self { effects, reply }, answer)
    }
}

impl Job for CommitJob {
    fn durability(&self) -> Durability {
        Durability::Full
    }

    fn is_foreign(&self) -> bool {
        true
    }

    fn run(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        run(batch.connection, &self.effects)?;
        self.reply.keep(Ok(()));
        Ok(())
    }

    fn answer(self: Box<Self>) -> Option<Box<dyn Job>> {
        self.reply.send();
        None
    }

    fn fail(mut self: Box<Self>, failure: Failure) {
        match failure {
            Failure::Effect(error) => {
                self.reply.keep(Err(error));
                self.reply.send();
            }
            failure => self.reply.fail(failure.into_store_error()),
        }
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
    sender: oneshot::Sender<Result<Written<T, E>, StoreError>>,
}

impl<F, T, E> WriteJob<F, T, E> {
    pub(crate) fn new(write: F) -> (Self, Answer<Written<T, E>>) {
        let (sender, answer) = oneshot::channel();
        (Self { write, written: None, sender }, answer)
    }
}

impl<F, T, E> Job for WriteJob<F, T, E>
where
    F: Fn(&mut SqliteConnection) -> Result<T, E> + Send,
    T: Send,
    E: Send,
{
    fn durability(&self) -> Durability {
        Durability::Full
    }

    fn is_foreign(&self) -> bool {
        true
    }

    fn is_moot(&self) -> bool {
        self.sender.is_closed()
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
        let _ = self.sender.send(written);
        None
    }

    fn fail(self: Box<Self>, failure: Failure) {
        let outcome = match (failure, self.written) {
            (Failure::Foreign, Some(written)) => Ok(written),
            (failure, _) => Err(failure.into_store_error()),
        };
        let _ = self.sender.send(outcome);
    }
}

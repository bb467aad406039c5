//! The threads that read, each with a connection of its own: a read never waits for the writer.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use diesel::{SqliteConnection, connection::SimpleConnection};
use tokio::sync::oneshot;

use super::{Shared, connection::Reason};

type Read = Box<dyn FnOnce(Result<&mut SqliteConnection, Reason>) + Send>;

/// Something to be read.
pub(crate) struct ReadJob {
    /// It is told when there is no connection to read with.
    pub(crate) read: Read,
    /// Whether it runs code that others wrote.
    pub(crate) foreign: bool,
}

/// Reads until the queue is closed and empty.
pub(crate) fn run(shared: &Arc<Shared>, opened: oneshot::Sender<Result<(), Reason>>) {
    let mut connection = match shared.settings.connect_reader() {
        Ok(connection) => {
            let _ = opened.send(Ok(()));
            Some(connection)
        }
        Err(reason) => {
            let _ = opened.send(Err(reason));
            return;
        }
    };
    while let Some(job) = shared.reads.pop() {
        if connection.is_none() {
            match shared.settings.connect_reader() {
                Ok(fresh) => connection = Some(fresh),
                Err(reason) => {
                    (job.read)(Err(reason));
                    continue;
                }
            }
        }
        if let Some(open) = connection.as_mut() {
            let foreign = job.foreign;
            // A job catches the panics of the code it was given; this is for what nobody thought of.
            let panicked = catch_unwind(AssertUnwindSafe(|| (job.read)(Ok(open)))).is_err();
            if panicked || (foreign && open.batch_execute("ROLLBACK").is_ok()) {
                // It left a transaction open, which would go on reading yesterday's rows.
                connection = None;
            }
        }
    }
}

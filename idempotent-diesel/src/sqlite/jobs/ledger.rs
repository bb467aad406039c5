//! The number of entries, which the eviction goes by, made sure of.

use std::sync::Arc;

use diesel::{QueryDsl, QueryResult, RunQueryDsl, SqliteConnection, dsl::count_star};

use super::{Batch, Failure, Job};
use crate::sqlite::{
    Shared,
    readers::ReadJob,
    schema::{idempotency_cache, idempotency_ledger},
    statements::CountEntries,
};

/// Counts the entries, on a reading thread since that takes a while, and lets the writer correct the ledger if need be.
pub(crate) fn recount(shared: &Arc<Shared>) {
    let writer = shared.clone();
    let count = move |connection: Result<&mut SqliteConnection, _>| {
        let Ok(connection) = connection else { return };
        match drift(connection) {
            Ok(0) => {}
            // A difference holds good whatever has been counted in and out since.
            Ok(delta) => drop(writer.writes.push(Box::new(CorrectJob { delta }))),
            Err(error) => tracing::warn!(%error, "the entries of the idempotency store could not be counted"),
        }
    };
    // A queue that is closed needs no count.
    let _ = shared.reads.push(ReadJob { read: Box::new(count), foreign: false });
}

/// By how much the ledger counts too few.
fn drift(connection: &mut SqliteConnection) -> QueryResult<i64> {
    let counted = idempotency_cache::table.select(count_star()).single_value();
    let (noted, counted): (i64, Option<i64>) =
        idempotency_ledger::table.find(1).select((idempotency_ledger::entries, counted)).get_result(connection)?;
    Ok(counted.unwrap_or(0) - noted)
}

struct CorrectJob {
    delta: i64,
}

impl Job for CorrectJob {
    fn run(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        CountEntries { delta: &self.delta }.execute(batch.connection)?;
        Ok(())
    }

    fn answer(self: Box<Self>) -> Option<Box<dyn Job>> {
        None
    }

    fn fail(self: Box<Self>, failure: Failure) {
        let error = failure.into_store_error();
        tracing::warn!(%error, "the ledger of the idempotency store could not be corrected");
    }
}

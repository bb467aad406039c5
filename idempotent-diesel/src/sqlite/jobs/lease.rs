//! [`Store::renew`](idempotent_core::store::Store::renew) and [`Store::release`](idempotent_core::store::Store::release).

use std::time::Duration;

use diesel::{OptionalExtension, RunQueryDsl};
use idempotent_core::store::Claim;

use super::{Answer, Batch, Failure, Job, Reply};
use crate::sqlite::{
    rows::RowKey,
    statements::{DeleteClaim, DiscardChunks, RenewClaim},
};

/// Removes a claim, if it is still the current one, and gives its chunks to the sweep.
pub(super) fn remove_claim(batch: &mut Batch<'_>, key: &RowKey<'_>, token: i64) -> Result<bool, Failure> {
    let removed: Option<i64> = DeleteClaim { scope: key.scope, message_id: &key.message_id, token: &token }
        .get_result(batch.connection)
        .optional()?;
    if removed.is_some_and(|chunks| chunks > 0) {
        DiscardChunks { token: &token }.execute(batch.connection)?;
    }
    Ok(removed.is_some())
}

pub(crate) struct RenewJob {
    claim: Claim,
    lease: Duration,
    reply: Reply<bool>,
}

impl RenewJob {
    pub(crate) fn new(claim: Claim, lease: Duration) -> (Self, Answer<bool>) {
        let (reply, answer) = Reply::new();
        (Self { claim, lease, reply }, answer)
    }
}

impl Job for RenewJob {
    fn run(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let key = RowKey::of(&self.claim.key);
        let renewed = RenewClaim {
            lease_until: &batch.moment.lease_until(self.lease),
            scope: key.scope,
            message_id: &key.message_id,
            token: &self.claim.token.0,
        }
        .execute(batch.connection)?;
        self.reply.keep(renewed == 1);
        Ok(())
    }

    fn answer(self: Box<Self>) -> Option<Box<dyn Job>> {
        self.reply.send();
        None
    }

    fn fail(self: Box<Self>, failure: Failure) {
        self.reply.fail(failure.into_store_error());
    }
}

pub(crate) struct ReleaseJob {
    claim: Claim,
    reply: Reply<()>,
}

impl ReleaseJob {
    pub(crate) fn new(claim: Claim) -> (Self, Answer<()>) {
        let (reply, answer) = Reply::new();
        (Self { claim, reply }, answer)
    }
}

impl Job for ReleaseJob {
    fn run(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        remove_claim(batch, &RowKey::of(&self.claim.key), self.claim.token.0)?;
        self.reply.keep(());
        Ok(())
    }

    fn answer(self: Box<Self>) -> Option<Box<dyn Job>> {
        self.reply.send();
        None
    }

    fn fail(self: Box<Self>, failure: Failure) {
        self.reply.fail(failure.into_store_error());
    }
}

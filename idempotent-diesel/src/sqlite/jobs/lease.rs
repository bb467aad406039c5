//! [`Store::renew`](idempotent_core::store::Store::renew) and [`Store::release`](idempotent_core::store::Store::release).

use std::time::Duration;

use diesel::{OptionalExtension, RunQueryDsl};
use idempotent_core::store::Claim;

use super::{Batch, Failure, Operation};
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

pub(crate) struct Renewing {
    pub(crate) claim: Claim,
    pub(crate) lease: Duration,
}

impl Operation for Renewing {
    type Outcome = bool;

    fn run(&self, batch: &mut Batch<'_>) -> Result<bool, Failure> {
        let key = RowKey::of(&self.claim.key);
        let renewed = RenewClaim {
            lease_until: &batch.moment.lease_until(self.lease),
            scope: key.scope,
            message_id: &key.message_id,
            token: &self.claim.token.0,
        }
        .execute(batch.connection)?;
        Ok(renewed == 1)
    }
}

pub(crate) struct Releasing {
    pub(crate) claim: Claim,
}

impl Operation for Releasing {
    type Outcome = ();

    fn run(&self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        remove_claim(batch, &RowKey::of(&self.claim.key), self.claim.token.0)?;
        Ok(())
    }
}

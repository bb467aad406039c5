//! [`Store::claim`](idempotent_core::store::Store::claim).

use diesel::RunQueryDsl;
use idempotent_core::store::{Claim, ClaimOutcome, ClaimRequest, ClaimToken, Occupant, OnTakeover, StoreError};

use super::{Batch, Durability, Failure, Needs, Operation, complete::remove_entry, lease::remove_claim};
use crate::sqlite::{
    rows::{ClaimRow, EntryRow, RowKey, encode_on_takeover, hex},
    statements::InsertClaim,
};

pub(crate) struct Claiming {
    pub(crate) request: ClaimRequest,
}

impl Claiming {
    fn won(&self, token: i64, attempt: i64) -> ClaimOutcome {
        ClaimOutcome::Won(Claim {
            key: self.request.key.clone(),
            token: ClaimToken(token),
            attempt: u32::try_from(attempt).unwrap_or(u32::MAX),
        })
    }

    /// Whether the key was vacant.
    fn insert(&self, batch: &mut Batch<'_>, key: &RowKey<'_>, token: i64, attempt: i64) -> Result<bool, Failure> {
        let moment = batch.moment;
        let inserted = InsertClaim {
            scope: key.scope,
            message_id: &key.message_id,
            token: &token,
            attempt: &attempt,
            nonce: self.request.nonce.as_bytes(),
            request_hash: &hex(&self.request.request_hash),
            method: &self.request.operation,
            on_takeover: &encode_on_takeover(self.request.on_takeover),
            claimed_at: &i64::try_from(moment.now_seconds()).unwrap_or(i64::MAX),
            lease_until: &moment.lease_until(self.request.lease),
        }
        .execute(batch.connection)?;
        Ok(inserted == 1)
    }

    /// What is under a key that is not simply empty; makes way when it is vacant nevertheless.
    fn meet(&self, batch: &mut Batch<'_>, key: &RowKey<'_>, token: i64) -> Result<ClaimOutcome, Failure> {
        if let Some(entry) = EntryRow::load(batch.connection, key)? {
            if !entry.has_expired(&batch.moment)? {
                return Ok(ClaimOutcome::Occupied(Occupant::Completed(entry.decode()?)));
            }
            remove_entry(batch, key, &entry)?;
        }
        let mut attempt = 1;
        if let Some(claim) = ClaimRow::load(batch.connection, key)? {
            if claim.nonce == self.request.nonce.as_bytes() {
                return Ok(self.won(claim.token, claim.attempt));
            }
            if let Some(occupant) = claim.occupant(&batch.moment)? {
                return Ok(ClaimOutcome::Occupied(occupant));
            }
            remove_claim(batch, key, claim.token)?;
            attempt = claim.attempt.saturating_add(1);
        }
        if !self.insert(batch, key, token, attempt)? {
            return Err(StoreError::Corrupt("a key that holds nothing cannot be claimed".into()).into());
        }
        Ok(self.won(token, attempt))
    }
}

impl Operation for Claiming {
    type Outcome = ClaimOutcome;

    const NEEDS_ITS_CALLER: bool = true;

    fn needs(&self) -> Needs {
        let durability = match self.request.on_takeover {
            OnTakeover::Run => Durability::Normal,
            OnTakeover::Refuse => Durability::Full,
        };
        let bytes = 256 + 2 * self.request.key.scope.as_stored().len();
        Needs { durability, tokens: 1, bytes, is_foreign: false }
    }

    fn run(&self, batch: &mut Batch<'_>) -> Result<ClaimOutcome, Failure> {
        let key = RowKey::of(&self.request.key);
        let token = batch.token()?;
        if self.insert(batch, &key, token, 1)? { Ok(self.won(token, 1)) } else { self.meet(batch, &key, token) }
    }
}

//! [`Store::complete`](idempotent_core::store::Store::complete).

use bytes::Bytes;
use diesel::{ExpressionMethods, OptionalExtension, QueryDsl, RunQueryDsl, SqliteConnection};
use idempotent_core::store::{CompleteOutcome, Completion, EffectError, StoreError, StoreResult, StoredBody};

use super::{Batch, Durability, Failure, Needs, Operation, effects};
use crate::sqlite::{
    headers,
    rows::{CHUNKED, EntryRow, NOT_RETAINED, RowKey, WHOLE, hex},
    statements::{DeleteClaim, DeleteSimpleClaim, DiscardChunks, PutEntry},
};

/// Removes an entry that has expired, and gives its chunks to the sweep.
pub(super) fn remove_entry(batch: &mut Batch<'_>, key: &RowKey<'_>, entry: &EntryRow) -> Result<(), Failure> {
    use crate::sqlite::schema::idempotency_cache::dsl::*;
    let row = idempotency_cache.filter(scope.eq(key.scope)).filter(message_id.eq(&key.message_id));
    let removed = diesel::delete(row).execute(batch.connection)?;
    batch.entries -= i64::try_from(removed).unwrap_or(0);
    if entry.is_chunked() {
        DiscardChunks { token: &entry.token() }.execute(batch.connection)?;
    }
    Ok(())
}

pub(crate) struct Completing {
    pub(crate) completion: Completion<SqliteConnection>,
}

impl Completing {
    /// What became of a claim that is not the current one.
    fn without_claim(&self, batch: &mut Batch<'_>, key: &RowKey<'_>) -> Result<CompleteOutcome, Failure> {
        use crate::sqlite::schema::idempotency_cache::dsl::*;
        let stored: Option<i64> = idempotency_cache
            .select(claim_token)
            .filter(scope.eq(key.scope))
            .filter(message_id.eq(&key.message_id))
            .get_result(batch.connection)
            .optional()?;
        Ok(if stored == Some(self.completion.claim.token.0) {
            CompleteOutcome::Stored
        } else {
            CompleteOutcome::Superseded
        })
    }

    fn put(&self, batch: &mut Batch<'_>, key: &RowKey<'_>) -> Result<(), Failure> {
        let response = &self.completion.response;
        let none = Bytes::new();
        let (kind, chunks, size, bytes) = match &response.body {
            StoredBody::Whole(bytes) => (WHOLE, 0, 0, bytes),
            StoredBody::Chunked { chunks, rest, .. } => (CHUNKED, *chunks, 0, rest),
            StoredBody::NotRetained { bytes } => (NOT_RETAINED, 0, i64::try_from(*bytes).unwrap_or(i64::MAX), &none),
        };
        let headers = headers::encode(&response.headers).map_err(StoreError::unavailable)?;
        PutEntry {
            scope: key.scope,
            message_id: &key.message_id,
            request_hash: &hex(&self.completion.request_hash),
            method: &self.completion.operation,
            response_status: &i64::from(response.status.as_u16()),
            response_headers: &headers,
            inserted_at: &i64::try_from(batch.moment.now_seconds()).unwrap_or(i64::MAX),
            last_used: &batch.mark(),
            claim_token: &self.completion.claim.token.0,
            body_kind: &kind,
            body_chunks: &i64::from(chunks),
            body_bytes: &size,
            response_body: bytes,
        }
        .execute(batch.connection)?;
        batch.entries += 1;
        Ok(())
    }
}

impl Operation for Completing {
    type Outcome = CompleteOutcome;

    fn needs(&self) -> Needs {
        let body = match &self.completion.response.body {
            StoredBody::Whole(bytes) | StoredBody::Chunked { rest: bytes, .. } => bytes.len(),
            StoredBody::NotRetained { .. } => 0,
        };
        Needs {
            durability: Durability::Full,
            tokens: 0,
            bytes: 512 + body + 2 * self.completion.claim.key.scope.as_stored().len(),
            is_foreign: !self.completion.effects.is_empty(),
        }
    }

    fn run(&self, batch: &mut Batch<'_>) -> Result<CompleteOutcome, Failure> {
        let key = RowKey::of(&self.completion.claim.key);
        let token = self.completion.claim.token.0;
        let (scope, message_id) = (key.scope, key.message_id.as_str());
        let simple = DeleteSimpleClaim { scope, message_id, token: &token }.execute(batch.connection)? == 1;
        let chunks = match simple {
            true => Some(0),
            false => DeleteClaim { scope, message_id, token: &token }.get_result(batch.connection).optional()?,
        };
        let Some(chunks) = chunks else {
            return self.without_claim(batch, &key);
        };
        effects::run(batch.connection, &self.completion.effects)?;
        self.put(batch, &key)?;
        if chunks > 0 && !matches!(self.completion.response.body, StoredBody::Chunked { .. }) {
            DiscardChunks { token: &token }.execute(batch.connection)?;
        }
        Ok(CompleteOutcome::Stored)
    }

    fn refused(error: EffectError) -> StoreResult<CompleteOutcome> {
        Ok(CompleteOutcome::EffectFailed(error))
    }
}

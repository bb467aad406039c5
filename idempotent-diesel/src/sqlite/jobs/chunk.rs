//! [`Store::append_chunk`](idempotent_core::store::Store::append_chunk).

use bytes::Bytes;
use diesel::RunQueryDsl;
use idempotent_core::store::Claim;

use super::{Batch, Failure, Needs, Operation};
use crate::sqlite::{
    rows::RowKey,
    statements::{CountChunks, PutChunk},
};

pub(crate) struct Appending {
    pub(crate) claim: Claim,
    pub(crate) index: u32,
    pub(crate) bytes: Bytes,
}

impl Operation for Appending {
    type Outcome = bool;

    fn needs(&self) -> Needs {
        Needs { bytes: 256 + self.bytes.len(), ..Needs::default() }
    }

    fn run(&self, batch: &mut Batch<'_>) -> Result<bool, Failure> {
        let (key, token) = (RowKey::of(&self.claim.key), self.claim.token.0);
        let chunks = i64::from(self.index) + 1;
        let current = CountChunks { chunks: &chunks, scope: key.scope, message_id: &key.message_id, token: &token }
            .execute(batch.connection)?
            == 1;
        if current {
            PutChunk { token: &token, number: &i64::from(self.index), bytes: &self.bytes }.execute(batch.connection)?;
        }
        Ok(current)
    }
}

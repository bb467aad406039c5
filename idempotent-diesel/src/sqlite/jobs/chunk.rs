//! [`Store::append_chunk`](idempotent_core::store::Store::append_chunk).

use bytes::Bytes;
use diesel::RunQueryDsl;
use idempotent_core::store::Claim;

use super::{Answer, Batch, Failure, Job, Reply};
use crate::sqlite::{
    rows::RowKey,
    statements::{CountChunks, PutChunk},
};

pub(crate) struct AppendJob {
    claim: Claim,
    index: u32,
    bytes: Bytes,
    reply: Reply<bool>,
}

impl AppendJob {
    pub(crate) fn new(claim: Claim, index: u32, bytes: Bytes) -> (Self, Answer<bool>) {
        let (reply, answer) = Reply::new();
        (Self { claim, index, bytes, reply }, answer)
    }
}

impl Job for AppendJob {
    fn bytes(&self) -> usize {
        256 + self.bytes.len()
    }

    fn run(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let (key, token) = (RowKey::of(&self.claim.key), self.claim.token.0);
        let chunks = i64::from(self.index) + 1;
        let current = CountChunks { chunks: &chunks, scope: key.scope, message_id: &key.message_id, token: &token }
            .execute(batch.connection)?
            == 1;
        if current {
            PutChunk { token: &token, number: &i64::from(self.index), bytes: &self.bytes }.execute(batch.connection)?;
        }
        self.reply.keep(current);
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

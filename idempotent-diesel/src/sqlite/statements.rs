//! The writes of every request, each prepared once per connection.
//!
//! Diesel prepares `UPDATE`s, upserts and `sql_query`s anew at every call. A query fragment of our own with a static id is
//! kept, as diesel keeps its own.

use diesel::{
    QueryResult, RunQueryDsl, SqliteConnection,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    sql_types::{BigInt, Binary, Text},
    sqlite::Sqlite,
};

/// Defines a statement: its fields, its SQL, and the fields for the `?`s of the SQL in their order.
macro_rules! statement {
    (
        $(#[$meta:meta])*
        $name:ident { $($field:ident: $kind:ty),* $(,)? }
        $sql:literal [$($bind:ident: $sql_type:ty),* $(,)?]
        $(-> $row:ty)?
    ) => {
        $(#[$meta])*
        #[derive(Debug)]
        pub(crate) struct $name<'a> {
            $(pub(crate) $field: &'a $kind,)*
        }

        const _: () = {
            #[derive(Debug)]
            pub(crate) enum Id {}

            impl QueryId for $name<'_> {
                type QueryId = Id;
                const HAS_STATIC_QUERY_ID: bool = true;
            }

            impl QueryFragment<Sqlite> for $name<'_> {
                fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Sqlite>) -> QueryResult<()> {
                    let mut pieces = $sql.split('?');
                    out.push_sql(pieces.next().unwrap_or_default());
                    $(
                        out.push_bind_param::<$sql_type, _>(self.$bind)?;
                        out.push_sql(pieces.next().unwrap_or_default());
                    )*
                    Ok(())
                }
            }

            impl RunQueryDsl<SqliteConnection> for $name<'_> {}

            $(
                impl Query for $name<'_> {
                    type SqlType = $row;
                }
            )?
        };
    };
}

statement! {
    /// Reserves tokens for the claims of a batch; returns the last of them.
    ReserveTokens { count: i64 }
    "UPDATE idempotency_ledger SET last_token = last_token + ? WHERE id = 1 RETURNING last_token"
    [count: BigInt] -> BigInt
}

statement! {
    /// Counts the entries that a batch added or removed.
    CountEntries { delta: i64 }
    "UPDATE idempotency_ledger SET entries = entries + ? WHERE id = 1"
    [delta: BigInt]
}

statement! {
    /// Claims a key under which there is nothing at all, else does nothing.
    InsertClaim {
        scope: str, message_id: str, token: i64, attempt: i64, nonce: [u8], request_hash: str, method: str,
        on_takeover: i64, claimed_at: i64, lease_until: i64,
    }
    "INSERT INTO idempotency_claim (scope, message_id, token, attempt, nonce, request_hash, method, on_takeover, \
     claimed_at, lease_until, chunks) SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0 WHERE NOT EXISTS \
     (SELECT 1 FROM idempotency_cache WHERE scope = ? AND message_id = ?) ON CONFLICT DO NOTHING"
    [
        scope: Text, message_id: Text, token: BigInt, attempt: BigInt, nonce: Binary, request_hash: Text, method: Text,
        on_takeover: BigInt, claimed_at: BigInt, lease_until: BigInt, scope: Text, message_id: Text,
    ]
}

statement! {
    /// Lets a claim last longer, if it is the current one.
    RenewClaim { lease_until: i64, scope: str, message_id: str, token: i64 }
    "UPDATE idempotency_claim SET lease_until = ? WHERE scope = ? AND message_id = ? AND token = ?"
    [lease_until: BigInt, scope: Text, message_id: Text, token: BigInt]
}

statement! {
    /// Notes that a claim has chunks, if it is the current one.
    CountChunks { chunks: i64, scope: str, message_id: str, token: i64 }
    "UPDATE idempotency_claim SET chunks = max(chunks, ?) WHERE scope = ? AND message_id = ? AND token = ?"
    [chunks: BigInt, scope: Text, message_id: Text, token: BigInt]
}

statement! {
    /// Writes a chunk.
    PutChunk { token: i64, number: i64, bytes: [u8] }
    "INSERT OR REPLACE INTO idempotency_chunk (token, number, bytes) VALUES (?, ?, ?)"
    [token: BigInt, number: BigInt, bytes: Binary]
}

statement! {
    /// Removes a claim, if it is the current one and has no chunks.
    DeleteSimpleClaim { scope: str, message_id: str, token: i64 }
    "DELETE FROM idempotency_claim WHERE scope = ? AND message_id = ? AND token = ? AND chunks = 0"
    [scope: Text, message_id: Text, token: BigInt]
}

statement! {
    /// Removes a claim, if it is the current one; returns how many chunks it has.
    DeleteClaim { scope: str, message_id: str, token: i64 }
    "DELETE FROM idempotency_claim WHERE scope = ? AND message_id = ? AND token = ? RETURNING chunks"
    [scope: Text, message_id: Text, token: BigInt] -> BigInt
}

statement! {
    /// Writes an entry. Whoever held the claim may overwrite what might be there.
    PutEntry {
        scope: str, message_id: str, request_hash: str, method: str, response_status: i64, response_headers: [u8],
        inserted_at: i64, last_used: i64, claim_token: i64, body_kind: i64, body_chunks: i64, body_bytes: i64,
        response_body: [u8],
    }
    "INSERT INTO idempotency_cache (scope, message_id, request_hash, method, response_status, response_headers, \
     inserted_at, last_used, claim_token, body_kind, body_chunks, body_bytes, response_body) \
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (scope, message_id) DO UPDATE SET \
     request_hash = excluded.request_hash, method = excluded.method, response_status = excluded.response_status, \
     response_headers = excluded.response_headers, inserted_at = excluded.inserted_at, last_used = excluded.last_used, \
     claim_token = excluded.claim_token, body_kind = excluded.body_kind, body_chunks = excluded.body_chunks, \
     body_bytes = excluded.body_bytes, response_body = excluded.response_body"
    [
        scope: Text, message_id: Text, request_hash: Text, method: Text, response_status: BigInt,
        response_headers: Binary, inserted_at: BigInt, last_used: BigInt, claim_token: BigInt, body_kind: BigInt,
        body_chunks: BigInt, body_bytes: BigInt, response_body: Binary,
    ]
}

statement! {
    /// Moves an entry to the young end of the eviction order.
    TouchEntry { last_used: i64, scope: str, message_id: str }
    "UPDATE idempotency_cache SET last_used = ? WHERE scope = ? AND message_id = ? AND last_used < ?"
    [last_used: BigInt, scope: Text, message_id: Text, last_used: BigInt]
}

statement! {
    /// Gives the chunks of a claim to the sweep.
    DiscardChunks { token: i64 }
    "INSERT OR IGNORE INTO idempotency_garbage (token) VALUES (?)"
    [token: BigInt]
}

statement! {
    /// Removes some of the entries that were inserted before `cutoff`; returns token and kind of body of each.
    RemoveExpired { cutoff: i64, step: i64 }
    "DELETE FROM idempotency_cache WHERE rowid IN (SELECT rowid FROM idempotency_cache WHERE inserted_at < ? \
     ORDER BY inserted_at LIMIT ?) RETURNING claim_token, body_kind"
    [cutoff: BigInt, step: BigInt] -> (BigInt, BigInt)
}

statement! {
    /// Removes the entries that were used longest ago; returns token and kind of body of each.
    EvictEntries { step: i64 }
    "DELETE FROM idempotency_cache WHERE rowid IN (SELECT rowid FROM idempotency_cache ORDER BY last_used LIMIT ?) \
     RETURNING claim_token, body_kind"
    [step: BigInt] -> (BigInt, BigInt)
}

statement! {
    /// Removes some of a token's chunks: at 64 KiB each, about 1 MiB.
    RemoveChunks { token: i64 }
    "DELETE FROM idempotency_chunk WHERE rowid IN (SELECT rowid FROM idempotency_chunk WHERE token = ? LIMIT 16)"
    [token: BigInt]
}

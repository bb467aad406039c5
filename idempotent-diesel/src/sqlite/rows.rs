//! Rows read back: what is no valid row is [`StoreError::Corrupt`], never a vacant key.

use std::time::Duration;

use diesel::{ExpressionMethods, OptionalExtension, QueryDsl, QueryResult, Queryable, RunQueryDsl, SqliteConnection};
use http::StatusCode;
use idempotent_core::{
    Key, RequestHash,
    store::{ClaimToken, Entry, Occupant, OnTakeover, Retention, StoreError, StoreResult, StoredBody, StoredResponse},
};

use super::headers;

/// `body_kind` of [`StoredBody::Whole`]. No kind is 0, as which SQLite reads text that is no number.
pub(crate) const WHOLE: i64 = 1;
/// `body_kind` of [`StoredBody::Chunked`].
pub(crate) const CHUNKED: i64 = 2;
/// `body_kind` of [`StoredBody::NotRetained`].
pub(crate) const NOT_RETAINED: i64 = 3;

/// A key in the form that its rows have.
#[derive(Debug)]
pub(crate) struct RowKey<'a> {
    pub(crate) scope: &'a str,
    pub(crate) message_id: String,
}

impl<'a> RowKey<'a> {
    pub(crate) fn of(key: &'a Key) -> Self {
        Self { scope: key.scope.as_stored(), message_id: key.message_id.to_string() }
    }
}

/// The moment at which rows are judged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) now_millis: u64,
    pub(crate) retention: Retention,
}

impl Moment {
    pub(crate) fn now_seconds(&self) -> u64 {
        self.now_millis / 1000
    }

    pub(crate) fn lease_until(&self, lease: Duration) -> i64 {
        let lease = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
        i64::try_from(self.now_millis.saturating_add(lease)).unwrap_or(i64::MAX)
    }
}

#[derive(Debug, Queryable)]
pub(crate) struct EntryRow {
    request_hash: String,
    method: String,
    response_status: i64,
    response_headers: Vec<u8>,
    inserted_at: i64,
    claim_token: i64,
    body_kind: i64,
    body_chunks: i64,
    body_bytes: i64,
    response_body: Vec<u8>,
}

impl EntryRow {
    pub(crate) fn load(connection: &mut SqliteConnection, key: &RowKey<'_>) -> QueryResult<Option<Self>> {
        use super::schema::idempotency_cache::dsl::*;
        idempotency_cache
            .select((
                request_hash,
                method,
                response_status,
                response_headers,
                inserted_at,
                claim_token,
                body_kind,
                body_chunks,
                body_bytes,
                response_body,
            ))
            .filter(scope.eq(key.scope))
            .filter(message_id.eq(&key.message_id))
            .get_result(connection)
            .optional()
    }

    pub(crate) fn token(&self) -> i64 {
        self.claim_token
    }

    pub(crate) fn is_chunked(&self) -> bool {
        self.body_kind == CHUNKED
    }

    pub(crate) fn has_expired(&self, moment: &Moment) -> StoreResult<bool> {
        // SQLite reads text that is no number as 0, which must not pass for "long ago".
        let inserted_at = u64::try_from(self.inserted_at)
            .ok()
            .filter(|seconds| *seconds > 0)
            .ok_or_else(|| corrupt("inserted_at", &self.inserted_at))?;
        Ok(moment.retention.has_passed(inserted_at, moment.now_seconds()))
    }

    pub(crate) fn decode(self) -> StoreResult<Entry> {
        let status = u16::try_from(self.response_status)
            .ok()
            .and_then(|status| StatusCode::from_u16(status).ok())
            .ok_or_else(|| corrupt("response_status", &self.response_status))?;
        let headers = headers::decode(&self.response_headers).map_err(|error| corrupt("response_headers", &error))?;
        let body = match (self.body_kind, u32::try_from(self.body_chunks)) {
            (WHOLE, Ok(0)) => StoredBody::Whole(self.response_body.into()),
            (CHUNKED, Ok(chunks)) if chunks > 0 => {
                StoredBody::Chunked { token: ClaimToken(self.claim_token), chunks, rest: self.response_body.into() }
            }
            (NOT_RETAINED, _) => {
                let bytes = u64::try_from(self.body_bytes).map_err(|_| corrupt("body_bytes", &self.body_bytes))?;
                StoredBody::NotRetained { bytes }
            }
            (kind, _) => return Err(corrupt("body_kind", &format_args!("{kind} with {} chunks", self.body_chunks))),
        };
        Ok(Entry {
            request_hash: self.request_hash.parse().map_err(|error| corrupt("request_hash", &error))?,
            operation: self.method,
            response: StoredResponse { status, headers, body },
            inserted_at: u64::try_from(self.inserted_at).map_err(|_| corrupt("inserted_at", &self.inserted_at))?,
        })
    }
}

#[derive(Debug, Queryable)]
pub(crate) struct ClaimRow {
    pub(crate) token: i64,
    pub(crate) attempt: i64,
    pub(crate) nonce: Vec<u8>,
    request_hash: String,
    method: String,
    on_takeover: i64,
    claimed_at: i64,
    lease_until: i64,
}

impl ClaimRow {
    pub(crate) fn load(connection: &mut SqliteConnection, key: &RowKey<'_>) -> QueryResult<Option<Self>> {
        use super::schema::idempotency_claim::dsl::*;
        idempotency_claim
            .select((token, attempt, nonce, request_hash, method, on_takeover, claimed_at, lease_until))
            .filter(scope.eq(key.scope))
            .filter(message_id.eq(&key.message_id))
            .get_result(connection)
            .optional()
    }

    /// What the claim is to those who meet it, `None` when they may take it over.
    pub(crate) fn occupant(&self, moment: &Moment) -> StoreResult<Option<Occupant>> {
        // SQLite reads text that is no number as 0, which must not pass for a lease that ended long ago.
        let number = |column, value: i64| match u64::try_from(value) {
            Ok(number) if number > 0 => Ok(number),
            _ => Err(corrupt_claim(column, &value)),
        };
        let request_hash = self.request_hash.parse().map_err(|error| corrupt_claim("request_hash", &error))?;
        let operation = self.method.clone();
        let lease_until = number("lease_until", self.lease_until)?;
        let claimed_at = number("claimed_at", self.claimed_at)?;
        let on_takeover = decode_on_takeover(self.on_takeover)?;
        if moment.now_millis < lease_until {
            let lease_left = Duration::from_millis(lease_until - moment.now_millis);
            return Ok(Some(Occupant::InFlight { request_hash, operation, lease_left }));
        }
        let refused =
            on_takeover == OnTakeover::Refuse && !moment.retention.has_passed(claimed_at, moment.now_seconds());
        Ok(refused.then_some(Occupant::Abandoned { request_hash, operation }))
    }
}

/// The hash in the form that its column has.
pub(crate) fn hex(hash: &RequestHash) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
    hash.as_bytes().iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

pub(crate) fn encode_on_takeover(on_takeover: OnTakeover) -> i64 {
    match on_takeover {
        OnTakeover::Run => 1,
        OnTakeover::Refuse => 2,
    }
}

fn decode_on_takeover(stored: i64) -> StoreResult<OnTakeover> {
    match stored {
        1 => Ok(OnTakeover::Run),
        2 => Ok(OnTakeover::Refuse),
        other => Err(corrupt_claim("on_takeover", &other)),
    }
}

/// What stands under a key. Several statements: meant for a transaction, or for an entry that is there.
pub(crate) fn occupant(
    connection: &mut SqliteConnection,
    key: &RowKey<'_>,
    moment: &Moment,
) -> StoreResult<Option<Occupant>> {
    if let Some(entry) = live_entry(connection, key, moment)? {
        return Ok(Some(Occupant::Completed(entry)));
    }
    match ClaimRow::load(connection, key).map_err(store_error)? {
        Some(claim) => claim.occupant(moment),
        None => Ok(None),
    }
}

/// The entry under a key, if it has not expired.
pub(crate) fn live_entry(
    connection: &mut SqliteConnection,
    key: &RowKey<'_>,
    moment: &Moment,
) -> StoreResult<Option<Entry>> {
    match EntryRow::load(connection, key).map_err(store_error)? {
        Some(row) if !row.has_expired(moment)? => Ok(Some(row.decode()?)),
        _ => Ok(None),
    }
}

/// What a failed query means: a row that is not of its table's shape is corrupt, all else is a database that does not answer.
pub(crate) fn store_error(error: diesel::result::Error) -> StoreError {
    match error {
        diesel::result::Error::DeserializationError(error) => {
            StoreError::Corrupt(format!("a row of an idempotency_ table: {error}"))
        }
        error => StoreError::unavailable(error),
    }
}

fn corrupt(column: &str, value: &dyn std::fmt::Display) -> StoreError {
    StoreError::Corrupt(format!("idempotency_cache.{column}: {value}"))
}

fn corrupt_claim(column: &str, value: &dyn std::fmt::Display) -> StoreError {
    StoreError::Corrupt(format!("idempotency_claim.{column}: {value}"))
}

//! What happens between requests: removing what has expired or is too much, and noting replays.

use diesel::{
    BoolExpressionMethods, ExpressionMethods, QueryDsl, QueryResult, RunQueryDsl, SqliteConnection,
    dsl::{exists, min, select},
};
use idempotent_core::store::{OnTakeover, Swept};
use tokio::sync::oneshot;

use super::{Answer, Batch, Caller, Failure, Job, Touches, lease::remove_claim};
use crate::sqlite::{
    rows::{CHUNKED, Moment, RowKey, encode_on_takeover},
    schema::{idempotency_cache, idempotency_claim, idempotency_garbage, idempotency_ledger},
    statements::{DiscardChunks, EvictEntries, RemoveChunks, RemoveExpired, TouchEntry},
};

/// How many rows one step removes: few enough that a request which waits for the step hardly notices.
const STEP: i64 = 64;
/// How many replays one step writes down.
const TOUCH_STEP: usize = 256;

/// Whether a sweep would find anything, for the price of a few look-ups.
pub(crate) fn has_work(connection: &mut SqliteConnection, moment: &Moment) -> QueryResult<bool> {
    let expired = idempotency_cache::table.filter(idempotency_cache::inserted_at.lt(cutoff(moment)));
    Ok(excess(connection, moment)? > 0
        || select(exists(expired)).get_result(connection)?
        || garbage(connection)?.is_some()
        || !abandoned(connection, moment)?.is_empty())
}

/// Entries inserted before this second have expired.
fn cutoff(moment: &Moment) -> i64 {
    i64::try_from(moment.now_seconds().saturating_sub(moment.retention.ttl_seconds)).unwrap_or(i64::MAX)
}

fn excess(connection: &mut SqliteConnection, moment: &Moment) -> QueryResult<i64> {
    let entries: i64 = idempotency_ledger::table.find(1).select(idempotency_ledger::entries).get_result(connection)?;
    Ok(entries.saturating_sub(i64::try_from(moment.retention.max_entries).unwrap_or(i64::MAX)))
}

fn garbage(connection: &mut SqliteConnection) -> QueryResult<Option<i64>> {
    idempotency_garbage::table.select(min(idempotency_garbage::token)).get_result(connection)
}

/// Claims that nobody will complete: their lease has ended, and the TTL since the claim (under refusal) or since the end of
/// the lease (else; only the count of attempts is lost then) has passed.
fn abandoned(connection: &mut SqliteConnection, moment: &Moment) -> QueryResult<Vec<(String, String, i64)>> {
    use idempotency_claim::{claimed_at, lease_until, message_id, on_takeover, scope, table, token};
    let now = i64::try_from(moment.now_millis).unwrap_or(i64::MAX);
    let refused = on_takeover
        .eq(encode_on_takeover(OnTakeover::Refuse))
        .and(lease_until.le(now))
        .and(claimed_at.lt(cutoff(moment)));
    let lapsed =
        on_takeover.eq(encode_on_takeover(OnTakeover::Run)).and(lease_until.lt(cutoff(moment).saturating_mul(1000)));
    table.select((scope, message_id, token)).filter(refused.or(lapsed)).limit(STEP).load(connection)
}

/// One step of a sweep; its successor takes the next one.
pub(crate) struct SweepJob {
    before: Swept,
    step: Swept,
    done: bool,
    /// How many of the replays that waited when the sweep began are still to be written down.
    touches: Option<usize>,
    /// Whether there are more entries than there may be: those have to go within 5 seconds, others when there is time.
    urgent: bool,
    caller: Option<Caller<Swept>>,
}

impl SweepJob {
    pub(crate) fn new() -> (Self, Answer<Swept>) {
        let (caller, answer) = oneshot::channel();
        (Self { caller: Some(caller), ..Self::background() }, answer)
    }

    /// A sweep that nobody waits for.
    pub(crate) fn background() -> Self {
        Self {
            before: Swept::default(),
            step: Swept::default(),
            done: false,
            touches: None,
            urgent: false,
            caller: None,
        }
    }

    fn so_far(&self) -> Swept {
        Swept { expired: self.before.expired + self.step.expired, evicted: self.before.evicted + self.step.evicted }
    }
}

impl Job for SweepJob {
    fn is_urgent(&self) -> bool {
        self.urgent
    }

    fn run(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        self.step = Swept::default();
        self.done = false;
        self.urgent = excess(batch.connection, &batch.moment)? > 0;
        // Whatever was replayed before the sweep must not be taken for unused.
        let waiting = *self.touches.get_or_insert_with(|| batch.touches.len());
        let written = write_touches(batch)?;
        self.touches = Some(waiting.saturating_sub(written));
        if written > 0 && waiting > written {
            return Ok(());
        }
        self.step.expired = remove_expired(batch)?;
        if self.step.expired > 0 {
            return Ok(());
        }
        self.step.evicted = evict(batch)?;
        if self.step.evicted > 0 {
            return Ok(());
        }
        for (scope, message_id, token) in abandoned(batch.connection, &batch.moment)? {
            let key = RowKey { scope: &scope, message_id };
            self.step.expired += u64::from(remove_claim(batch, &key, token)?);
        }
        if self.step.expired > 0 {
            return Ok(());
        }
        self.done = !remove_chunks(batch.connection)?;
        Ok(())
    }

    fn answer(mut self: Box<Self>) -> Option<Box<dyn Job>> {
        self.before = self.so_far();
        self.step = Swept::default();
        if !self.done {
            return Some(self);
        }
        if let Some(caller) = self.caller {
            let _ = caller.send(Ok(self.before));
        }
        None
    }

    fn fail(self: Box<Self>, failure: Failure) {
        let error = failure.into_store_error();
        match self.caller {
            Some(caller) => drop(caller.send(Err(error))),
            None => tracing::warn!(%error, "the idempotency store could not be swept"),
        }
    }
}

/// Of each entry that was removed: token and kind of body.
type Removed = Vec<(i64, i64)>;

fn remove_expired(batch: &mut Batch<'_>) -> Result<u64, Failure> {
    let cutoff = cutoff(&batch.moment);
    let removed: Removed = RemoveExpired { cutoff: &cutoff, step: &STEP }.get_results(batch.connection)?;
    removed_entries(batch, &removed)
}

fn evict(batch: &mut Batch<'_>) -> Result<u64, Failure> {
    // The entries of this very batch are not in the ledger yet.
    let excess = excess(batch.connection, &batch.moment)?.saturating_add(batch.entries);
    if excess <= 0 {
        return Ok(0);
    }
    let removed: Removed = EvictEntries { step: &excess.min(STEP) }.get_results(batch.connection)?;
    removed_entries(batch, &removed)
}

fn removed_entries(batch: &mut Batch<'_>, removed: &Removed) -> Result<u64, Failure> {
    for (token, kind) in removed {
        if *kind == CHUNKED {
            DiscardChunks { token }.execute(batch.connection)?;
        }
    }
    batch.entries -= i64::try_from(removed.len()).unwrap_or(0);
    Ok(removed.len() as u64)
}

/// Whether there was anything to remove.
fn remove_chunks(connection: &mut SqliteConnection) -> QueryResult<bool> {
    let Some(token) = garbage(connection)? else {
        return Ok(false);
    };
    let removed = RemoveChunks { token: &token }.execute(connection)?;
    if removed == 0 {
        diesel::delete(idempotency_garbage::table.find(token)).execute(connection)?;
    }
    Ok(true)
}

/// Writes down some of the replays since the last time; returns how many.
fn write_touches(batch: &mut Batch<'_>) -> Result<usize, Failure> {
    let touches = batch.touches.take(TOUCH_STEP);
    for (key, last_used) in &touches {
        let key = RowKey::of(key);
        TouchEntry { last_used, scope: key.scope, message_id: &key.message_id }.execute(batch.connection)?;
    }
    Ok(touches.len())
}

/// One step of writing down the replays; its successor takes the next one.
pub(crate) struct TouchJob {
    waiting: usize,
}

impl TouchJob {
    /// Those that wait now; `None` when there are none.
    pub(crate) fn new(touches: &Touches) -> Option<Self> {
        let waiting = touches.len();
        (waiting > 0).then_some(Self { waiting })
    }
}

impl Job for TouchJob {
    fn run(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let written = write_touches(batch)?;
        self.waiting = if written == 0 { 0 } else { self.waiting.saturating_sub(written) };
        Ok(())
    }

    fn answer(self: Box<Self>) -> Option<Box<dyn Job>> {
        (self.waiting > 0).then_some(self)
    }

    fn fail(self: Box<Self>, failure: Failure) {
        let error = failure.into_store_error();
        tracing::warn!(%error, "replays could not be noted in the idempotency store");
    }
}

//! What one request does at the gate, in the task of its connection.
//!
//! This future may be dropped at any await: it only looks, waits and answers. Whatever must go on is in `drive`; a request
//! that is dropped before it has come so far is handed over then.

use std::{sync::Arc, time::Duration};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use tokio::{
    runtime::Handle,
    sync::oneshot,
    time::{Instant, timeout_at},
};

use super::{
    Ask, Caller, Work, drive,
    flight::{Flight, Landing, Phase, Seat, Settled},
    patience::{FIRST_LOOK, changed, from_now, next_look, patiently},
    replay_id,
};
use crate::{
    config::{ReplayId, ReplayedHeader},
    engine::Engine,
    error::Refusal,
    metrics::Outcome,
    response::{Delivery, Head},
    rpc::json_text::JsonText,
    store::{Entry, Occupant, StoreError, StoredBody},
};

/// A response, and what became of the request.
pub(crate) struct Served {
    pub(crate) response: Response,
    pub(crate) outcome: Outcome,
}

/// What following a flight came to.
enum Followed {
    Served(Served),
    /// The flight says nothing about this request: look again.
    LookAgain,
    /// The flight's own request was turned down, and its key is vacant again.
    Vacated,
    /// This request's own execution was overtaken by another owner: look for that one's answer.
    Overtaken,
}

/// A request whose operation may not have begun yet.
struct Unbegun<'a, C: 'static> {
    engine: &'a Arc<Engine<C>>,
    ask: &'a Ask,
    work: Option<Work<C>>,
}

impl<C: 'static> Drop for Unbegun<'_, C> {
    /// The client has gone while its request was looked up. It was received whole, so it runs, as it would a moment later.
    fn drop(&mut self) {
        if self.work.is_some() && !self.engine.is_draining() && Handle::try_current().is_ok() {
            begin(self.engine, self.ask, &mut self.work);
        }
    }
}

/// Answers one request with a valid key.
pub(crate) async fn serve<C: 'static>(engine: &Arc<Engine<C>>, ask: &Ask, work: Work<C>) -> Served {
    let mut unbegun = Unbegun { engine, ask, work: Some(work) };
    let served = seek(engine, ask, &mut unbegun.work).await;
    unbegun.work = None;
    served
}

/// Finds the answer to a request, with its own work if that must be done.
async fn seek<C: 'static>(engine: &Arc<Engine<C>>, ask: &Ask, work: &mut Option<Work<C>>) -> Served {
    let mut deadline = from_now(engine.config.wait);
    let mut pause = FIRST_LOOK;
    let mut vacated = false;
    loop {
        let seat = match engine.flights.join(&ask.key) {
            Some(seat) => seat,
            // Many may follow a request that is turned down: they do not all look at each turn, since the claim will tell.
            None if vacated && work.is_some() => begin(engine, ask, work),
            None => match look(engine, ask).await {
                Look::Served(served) => return served,
                Look::Vacant if engine.is_draining() => return refuse_unavailable(ask),
                Look::Vacant | Look::Elsewhere if work.is_some() => begin(engine, ask, work),
                // This request's execution is over, and what it was overtaken by is not settled yet.
                Look::Vacant | Look::Elsewhere => {
                    if Instant::now() >= deadline {
                        return refuse(ask, Refusal::InProgress { message_id: ask.shown.clone() });
                    }
                    changed(&*engine.store, &ask.key, pause).await;
                    pause = next_look(pause);
                    continue;
                }
            },
        };
        match follow(engine, ask, seat, deadline).await {
            Followed::Served(served) => return served,
            Followed::Overtaken => deadline = from_now(engine.config.wait),
            Followed::LookAgain | Followed::Vacated
                if Instant::now() >= deadline && engine.config.wait > Duration::ZERO =>
            {
                return refuse(ask, Refusal::InProgress { message_id: ask.shown.clone() });
            }
            Followed::LookAgain => vacated = false,
            Followed::Vacated => vacated = true,
        }
    }
}

/// Answers one request that did not activate the extension: it runs, and nothing is kept of it.
pub(crate) async fn serve_unkeyed<C: 'static>(
    engine: &Arc<Engine<C>>,
    caller: &Caller,
    work: Work<C>,
) -> Option<Response> {
    let (own, answer) = oneshot::channel();
    let driven = drive::drive_unkeyed(Arc::clone(engine), caller.clone(), work, own);
    engine.spawn(driven);
    answer.await.ok()
}

enum Look {
    Served(Served),
    Vacant,
    /// In flight in another process, with the same payload.
    Elsewhere,
}

async fn look<C: 'static>(engine: &Engine<C>, ask: &Ask) -> Look {
    match patiently(engine.store.inspect(&ask.key)).await {
        Ok(None) => Look::Vacant,
        Ok(Some(occupant)) => match judge(engine, ask, occupant) {
            Some(served) => Look::Served(served),
            None => Look::Elsewhere,
        },
        Err(error) => Look::Served(refuse_failed(ask, &error)),
    }
}

/// Begins a flight with this request's work, or takes a seat at one that has begun since.
fn begin<C: 'static>(engine: &Arc<Engine<C>>, ask: &Ask, work: &mut Option<Work<C>>) -> Seat {
    let mut driven = None;
    let seat = engine.flights.join_or_begin(&ask.key, || {
        let flight = Flight::new(ask.key.clone(), ask.request_hash, ask.operation);
        let landing = Landing { engine: Arc::clone(engine), flight: Arc::clone(&flight) };
        let (own, answer) = oneshot::channel();
        driven = work.take().map(|work| drive::drive(landing, ask.clone(), work, own));
        (flight, answer)
    });
    // Not under the board's lock: a runtime that is shutting down drops the task at once, and its flight lands.
    if let Some(driven) = driven {
        engine.spawn(driven);
    }
    seat
}

async fn follow<C: 'static>(engine: &Engine<C>, ask: &Ask, seat: Seat, deadline: Instant) -> Followed {
    let Seat { flight, mut phase, mut own } = seat;
    loop {
        let now = phase.borrow_and_update().clone();
        let patient = own.is_some() && !matches!(now, Phase::Elsewhere);
        match now {
            Phase::Claiming => {}
            Phase::Elsewhere | Phase::Running => {
                if let Some(collision) = collision(ask, flight.request_hash, flight.operation) {
                    return Followed::Served(collision);
                }
            }
            Phase::Streaming(recording) => {
                if let Some(own) = own.take() {
                    return executed(own).await;
                }
                if let Some(collision) = collision(ask, flight.request_hash, flight.operation) {
                    return Followed::Served(collision);
                }
                let Some(reader) = recording.read() else {
                    return Followed::Served(not_retained(ask, recording.head(), recording.len()));
                };
                return Followed::Served(replay(engine, ask, recording.head(), reader.into_body()));
            }
            Phase::Settled(settled) => return settle(engine, ask, &flight, own, settled).await,
        }
        let changed = match patient {
            true => phase.changed().await,
            false => match timeout_at(deadline, phase.changed()).await {
                Ok(changed) => changed,
                Err(_) => {
                    let refusal = Refusal::InProgress { message_id: ask.shown.clone() };
                    return Followed::Served(refuse(ask, refusal));
                }
            },
        };
        if changed.is_err() {
            return Followed::LookAgain;
        }
    }
}

async fn settle<C: 'static>(
    engine: &Engine<C>,
    ask: &Ask,
    flight: &Flight,
    own: Option<oneshot::Receiver<Response>>,
    settled: Settled,
) -> Followed {
    match (settled, own) {
        (Settled::Answered(_) | Settled::Refused, Some(own)) => executed_or_refused(own, flight).await,
        (Settled::Answered(kept), None) => {
            if let Some(collision) = collision(ask, flight.request_hash, flight.operation) {
                return Followed::Served(collision);
            }
            if !kept.retained {
                return Followed::Served(not_retained(ask, &kept.head, kept.body.len() as u64));
            }
            Followed::Served(replay_whole(engine, ask, &kept.head, kept.body.clone()))
        }
        (Settled::Refused, None) => Followed::Vacated,
        (Settled::Occupied(occupant), _) => match judge(engine, ask, *occupant) {
            Some(served) => Followed::Served(served),
            None => Followed::LookAgain,
        },
        // A stream may have answered, and ended, before this request's task was woken.
        (Settled::Superseded, Some(mut own)) => match own.try_recv() {
            Ok(response) => Followed::Served(Served { response, outcome: Outcome::Executed }),
            Err(_) => Followed::Overtaken,
        },
        (Settled::Superseded, None) => Followed::LookAgain,
        (Settled::Unavailable, _) => Followed::Served(refuse_unavailable(ask)),
        (Settled::Corrupt, _) => Followed::Served(refuse(ask, Refusal::StoreCorrupt { message_id: ask.shown.clone() })),
    }
}

/// The own answer of the request that began the flight, sent before the phase that told of it.
async fn executed(own: oneshot::Receiver<Response>) -> Followed {
    match own.await {
        Ok(response) => Followed::Served(Served { response, outcome: Outcome::Executed }),
        Err(_) => Followed::LookAgain,
    }
}

async fn executed_or_refused(own: oneshot::Receiver<Response>, flight: &Flight) -> Followed {
    let refused = flight.was_refused();
    match executed(own).await {
        Followed::Served(served) if refused => Followed::Served(Served { outcome: Outcome::Refused, ..served }),
        followed => followed,
    }
}

/// What stands under the key, judged for one request. `None`: the same request is in flight elsewhere.
fn judge<C: 'static>(engine: &Engine<C>, ask: &Ask, occupant: Occupant) -> Option<Served> {
    let (request_hash, operation) = match &occupant {
        Occupant::Completed(Entry { request_hash, operation, .. })
        | Occupant::InFlight { request_hash, operation, .. }
        | Occupant::Abandoned { request_hash, operation } => (*request_hash, operation),
    };
    if let Some(collision) = collision(ask, request_hash, operation) {
        return Some(collision);
    }
    match occupant {
        Occupant::InFlight { .. } => None,
        Occupant::Abandoned { .. } => Some(refuse(ask, Refusal::OutcomeUnknown { message_id: ask.shown.clone() })),
        Occupant::Completed(entry) => {
            let head = Head { status: entry.response.status, headers: entry.response.headers };
            Some(match entry.response.body {
                StoredBody::NotRetained { bytes } => not_retained(ask, &head, bytes),
                StoredBody::Whole(body) => {
                    engine.store.touch(&ask.key);
                    replay_whole(engine, ask, &head, body)
                }
                StoredBody::Chunked { token, chunks, rest } => {
                    engine.store.touch(&ask.key);
                    replay(engine, ask, &head, engine.chunked_body(token, chunks, rest))
                }
            })
        }
    }
}

fn collision(ask: &Ask, original_hash: crate::RequestHash, original_operation: &str) -> Option<Served> {
    if ask.is_for(original_hash, original_operation) {
        return None;
    }
    let operations =
        (original_operation != ask.operation).then(|| (original_operation.to_owned(), ask.operation.to_owned()));
    let refusal = Refusal::KeyReused {
        message_id: ask.shown.clone(),
        original_hash,
        submitted_hash: ask.request_hash,
        operations,
    };
    Some(Served { outcome: Outcome::Collision, ..refuse(ask, refusal) })
}

fn replay_whole<C: 'static>(engine: &Engine<C>, ask: &Ask, head: &Head, body: Bytes) -> Served {
    if engine.config.replay_id == ReplayId::Request && !drive::is_event_stream(&head.headers) {
        let body = replay_id::rewrite(&body, &ask.caller.id);
        return replayed(engine, ask, head, Body::from(body));
    }
    replay(engine, ask, head, Body::from(body))
}

fn replay<C: 'static>(engine: &Engine<C>, ask: &Ask, head: &Head, body: Body) -> Served {
    let body = match engine.config.replay_id {
        ReplayId::Request if drive::is_event_stream(&head.headers) => {
            replay_id::rewrite_events(body, JsonText::clone(&ask.caller.id))
        }
        _ => body,
    };
    replayed(engine, ask, head, body)
}

fn replayed<C: 'static>(engine: &Engine<C>, ask: &Ask, head: &Head, body: Body) -> Served {
    let marked_replayed = match engine.config.replayed_header {
        ReplayedHeader::Always => true,
        ReplayedHeader::ScopedCallers => !ask.key.scope.is_global(),
    };
    let delivery = Delivery { activation: ask.caller.activation, marked_replayed };
    Served { response: head.deliver(body, delivery), outcome: Outcome::Replayed }
}

fn not_retained(ask: &Ask, head: &Head, bytes: u64) -> Served {
    refuse(ask, Refusal::NotRetained { message_id: ask.shown.clone(), status: head.status, bytes })
}

fn refuse(ask: &Ask, refusal: Refusal) -> Served {
    let outcome = match refusal {
        Refusal::InProgress { .. } => Outcome::InProgress,
        _ => Outcome::Refused,
    };
    Served { response: refusal.into_response(&ask.caller.id, ask.caller.dialect), outcome }
}

fn refuse_unavailable(ask: &Ask) -> Served {
    refuse(ask, Refusal::StoreUnavailable { message_id: ask.shown.clone() })
}

fn refuse_failed(ask: &Ask, error: &StoreError) -> Served {
    tracing::error!(%error, "a key could not be looked up");
    match error {
        StoreError::Unavailable(_) => refuse_unavailable(ask),
        StoreError::Corrupt(_) => refuse(ask, Refusal::StoreCorrupt { message_id: ask.shown.clone() }),
    }
}

//! Drives one operation from claim to stored answer, in a task that no connection owns.

use std::{any::Any, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures_core::future::BoxFuture;
use futures_util::FutureExt as _;
use http::{HeaderMap, header};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use tokio::sync::oneshot;

use super::{
    Answer, Ask, Caller, Ran, Work,
    claim::{claim, release},
    flight::{Kept, Landing, Phase, Settled},
    heartbeat::Heartbeat,
    patience::{Retries, patiently},
};
use crate::{
    effects::Effects,
    engine::Engine,
    metrics::Outcome,
    recording::{Bounds, End, Recording, Spill},
    response::{Delivery, Head},
    rpc::{RpcError, reply::Failed, stream::data_line},
    store::{
        Claim, ClaimToken, CompleteOutcome, Completion, Effect, EffectError, Store, StoreError, StoreResult,
        StoredBody, StoredResponse,
    },
};

/// Claims the flight's key and, when that is won, runs the operation to its end.
pub(crate) async fn drive<C: 'static>(landing: Landing<C>, ask: Ask, work: Work<C>, own: oneshot::Sender<Response>) {
    let Some(claim) = claim(&landing, &ask).await else { return };
    let engine = Arc::clone(&landing.engine);
    work.context.set(&claim, ask.request_hash);
    landing.flight.enter(Phase::Running);
    let heartbeat = Heartbeat::start(Arc::clone(&engine.store), claim.clone(), engine.config.lease);
    let under = Under { ask: &ask, claim, landing, heartbeat };
    run(&engine, Some(under), &ask.caller, work, own).await;
}

/// Runs an operation that has no key, because its request did not activate the extension.
pub(crate) async fn drive_unkeyed<C: 'static>(
    engine: Arc<Engine<C>>,
    caller: Caller,
    work: Work<C>,
    own: oneshot::Sender<Response>,
) {
    run(&engine, None, &caller, work, own).await;
}

/// The claim that an operation runs under.
struct Under<'a, C: 'static> {
    ask: &'a Ask,
    claim: Claim,
    landing: Landing<C>,
    heartbeat: Heartbeat,
}

impl<C: 'static> Under<'_, C> {
    fn enter(&self, phase: Phase) {
        self.landing.flight.enter(phase);
    }
}

async fn run<C: 'static>(
    engine: &Arc<Engine<C>>,
    under: Option<Under<'_, C>>,
    caller: &Caller,
    work: Work<C>,
    own: oneshot::Sender<Response>,
) {
    let lost = under.as_ref().map(|under| under.heartbeat.lost()).unwrap_or_default();
    let mut running = std::pin::pin!(AssertUnwindSafe(work.run).catch_unwind());
    let ran = tokio::select! {
        ran = &mut running => ran,
        () = lost.cancelled() => {
            // Whoever waits here finds the winner's answer sooner than this operation ends.
            under.iter().for_each(|under| under.landing.settle(Settled::Superseded));
            running.await
        }
    };
    let (response, failed) = match ran {
        Ok(Answer(Ran::Answered { response, failed })) => (response, failed),
        Ok(Answer(Ran::Refused(response))) => return refuse(engine, under, response, own).await,
        Err(panic) => {
            log_panic(&*panic);
            if work.extracting.is_set() {
                return refuse(engine, under, internal_error(caller), own).await;
            }
            (internal_error(caller), failed())
        }
    };
    // Counted here and not where it is answered: its client may have gone.
    engine.metrics.count(work.method, Outcome::Executed);
    let execution = Execution { engine, under, caller, effects: work.effects, failed };
    // A body that is too large to be kept is not collected either, even when its length is known.
    if response.body().size_hint().exact().is_some_and(|bytes| bytes <= engine.config.max_response_bytes) {
        execution.answer_whole(response, own).await;
    } else {
        execution.answer_streaming(response, own).await;
    }
}

/// The operation has not begun: its key becomes vacant again.
async fn refuse<C: 'static>(
    engine: &Arc<Engine<C>>,
    under: Option<Under<'_, C>>,
    response: Response,
    own: oneshot::Sender<Response>,
) {
    if let Some(under) = &under {
        release(engine, &under.claim, under.ask.on_takeover).await;
    }
    // Nobody receives it when the client is gone.
    let _ = own.send(response);
    if let Some(under) = under {
        under.landing.settle(Settled::Refused);
    }
}

fn failed() -> Failed {
    let failed = Failed::default();
    failed.set();
    failed
}

fn internal_error(caller: &Caller) -> Response {
    RpcError::internal("Internal error").into_response(&caller.id)
}

fn log_panic(panic: &(dyn Any + Send)) {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    tracing::error!(panic = text.unwrap_or("no message"), "a handler panicked");
}

/// What became of writing an answer.
enum Written {
    /// It is durable.
    Stored,
    /// Another owner has taken over.
    Superseded,
    /// The handler's own write failed; the claim stands.
    EffectFailed(EffectError),
    /// The store failed. To be tried again, if there is a claim that protects it.
    StoreFailed(StoreError),
}

/// An operation that has answered, before its answer is stored.
struct Execution<'a, C: 'static> {
    engine: &'a Arc<Engine<C>>,
    under: Option<Under<'a, C>>,
    caller: &'a Caller,
    effects: Effects<C>,
    failed: Failed,
}

impl<C: 'static> Execution<'_, C> {
    fn bounds(&self) -> Bounds {
        let config = &self.engine.config;
        Bounds { memory: config.recording_memory_bytes, total: config.max_response_bytes }
    }

    /// The effects that commit with the answer: none when the operation failed.
    fn effects(&self) -> Vec<Effect<C>> {
        let effects = self.effects.take();
        if self.failed.is_set() { Vec::new() } else { effects }
    }

    /// First answers are not replays.
    fn delivery(&self) -> Delivery {
        Delivery { activation: self.caller.activation, marked_replayed: false }
    }

    /// An answer that lies in memory: nobody sees it before it is durable.
    async fn answer_whole(self, response: Response, own: oneshot::Sender<Response>) {
        let (parts, body) = response.into_parts();
        let (mut head, mut bytes) = match AssertUnwindSafe(body.collect()).catch_unwind().await {
            Ok(Ok(body)) => (Head::capture(parts.status, parts.headers), body.to_bytes()),
            broken => {
                if let Err(panic) = broken {
                    log_panic(&*panic);
                }
                self.failed.set();
                self.failure().await
            }
        };
        let mut effects = self.effects();
        loop {
            let retained = bytes.len() as u64 <= self.engine.config.max_response_bytes;
            let body = match retained {
                true => StoredBody::Whole(bytes.clone()),
                false => StoredBody::NotRetained { bytes: bytes.len() as u64 },
            };
            let completion = self.completion(&head, body, effects);
            match self.write(completion.clone()).await {
                Written::Stored => return self.publish(Kept { head, body: bytes, retained }, own, None),
                Written::Superseded => return self.step_aside(),
                Written::StoreFailed(error) if self.under.is_some() => {
                    self.engine.lost_write(&error);
                    return self.publish(Kept { head, body: bytes, retained }, own, completion.keyed());
                }
                Written::StoreFailed(error) => {
                    tracing::error!(%error, "the effects of a request without a key are lost")
                }
                Written::EffectFailed(error) => {
                    tracing::error!(%error, "an effect failed; the operation is answered -32603")
                }
            }
            self.failed.set();
            (head, bytes) = self.failure().await;
            effects = Vec::new();
        }
    }

    async fn failure(&self) -> (Head, Bytes) {
        let (parts, body) = internal_error(self.caller).into_parts();
        let bytes = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        (Head::capture(parts.status, parts.headers), bytes)
    }

    fn completion(&self, head: &Head, body: StoredBody, effects: Vec<Effect<C>>) -> Writing<C> {
        match &self.under {
            Some(under) => Writing::Keyed(Box::new(Completion {
                claim: under.claim.clone(),
                request_hash: under.ask.request_hash,
                operation: under.ask.operation.into(),
                response: StoredResponse { status: head.status, headers: head.headers.clone(), body },
                effects,
            })),
            None => Writing::Unkeyed(effects),
        }
    }

    async fn write(&self, writing: Writing<C>) -> Written {
        let store = &self.engine.store;
        match writing {
            Writing::Keyed(completion) => {
                let has_effects = !completion.effects.is_empty();
                match patiently(store.complete(*completion)).await {
                    Ok(CompleteOutcome::Stored) => Written::Stored,
                    Ok(CompleteOutcome::Superseded) => Written::Superseded,
                    Ok(CompleteOutcome::EffectFailed(error)) if has_effects => Written::EffectFailed(error),
                    // There was none to fail: tried at once again, that would not end.
                    Ok(CompleteOutcome::EffectFailed(error)) => Written::StoreFailed(StoreError::Unavailable(error)),
                    Err(error) => Written::StoreFailed(error),
                }
            }
            Writing::Unkeyed(effects) if effects.is_empty() => Written::Stored,
            Writing::Unkeyed(effects) => match patiently(store.commit(effects)).await {
                Ok(Ok(())) => Written::Stored,
                Ok(Err(error)) => Written::EffectFailed(error),
                Err(error) => Written::StoreFailed(error),
            },
        }
    }

    /// Tells the caller and all followers. With `unsaved`, keeps the answer for them until it is stored after all.
    fn publish(self, kept: Kept, own: oneshot::Sender<Response>, unsaved: Option<Completion<C>>) {
        let response = kept.head.deliver(Body::from(kept.body.clone()), self.delivery());
        let _ = own.send(response);
        let Some(under) = self.under else { return };
        let settled = Settled::Answered(Arc::new(kept));
        match unsaved {
            None => under.landing.settle(settled),
            Some(completion) => {
                under.enter(Phase::Settled(settled));
                keep_until_stored(under, completion);
            }
        }
    }

    /// The claim is another owner's: everybody, the own caller too, looks for the winner's answer.
    fn step_aside(self) {
        if let Some(under) = &self.under {
            under.landing.settle(Settled::Superseded);
        }
    }

    /// An answer of unknown length: it goes out while it is produced, and ends when it is durable.
    async fn answer_streaming(self, response: Response, own: oneshot::Sender<Response>) {
        let (parts, mut body) = response.into_parts();
        let head = Head::capture(parts.status, parts.headers);
        let events = is_event_stream(&head.headers);
        let spill = self.under.as_ref().map(|under| {
            let (store, claim) = (Arc::clone(&self.engine.store), under.claim.clone());
            Arc::new(StoreSpill { store, claim }) as Arc<dyn Spill>
        });
        let recording = Recording::new(head.clone(), self.bounds(), spill);
        let _ends = recording.cut_unless_finished();
        // A recording that nobody has written to can always be read.
        if let Some(reader) = recording.read() {
            let _ = own.send(head.deliver(reader.into_body(), self.delivery()));
        }
        if let Some(under) = &self.under {
            under.enter(Phase::Streaming(Arc::clone(&recording)));
        }

        let lost = self.under.as_ref().map(|under| under.heartbeat.lost()).unwrap_or_default();
        let mut whole = true;
        let mut ours = true;
        loop {
            let frame = AssertUnwindSafe(body.frame()).catch_unwind();
            let frame = tokio::select! {
                frame = frame => frame,
                () = lost.cancelled(), if ours => {
                    ours = false;
                    self.lose(&recording);
                    continue;
                }
            };
            let bytes = match frame {
                Ok(None) => break,
                Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
                broken => {
                    match broken {
                        Err(panic) => log_panic(&*panic),
                        Ok(_) => tracing::error!("a streamed response broke off"),
                    }
                    self.failed.set();
                    whole = events;
                    if ours && events {
                        ours = recording.push(self.error_event()).await.is_ok();
                    }
                    break;
                }
            };
            // An operation that has lost its claim runs to its end all the same; it only is not heard.
            if ours && recording.push(bytes).await.is_err() {
                ours = false;
                self.lose(&recording);
            }
        }
        if !ours {
            return self.lose(&recording);
        }
        if !whole {
            recording.abandon();
        }
        self.end_stream(head, recording, whole, events).await;
    }

    fn error_event(&self) -> Bytes {
        data_line(&RpcError::internal("Internal error").to_json(&self.caller.id))
    }

    fn lose(&self, recording: &Recording) {
        recording.finish(End::Cut);
        if let Some(under) = &self.under {
            under.landing.settle(Settled::Superseded);
        }
    }

    async fn end_stream(self, head: Head, recording: Arc<Recording>, whole: bool, events: bool) {
        let end = if whole { End::Complete } else { End::Cut };
        let mut effects = self.effects();
        loop {
            recording.drain_unkept().await;
            let writing = self.completion(&head, recording.stored_body(), effects);
            match self.write(writing.clone()).await {
                Written::Stored => {
                    recording.finish(end);
                    if let Some(under) = &self.under {
                        self.engine.flights.remove(&under.landing.flight);
                    }
                    return;
                }
                Written::Superseded => return self.lose(&recording),
                Written::StoreFailed(error) if self.under.is_some() => {
                    self.engine.lost_write(&error);
                    recording.finish(end);
                    if let (Some(under), Some(completion)) = (self.under, writing.keyed()) {
                        keep_until_stored(under, completion);
                    }
                    return;
                }
                Written::StoreFailed(error) => {
                    tracing::error!(%error, "the effects of a request without a key are lost")
                }
                Written::EffectFailed(error) => {
                    tracing::error!(%error, "an effect failed; its stream ends with -32603")
                }
            }
            effects = Vec::new();
            self.failed.set();
            if !events {
                recording.abandon();
                recording.finish(End::Cut);
            } else if recording.push(self.error_event()).await.is_err() {
                return self.lose(&recording);
            }
        }
    }
}

/// What is written when an operation has answered.
enum Writing<C> {
    Keyed(Box<Completion<C>>),
    Unkeyed(Vec<Effect<C>>),
}

impl<C> Clone for Writing<C> {
    fn clone(&self) -> Self {
        match self {
            Self::Keyed(completion) => Self::Keyed(completion.clone()),
            Self::Unkeyed(effects) => Self::Unkeyed(effects.clone()),
        }
    }
}

impl<C> Writing<C> {
    fn keyed(self) -> Option<Completion<C>> {
        match self {
            Self::Keyed(completion) => Some(*completion),
            Self::Unkeyed(_) => None,
        }
    }
}

/// Whether a `Content-Type` names a media type, whatever its parameters; names compare in any case (RFC 9110 section 8.3.1).
fn is_media_type(value: &[u8], media_type: &[u8]) -> bool {
    let name = value.split(|&byte| byte == b';').next().unwrap_or_default();
    name.trim_ascii().eq_ignore_ascii_case(media_type)
}

pub(super) fn is_event_stream(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_some_and(|value| is_media_type(value.as_bytes(), b"text/event-stream"))
}

/// Tries in the background to store an answer that its client has already got; its flight stays on the board, and its claim
/// alive, until that succeeds.
fn keep_until_stored<C: 'static>(under: Under<'_, C>, mut completion: Completion<C>) {
    let Under { landing, heartbeat, .. } = under;
    let engine = Arc::clone(&landing.engine);
    let mut retries = Retries::for_as_long_as(Duration::from_secs(engine.config.retention.ttl_seconds));
    Arc::clone(&engine).spawn(async move {
        let _heartbeat = heartbeat;
        while retries.again().await {
            match patiently(engine.store.complete(completion.clone())).await {
                Ok(CompleteOutcome::Stored) => break,
                Ok(CompleteOutcome::Superseded) => {
                    tracing::error!("an answer that its client has got could not be stored before another owner took over");
                    break;
                }
                Ok(CompleteOutcome::EffectFailed(error)) => {
                    tracing::error!(%error, "an effect of an operation that has been answered failed; it is stored without");
                    completion.effects.clear();
                }
                Err(error) => engine.lost_write(&error),
            }
        }
        drop(landing);
    });
}

/// A recording's chunks, in the store.
struct StoreSpill<C: 'static> {
    store: Arc<dyn Store<Connection = C>>,
    claim: Claim,
}

impl<C: 'static> Spill for StoreSpill<C> {
    fn token(&self) -> ClaimToken {
        self.claim.token
    }

    fn write(&self, index: u32, bytes: Bytes) -> BoxFuture<'_, StoreResult<bool>> {
        Box::pin(patiently(self.store.append_chunk(&self.claim, index, bytes)))
    }

    fn read(&self, index: u32) -> BoxFuture<'_, StoreResult<Option<Bytes>>> {
        Box::pin(patiently(self.store.read_chunk(self.claim.token, index)))
    }
}

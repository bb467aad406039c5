//! Agents that share one store, each with faults of its own, and the clients that call them.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard},
    task,
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    extract::{FromRef, FromRequest, FromRequestParts, Request, State},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture, stream, stream::BoxStream};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header, request::Parts};
use http_body::{Frame, SizeHint};
use idempotent_core::{
    __private::{Annotation, Call, OnTakeover, Operation, respond, scope},
    Clock, Config, Effects, Idempotency, IdempotencyContext, Key, Scope,
    extension::{A2A_EXTENSIONS, IDEMPOTENT_REPLAYED, URI},
    rpc::{JsonRpcRouter, Params, RpcError, RpcMethod, RpcStream},
    store::{ClaimToken, Occupant, Store as _},
    testing::{Faults, FaultyStore, MemoryConnection, MemoryStore},
};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tower::ServiceExt as _;

pub(crate) const SEND: &str = "message/send";
pub(crate) const STREAM: &str = "message/stream";
pub(crate) const DOWNLOAD: &str = "files/download";
pub(crate) const SIZED: &str = "files/proxy";
/// As [`SEND`], under `on_takeover = "refuse"`.
pub(crate) const CAREFUL: &str = "payments/charge";

pub(crate) const LEASE: Duration = Duration::from_secs(10);
pub(crate) const WAIT: Duration = Duration::from_secs(20);

pub(crate) fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Wall-clock time that moves with tokio's.
#[derive(Debug)]
struct TokioClock(Instant);

impl Clock for TokioClock {
    fn now_millis(&self) -> u64 {
        1_700_000_000_000 + self.0.elapsed().as_millis() as u64
    }
}

/// What a request asks the handler to do; part of what is hashed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Act {
    Succeed {
        after_ms: u64,
    },
    Fail {
        after_ms: u64,
    },
    Panic {
        after_ms: u64,
    },
    /// Succeeds, but its effect does not.
    FailEffect,
    PanicEffect,
    /// As [`Act::Stream`] to its end, in a body that tells its length beforehand.
    Sized {
        events: u32,
        bytes: usize,
        gap_ms: u64,
    },
    /// So many events of so many bytes, one after each gap.
    Stream {
        events: u32,
        bytes: usize,
        gap_ms: u64,
        end: StreamEnd,
    },
}

impl Act {
    pub(crate) const AT_ONCE: Self = Self::Succeed { after_ms: 0 };

    pub(crate) fn succeed(after_ms: u64) -> Self {
        Self::Succeed { after_ms }
    }

    pub(crate) fn fails_by_its_effect(&self) -> bool {
        matches!(self, Self::FailEffect | Self::PanicEffect | Self::Stream { end: StreamEnd::FailEffect, .. })
    }

    pub(crate) fn stream(events: u32, bytes: usize, gap_ms: u64) -> Self {
        Self::Stream { events, bytes, gap_ms, end: StreamEnd::Complete }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StreamEnd {
    Complete,
    Error,
    Panic,
    FailEffect,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Sent {
    act: Act,
    payload: Option<String>,
}

/// One run of the handler's body.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) message_id: String,
    pub(crate) token: Option<i64>,
    pub(crate) payload: Option<String>,
    pub(crate) finished: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Log(Mutex<Vec<Run>>);

impl Log {
    fn lock(&self) -> MutexGuard<'_, Vec<Run>> {
        self.0.lock().expect("not poisoned")
    }
}

#[derive(Clone)]
struct App {
    idempotency: Idempotency<MemoryConnection>,
    log: Arc<Log>,
    faults: Faults,
}

impl FromRef<App> for Idempotency<MemoryConnection> {
    fn from_ref(app: &App) -> Self {
        app.idempotency.clone()
    }
}

/// Reads headers only: whoever sends `x-deny` is turned down before the gate.
struct Tenant(Option<String>);

impl<S: Sync> FromRequestParts<S> for Tenant {
    type Rejection = StatusCode;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, StatusCode> {
        if parts.headers.contains_key("x-deny") {
            return Err(StatusCode::UNAUTHORIZED);
        }
        Ok(Self(parts.headers.get("x-tenant").and_then(|tenant| tenant.to_str().ok()).map(str::to_owned)))
    }
}

/// Runs after the claim: `x-refuse` turns the request down, `x-break` makes the extractor panic.
struct Admitted(Sent);

impl<S: Send + Sync> FromRequest<S> for Admitted {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        if let Some(after) = request.headers().get("x-refuse").cloned() {
            let after = after.to_str().expect("text").parse().expect("milliseconds");
            tokio::time::sleep(Duration::from_millis(after)).await;
            return Err(StatusCode::TOO_MANY_REQUESTS.into_response());
        }
        assert!(!request.headers().contains_key("x-break"), "the extractor breaks");
        let Params(sent) = Params::from_request(request, state).await.map_err(IntoResponse::into_response)?;
        Ok(Self(sent))
    }
}

struct Handler {
    app: App,
    context: IdempotencyContext,
    effects: Effects<MemoryConnection>,
    act: Act,
    payload: Option<String>,
}

impl Handler {
    /// Notes the run, and says where.
    fn begin(&self) -> usize {
        let run = Run {
            message_id: self.context.message_id().map(|id| id.to_string()).unwrap_or_default(),
            token: self.context.fencing_token(),
            payload: self.payload.clone(),
            finished: false,
        };
        tracing::info!("the handler runs");
        let mut runs = self.app.log.lock();
        runs.push(run);
        runs.len() - 1
    }

    async fn pass_time(&self, after_ms: u64) {
        if after_ms > 0 {
            tokio::time::sleep(Duration::from_millis(after_ms)).await;
        }
        // A process that is stopped or dead gets no further.
        self.app.faults.running().await;
    }

    fn result(&self) -> serde_json::Value {
        serde_json::json!({"attempt": self.context.attempt(), "token": self.context.fencing_token()})
    }

    fn write_row(&self) {
        let row = format!("{:?}", self.context.fencing_token());
        self.effects.push(move |connection: &mut MemoryConnection| {
            connection.insert(row.as_str());
            Ok(())
        });
    }

    async fn whole(self) -> Result<serde_json::Value, RpcError> {
        let run = self.begin();
        self.write_row();
        let result = match self.act {
            Act::Succeed { after_ms } => {
                self.pass_time(after_ms).await;
                Ok(self.result())
            }
            Act::Fail { after_ms } => {
                self.pass_time(after_ms).await;
                Err(RpcError::new(-32000, "no").with_data(&self.result()).with_status(StatusCode::CONFLICT))
            }
            Act::Panic { after_ms } => {
                self.pass_time(after_ms).await;
                self.app.log.lock()[run].finished = true;
                panic!("the handler panics");
            }
            Act::FailEffect => {
                self.effects.push(|_: &mut MemoryConnection| Err("the effect fails".into()));
                Ok(self.result())
            }
            Act::PanicEffect => {
                self.effects.push(|_: &mut MemoryConnection| panic!("the effect panics"));
                Ok(self.result())
            }
            Act::Stream { .. } | Act::Sized { .. } => {
                Err(RpcError::invalid_params("streams have a method of their own"))
            }
        };
        self.app.log.lock()[run].finished = true;
        result
    }

    fn events(self) -> Result<BoxStream<'static, Result<String, RpcError>>, RpcError> {
        let run = self.begin();
        let Act::Stream { events, bytes, gap_ms, end } = self.act.clone() else {
            return Err(RpcError::invalid_params("only streams are streamed"));
        };
        self.write_row();
        Ok(stream::unfold((0, self), move |(number, handler)| async move {
            if number > events {
                return None;
            }
            handler.pass_time(gap_ms).await;
            let token = handler.context.fencing_token();
            let event = if number < events {
                Ok(format!("{number}/{token:?}/{}", "x".repeat(bytes)))
            } else {
                handler.app.log.lock()[run].finished = true;
                match end {
                    StreamEnd::Complete => return None,
                    StreamEnd::Error => Err(RpcError::new(-32000, "no")),
                    StreamEnd::Panic => panic!("the stream panics"),
                    StreamEnd::FailEffect => {
                        handler.effects.push(|_: &mut MemoryConnection| Err("the effect fails".into()));
                        return None;
                    }
                }
            };
            Some((event, (number + 1, handler)))
        })
        .boxed())
    }
}

macro_rules! operation {
    ($name:ident, $method:expr, $on_takeover:ident, $handler:ident => $answer:expr) => {
        struct $name;

        impl Operation for $name {
            const ANNOTATION: Annotation =
                Annotation { method: $method, key: "/message/messageId", on_takeover: OnTakeover::$on_takeover };
        }

        impl $name {
            /// As the attribute expands.
            fn call(call: Call<Self, App, MemoryConnection>) -> BoxFuture<'static, Response> {
                call.serve(
                    |(tenant, _): &(Tenant, Surroundings)| scope(&tenant.0),
                    |(_, (context, (effects, (State(app), ())))), Admitted(sent): Admitted, reply| {
                        let answer = async move {
                            let $handler = Handler { app, context, effects, act: sent.act, payload: sent.payload };
                            $answer
                        };
                        respond(answer, reply)
                    },
                )
            }
        }
    };
}

/// What each of the operations takes beside the tenant.
type Surroundings = (IdempotencyContext, (Effects<MemoryConnection>, (State<App>, ())));

operation!(SendMessage, SEND, Run, handler => handler.whole().await);
operation!(Charge, CAREFUL, Refuse, handler => handler.whole().await);
operation!(StreamMessage, STREAM, Run, handler => handler.events().map(RpcStream::new));
/// A body of known length that is produced bit by bit, as a proxy's.
struct Sized {
    frames: BoxStream<'static, Bytes>,
    length: u64,
}

impl http_body::Body for Sized {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut task::Context<'_>,
    ) -> task::Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.frames.poll_next_unpin(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length)
    }
}

impl Handler {
    fn sized(self) -> Result<Response, RpcError> {
        let Act::Sized { events, bytes, gap_ms } = self.act else {
            return Err(RpcError::invalid_params("only bodies of known length"));
        };
        self.begin();
        let frames = stream::unfold(0, move |number| async move {
            tokio::time::sleep(Duration::from_millis(gap_ms)).await;
            (number < events).then(|| (Bytes::from("x".repeat(bytes)), number + 1))
        });
        let length = u64::from(events) * bytes as u64;
        Ok(Response::new(Body::new(Sized { frames: frames.boxed(), length })))
    }
}

operation!(SizedDownload, SIZED, Run, handler => handler.sized());
operation!(Download, DOWNLOAD, Run, handler => handler.events().map(|events| {
    let bytes = events.map(|event| event.map(Bytes::from));
    ([(header::CONTENT_TYPE, "application/octet-stream")], Body::from_stream(bytes)).into_response()
}));

/// Everything that agents share.
pub(crate) struct World {
    pub(crate) store: MemoryStore,
    log: Arc<Log>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::on(MemoryStore::new(TokioClock(Instant::now())))
    }

    pub(crate) fn on(store: MemoryStore) -> Self {
        Self { store, log: Arc::default() }
    }

    pub(crate) fn process(&self) -> Process {
        self.process_with(config())
    }

    pub(crate) fn process_with(&self, config: Config) -> Process {
        let store = FaultyStore::new(self.store.clone());
        let faults = store.faults();
        let idempotency = Idempotency::new(store).config(config);
        let app = App { idempotency: idempotency.clone(), log: Arc::clone(&self.log), faults: faults.clone() };
        let router = JsonRpcRouter::new()
            .methods([
                RpcMethod::new(SendMessage::call),
                RpcMethod::new(Charge::call),
                RpcMethod::new(StreamMessage::call),
                RpcMethod::new(Download::call),
                RpcMethod::new(SizedDownload::call),
            ])
            .with_state(app);
        Process { faults, idempotency, router }
    }

    pub(crate) fn runs(&self) -> Vec<Run> {
        self.log.lock().clone()
    }

    /// What the store holds for a request, whatever the faults.
    pub(crate) fn stored(&self, request: &Ask) -> Option<Occupant> {
        let key = request.key();
        let occupant = self.store.inspect(&key).now_or_never().expect("memory does not wait");
        occupant.expect("memory does not fail")
    }

    /// A chunk of a recording, whatever the faults.
    pub(crate) fn chunk(&self, token: ClaimToken, index: u32) -> Bytes {
        let chunk = self.store.read_chunk(token, index).now_or_never().expect("memory does not wait");
        chunk.expect("memory does not fail").expect("the chunk is there")
    }

    pub(crate) fn is_stored(&self, request: &Ask) -> bool {
        matches!(self.stored(request), Some(Occupant::Completed(_)))
    }
}

pub(crate) fn config() -> Config {
    Config::default().wait(WAIT).lease(LEASE).expect("a lease")
}

/// One agent.
#[derive(Clone)]
pub(crate) struct Process {
    pub(crate) faults: Faults,
    pub(crate) idempotency: Idempotency<MemoryConnection>,
    pub(crate) router: Router,
}

impl Process {
    /// Sends a request and reads its whole answer.
    pub(crate) async fn ask(&self, ask: &Ask) -> Answer {
        Answer::read(self.head(ask).await).await
    }

    /// Sends a request and reads the head of its answer.
    pub(crate) async fn head(&self, ask: &Ask) -> Response {
        self.router.clone().oneshot(ask.request()).await.expect("infallible")
    }

    /// Sends a request from a task of its own.
    pub(crate) fn spawn(&self, ask: &Ask) -> tokio::task::JoinHandle<Answer> {
        let (process, ask) = (self.clone(), ask.clone());
        tokio::spawn(async move { process.ask(&ask).await })
    }
}

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) method: &'static str,
    pub(crate) message_id: String,
    pub(crate) params: serde_json::Value,
    pub(crate) headers: HeaderMap,
}

impl Ask {
    /// A request with a key that no other test uses: keys are numbered by the caller.
    pub(crate) fn new(method: &'static str, number: u16, act: &Act) -> Self {
        let message_id = format!("01983a7e-0000-7000-8000-00000000{number:04x}");
        let params = serde_json::json!({"message": {"messageId": message_id}, "act": act});
        let mut headers = HeaderMap::new();
        headers.insert(A2A_EXTENSIONS, HeaderValue::from_static(URI));
        Self { method, message_id, params, headers }
    }

    pub(crate) fn send(number: u16, act: Act) -> Self {
        Self::new(SEND, number, &act)
    }

    pub(crate) fn stream(number: u16, act: Act) -> Self {
        Self::new(STREAM, number, &act)
    }

    /// The same key and operation, another payload.
    pub(crate) fn with_payload(&self, payload: &str) -> Self {
        let mut other = self.clone();
        other.params["payload"] = payload.into();
        other
    }

    pub(crate) fn with_header(&self, name: &'static str, value: &str) -> Self {
        let mut other = self.clone();
        other.headers.insert(HeaderName::from_static(name), HeaderValue::from_str(value).expect("text"));
        other
    }

    pub(crate) fn without_activation(&self) -> Self {
        let mut other = self.clone();
        other.headers.remove(A2A_EXTENSIONS);
        other
    }

    pub(crate) fn key(&self) -> Key {
        let scope = match self.headers.get("x-tenant") {
            Some(tenant) => Scope::of(tenant.to_str().expect("text")),
            None => Scope::global(),
        };
        Key { scope, message_id: self.message_id.parse().expect("a UUID") }
    }

    fn request(&self) -> Request {
        let body = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": self.method, "params": self.params});
        let mut request = Request::post("/").body(Body::from(body.to_string())).expect("a request");
        *request.headers_mut() = self.headers.clone();
        request
    }
}

/// One answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
    /// Whether the body came to its end, or was cut off.
    pub(crate) whole: bool,
}

impl Answer {
    pub(crate) async fn read(response: Response) -> Self {
        let (parts, body) = response.into_parts();
        let mut frames = body.into_data_stream();
        let mut bytes = Vec::new();
        let mut whole = true;
        while let Some(frame) = frames.next().await {
            match frame {
                Ok(frame) => bytes.extend_from_slice(&frame),
                Err(_) => whole = false,
            }
        }
        let body = String::from_utf8(bytes).expect("text");
        Self { status: parts.status, headers: parts.headers, body, whole }
    }

    pub(crate) fn is_replay(&self) -> bool {
        self.headers.contains_key(IDEMPOTENT_REPLAYED)
    }

    /// The extension's own error code.
    pub(crate) fn refusal(&self) -> Option<String> {
        let body: serde_json::Value = serde_json::from_str(&self.body).ok()?;
        body["error"]["data"]["code"].as_str().map(str::to_owned)
    }

    #[track_caller]
    pub(crate) fn assert_refused(&self, code: &str) {
        assert_eq!(self.refusal().as_deref(), Some(code), "{self:?}");
    }

    /// First answer, not refused.
    #[track_caller]
    pub(crate) fn assert_first(&self) {
        assert!(self.refusal().is_none() && !self.is_replay(), "{self:?}");
    }

    /// The same answer again, marked as such.
    #[track_caller]
    pub(crate) fn assert_replays(&self, first: &Self) {
        assert!(self.is_replay(), "{self:?}");
        assert_eq!((self.status, &self.body, self.whole), (first.status, &first.body, first.whole));
        assert_eq!(self.stored_headers(), first.stored_headers());
    }

    /// Without what says that this is a replay, and without the server's own.
    fn stored_headers(&self) -> HeaderMap {
        let mut headers = self.headers.clone();
        for own in [IDEMPOTENT_REPLAYED, header::CONTENT_LENGTH] {
            headers.remove(own);
        }
        headers
    }
}

//! What `#[idempotent]` expands to calls: one request on its way through an annotated handler.
//!
//! The attribute keeps the handler's name and gives it one argument, a [`Call`]. Its body is a call of [`Call::serve`], which
//! extracts the header-only arguments, evaluates the scope, splits the call, and hands the gate the future that extracts the last
//! argument and runs the user's function.

mod arguments;

use std::{marker::PhantomData, sync::Arc};

use axum::{
    body::Body,
    extract::{FromRequest, Request},
    response::Response,
};
use futures_core::future::BoxFuture;
use http::{header, request::Parts};

use arguments::{Arguments, Handling, Headers, Run};
pub use arguments::{NoBody, global_scope, respond, scope};

use crate::{
    context::IdempotencyContext,
    effects::Effects,
    engine::{Idempotency, SuppliesIdempotency},
    error::{Refusal, shown},
    extension::{self, Activation, operation_of},
    gate::{
        Answer, Ask, Caller, Extracting, Ran, Work,
        serve::{self, Served},
    },
    json::Numbers,
    message_id::{Key, Scope},
    metrics::Outcome,
    rpc::{
        Reply, RpcError, body,
        call::{KeyRule, RpcCall},
        json_text::JsonText,
    },
    store::OnTakeover,
};

/// An annotated handler, as a type.
pub trait Operation: Send + Sync + 'static {
    /// One constant, and not one for each option: each is compiled by itself.
    const ANNOTATION: Annotation;
}

/// The options of an annotation that matter at run time.
#[derive(Debug, Clone, Copy)]
pub struct Annotation {
    /// The method's name as annotated. A method that A2A knows under two names answers to both.
    pub method: &'static str,
    /// Where the key lies in `params` (RFC 6901).
    pub key: &'static str,
    /// What happens when an owner dies.
    pub on_takeover: OnTakeover,
}

impl Annotation {
    /// The method's 0.3 name.
    fn operation(&self) -> &'static str {
        operation_of(self.method)
    }
}

/// One request to an annotated handler `O`, in a router with state `S`, whose store has connections `C`.
pub struct Call<O, S, C: 'static> {
    incoming: Incoming<S, C>,
    operation: PhantomData<fn() -> O>,
}

impl<O, S, C> FromRequest<S> for Call<O, S, C>
where
    O: Operation,
    S: SuppliesIdempotency<C> + Clone + Send + Sync + 'static,
    C: 'static,
{
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        Incoming::receive(request, state, O::ANNOTATION).await.map(Self::new)
    }
}

/// A [`Call`], whichever operation it is to.
pub(crate) struct Incoming<S, C: 'static> {
    annotation: Annotation,
    parts: Parts,
    call: Arc<RpcCall>,
    state: S,
    idempotency: Idempotency<C>,
    context: IdempotencyContext,
    effects: Effects<C>,
}

/// A handler that takes an [`Incoming`] request.
type Handler<S, C> = Box<dyn FnOnce(Incoming<S, C>) -> BoxFuture<'static, Response> + Send>;

impl<S, C> Incoming<S, C>
where
    S: SuppliesIdempotency<C> + Clone + Send + Sync + 'static,
    C: 'static,
{
    /// Takes a request in and lets `handler` answer it.
    pub(crate) async fn answer(request: Request, state: S, annotation: Annotation, handler: Handler<S, C>) -> Response {
        match Self::receive(request, &state, annotation).await {
            Ok(incoming) => handler(incoming).await,
            Err(refused) => refused,
        }
    }

    async fn receive(request: Request, state: &S, annotation: Annotation) -> Result<Self, Response> {
        let idempotency = state.idempotency();
        let (mut parts, call) = match request.extensions().get::<Arc<RpcCall>>().cloned() {
            Some(call) => (request.into_parts().0, call),
            None => read(request, annotation, idempotency.settings().numbers).await?,
        };
        let activation = Activation::of(&parts.headers);
        let early = |error: RpcError| {
            idempotency.metrics().count(annotation.operation(), Outcome::Refused);
            echoing(error.into_response(&call.id()), activation)
        };
        if call.is_notification() {
            // JSON-RPC 2.0 section 4.1: it could not be answered.
            return Err(early(RpcError::new(
                RpcError::INVALID_REQUEST,
                "Invalid request: this method cannot be called as a notification; send an `id`",
            )));
        }
        call.check_version(&parts).map_err(early)?;
        let (context, effects) = (IdempotencyContext::unset(), Effects::collect());
        parts.extensions.insert(context.clone());
        parts.extensions.insert(effects.clone());
        parts.extensions.insert(call.dialect());
        Ok(Self { annotation, parts, call, state: state.clone(), idempotency, context, effects })
    }
}

/// Reads a request that no router has read before: the handler is mounted by itself, as in `post(send_message)`.
async fn read(request: Request, annotation: Annotation, numbers: Numbers) -> Result<(Parts, Arc<RpcCall>), Response> {
    let (mut parts, body) = body::read(request).await?;
    let rule =
        |method: &str| (operation_of(method) == annotation.operation()).then_some(KeyRule { pointer: annotation.key });
    let call = RpcCall::read(body, numbers, rule).map_err(|error| error.into_response())?;
    if call.keyed().is_none() {
        return Err(method_not_found(&call));
    }
    let call = Arc::new(call);
    parts.extensions.insert(Arc::clone(&call));
    Ok((parts, call))
}

pub(crate) fn method_not_found(call: &RpcCall) -> Response {
    RpcError::new(RpcError::METHOD_NOT_FOUND, "Method not found").into_response(&call.id())
}

/// Echoes the extension to a client that activated it.
fn echoing(mut response: Response, activation: Activation) -> Response {
    if activation.activated {
        extension::echo(response.headers_mut(), activation);
    }
    response
}

impl<O, S, C> Call<O, S, C>
where
    O: Operation,
    S: Clone + Send + Sync + 'static,
    C: 'static,
{
    pub(crate) fn new(incoming: Incoming<S, C>) -> Self {
        Self { incoming, operation: PhantomData }
    }

    /// Extracts the header-only arguments `H`, evaluates the scope, and lets the gate run the handler with them and with the last
    /// argument.
    #[doc(hidden)]
    pub fn serve<H, L, M>(self, scope: fn(&H) -> Scope, run: Run<H, L>) -> BoxFuture<'static, Response>
    where
        H: Headers<S> + Send + 'static,
        L: FromRequest<S, M> + Send + 'static,
        M: 'static,
    {
        Box::pin(self.incoming.serve(Box::new(Arguments::of(scope, run))))
    }
}

impl<S, C> Incoming<S, C>
where
    S: Clone + Send + Sync + 'static,
    C: 'static,
{
    async fn serve(mut self, mut handling: Box<dyn Handling<S>>) -> Response {
        let scope = match handling.extract_headers(&mut self.parts, &self.state).await {
            Ok(scope) => scope,
            Err(response) => return self.refused(response),
        };
        let all_extracted = handling.reads_headers_only();
        if all_extracted {
            // What authenticates must do so for replays too.
            let request = Request::from_parts(self.parts.clone(), Body::empty());
            if let Err(response) = handling.extract_last(request, &self.state).await {
                return self.refused(response);
            }
        }
        let (gated, Execution { request, state, reply, extracting }) = self.split();
        let run = async move {
            if !all_extracted {
                extracting.set(true);
                let extracted = handling.extract_last(request, &state).await;
                extracting.set(false);
                if let Err(response) = extracted {
                    return Answer(Ran::Refused(response));
                }
            }
            let failed = reply.failed().clone();
            let response = handling.run(reply).await;
            Answer(Ran::Answered { response, failed })
        };
        gated.run(scope, Box::pin(run)).await
    }

    fn refused(&self, response: Response) -> Response {
        self.idempotency.metrics().count(self.annotation.operation(), Outcome::Refused);
        echoing(response, Activation::of(&self.parts.headers))
    }

    /// Parts what the gate decides by from what the handler is run with.
    fn split(self) -> (Gated<C>, Execution<S>) {
        let Self { annotation, parts, call, state, idempotency, context, effects } = self;
        let has_credentials =
            parts.headers.contains_key(header::AUTHORIZATION) || parts.headers.contains_key(header::COOKIE);
        let activation = Activation::of(&parts.headers);
        let request = Request::from_parts(parts, Body::from(call.body()));
        let extracting = Extracting::default();
        let execution = Execution { request, state, reply: Reply::to(call.id()), extracting: extracting.clone() };
        let gated = Gated { annotation, call, idempotency, context, effects, extracting, activation, has_credentials };
        (gated, execution)
    }
}

/// What a handler is run with under its claim.
struct Execution<S> {
    request: Request,
    state: S,
    reply: Reply,
    extracting: Extracting,
}

/// A request in front of the gate, its header-only arguments extracted.
struct Gated<C: 'static> {
    annotation: Annotation,
    call: Arc<RpcCall>,
    idempotency: Idempotency<C>,
    context: IdempotencyContext,
    effects: Effects<C>,
    extracting: Extracting,
    activation: Activation,
    has_credentials: bool,
}

impl<C: 'static> Gated<C> {
    /// Lets `run` run at most once for the request's key, and answers.
    async fn run(self, scope: Scope, run: BoxFuture<'static, Answer>) -> Response {
        let Self { annotation, call, idempotency, context, effects, extracting, activation, has_credentials } = self;
        let Annotation { method, on_takeover, .. } = annotation;
        let caller = Caller { id: call.id(), dialect: call.dialect(), activation };
        let work = Work { method: annotation.operation(), run, context, effects, extracting };
        let request = Keyed { method, on_takeover, call: &call, caller, scope, has_credentials };
        pass(&idempotency, request, work).await
    }
}

/// What the gate needs to know of a request, its types erased.
struct Keyed<'a> {
    method: &'static str,
    on_takeover: OnTakeover,
    call: &'a RpcCall,
    caller: Caller,
    scope: Scope,
    has_credentials: bool,
}

async fn pass<C: 'static>(idempotency: &Idempotency<C>, request: Keyed<'_>, work: Work<C>) -> Response {
    let method = request.method;
    let Served { response, outcome } = admit(idempotency, request, work).await;
    // What ran is counted where it ran.
    if outcome != Outcome::Executed {
        idempotency.metrics().count(operation_of(method), outcome);
    }
    response
}

/// Activation, key, canonical form, then the gate: the order in which the error table promises its refusals.
async fn admit<C: 'static>(idempotency: &Idempotency<C>, request: Keyed<'_>, work: Work<C>) -> Served {
    let engine = idempotency.engine();
    let Keyed { method, on_takeover, call, caller, scope, has_credentials } = request;
    if !caller.activation.activated {
        if engine.config.required {
            return refuse(Refusal::NotActivated, &caller);
        }
        if engine.is_draining() {
            return refuse(Refusal::StoreUnavailable { message_id: JsonText::NULL }, &caller);
        }
        let response = serve::serve_unkeyed(engine, &caller, work).await;
        let response = response.unwrap_or_else(|| RpcError::internal("Internal error").into_response(&caller.id));
        return Served { response, outcome: Outcome::Executed };
    }
    let refuse = |refusal: Refusal| {
        let served = refuse(refusal, &caller);
        Served { response: echoing(served.response, caller.activation), ..served }
    };
    // The router and `read` both key every request to an annotated method.
    let Some(keyed) = call.keyed() else {
        return refuse(Refusal::MessageIdMalformed { submitted: JsonText::NULL });
    };
    let message_id = match keyed.message_id {
        Ok(message_id) => message_id,
        Err(_) => {
            tracing::warn!(method, "a request's messageId is missing or not a canonical UUID");
            let submitted = keyed.submitted.clone().unwrap_or(JsonText::NULL);
            return refuse(Refusal::MessageIdMalformed { submitted });
        }
    };
    let shown = shown(keyed.submitted.as_ref(), message_id);
    let request_hash = match (keyed.request_hash, call.violation()) {
        (Some(request_hash), _) => request_hash,
        (None, Some(violation)) => {
            return refuse(Refusal::NotCanonicalizable { message_id: shown, violation: violation.clone() });
        }
        // A key was found, so there are params, and they are hashed unless something is wrong with them.
        (None, None) => return refuse(Refusal::MessageIdMalformed { submitted: shown }),
    };
    if scope.is_global() && has_credentials {
        engine.warn_unscoped(method);
    }
    let ask = Ask {
        key: Key { scope, message_id },
        request_hash,
        operation: operation_of(method),
        on_takeover,
        shown,
        caller,
    };
    let served = serve::serve(engine, &ask, work).await;
    Served { response: echoing(served.response, ask.caller.activation), ..served }
}

fn refuse(refusal: Refusal, caller: &Caller) -> Served {
    Served { response: refusal.into_response(&caller.id, caller.dialect), outcome: Outcome::Refused }
}

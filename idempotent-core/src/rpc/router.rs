//! [`JsonRpcRouter`]: an A2A agent's methods behind one path, and its card.

use std::{collections::BTreeMap, fmt, future::Future, sync::Arc};

use axum::{
    Router,
    extract::{DefaultBodyLimit, Request, State},
    response::{IntoResponse, Response},
    routing::post,
};
use futures_core::future::BoxFuture;
use http::StatusCode;

use super::{
    RpcHandler, body,
    call::{KeyRule, RpcCall},
};
use crate::{
    card::{self, Card},
    config::Config,
    engine::SuppliesIdempotency,
    extension::other_name,
    handler::{Annotation, Call, Incoming, Operation, method_not_found},
};

type Answer<S> = Arc<dyn Fn(Request, S) -> BoxFuture<'static, Response> + Send + Sync>;

/// An annotated handler, ready to be mounted by [`JsonRpcRouter::methods`]; `rpc_methods!` makes a list of them.
pub struct RpcMethod<S> {
    name: &'static str,
    rule: KeyRule,
    answer: Answer<S>,
    settings: fn(&S) -> Config,
}

/// What an annotated function takes: a [`Call`] that a router with state `S` can make.
#[diagnostic::on_unimplemented(
    message = "this handler is not annotated with `#[idempotent(method = …)]`",
    label = "takes `{Self}`, so it is mounted under a name: `.method(\"tasks/get\", get_task)`"
)]
pub trait IncomingCall<S>: Sized + Send + 'static {
    /// What the function answers with: a [`Response`], a name by which to ask for nothing more of what is not annotated.
    type Answer: IntoResponse;

    /// What the function's annotation says.
    const ANNOTATION: Annotation;

    /// The settings of the engine that a state supplies.
    const SETTINGS: fn(&S) -> Config;

    /// Takes a request in and lets the function answer it.
    fn answer(request: Request, state: S, function: Function<Self, Self::Answer>) -> BoxFuture<'static, Response>;
}

/// An annotated function that takes `A`.
type Function<A, R> = Box<dyn FnOnce(A) -> BoxFuture<'static, R> + Send>;

fn settings<S: SuppliesIdempotency<C>, C: 'static>(state: &S) -> Config {
    state.idempotency().settings().clone()
}

impl<O, S, C> IncomingCall<S> for Call<O, S, C>
where
    O: Operation,
    S: SuppliesIdempotency<C> + Clone + Send + Sync + 'static,
    C: 'static,
{
    type Answer = Response;

    const ANNOTATION: Annotation = O::ANNOTATION;

    const SETTINGS: fn(&S) -> Config = settings::<S, C>;

    fn answer(request: Request, state: S, function: Function<Self, Response>) -> BoxFuture<'static, Response> {
        let handler = Box::new(|incoming| function(Call::new(incoming)));
        Box::pin(Incoming::answer(request, state, O::ANNOTATION, handler))
    }
}

/// A function that `#[idempotent]` annotates, in a router with state `S`; `A` is always inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not annotated with `#[idempotent(method = …)]`",
    label = "not an annotated handler"
)]
pub trait AnnotatedHandler<A, S>: Clone + Send + Sync + 'static {
    /// What the function's annotation says.
    const ANNOTATION: Annotation;

    /// The settings of the engine that a state supplies.
    const SETTINGS: fn(&S) -> Config;

    /// Answers one request.
    fn answer(self, request: Request, state: S) -> BoxFuture<'static, Response>;
}

// One bound on the function, and not one on each of its parts: what does not fit is then told once, at the function.
impl<A, S, F, Fut> AnnotatedHandler<A, S> for F
where
    A: IncomingCall<S>,
    S: Send + Sync + 'static,
    F: Fn(A) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = A::Answer> + Send + 'static,
{
    const ANNOTATION: Annotation = A::ANNOTATION;

    const SETTINGS: fn(&S) -> Config = A::SETTINGS;

    fn answer(self, request: Request, state: S) -> BoxFuture<'static, Response> {
        A::answer(request, state, Box::new(move |call| Box::pin(self(call))))
    }
}

impl<S: Clone + Send + Sync + 'static> RpcMethod<S> {
    /// From a handler that is annotated with `#[idempotent]`.
    pub fn new<A, F>(handler: F) -> Self
    where
        F: AnnotatedHandler<A, S>,
    {
        Self {
            name: F::ANNOTATION.method,
            rule: KeyRule { pointer: F::ANNOTATION.key },
            answer: Arc::new(move |request, state| handler.clone().answer(request, state)),
            settings: F::SETTINGS,
        }
    }
}

/// [`RpcMethod::new`] as a free function: a path through a type annotates that type, and the borrow checker examines each such
/// annotation at some length.
pub fn rpc_method<A, S, F>(handler: F) -> RpcMethod<S>
where
    F: AnnotatedHandler<A, S>,
    S: Clone + Send + Sync + 'static,
{
    RpcMethod::new(handler)
}

impl<S> fmt::Debug for RpcMethod<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RpcMethod").field(&self.name).finish()
    }
}

/// A router whose methods or card do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RouterError {
    /// Two handlers answer the same method.
    #[error("the method `{0}` is mounted twice")]
    MountedTwice(String),
    /// The card lists other idempotent methods than are mounted.
    #[error("{0}")]
    CardDisagrees(String),
}

struct Method<S> {
    answer: Answer<S>,
    rule: Option<KeyRule>,
}

impl<S> Clone for Method<S> {
    fn clone(&self) -> Self {
        Self { answer: Arc::clone(&self.answer), rule: self.rule }
    }
}

/// Routes JSON-RPC requests to handlers by their method, in both A2A dialects.
///
/// A method that A2A knows under two names is mounted under both: `tasks/get` answers `GetTask` too. What cannot be routed
/// is answered as JSON-RPC says: -32700, -32600, -32601, and -32009 for an `A2A-Version` other than 0.3 and 1.0, all with HTTP
/// 200. Batches are refused. A notification runs and is answered with HTTP 204, unless its method is annotated: then it is
/// refused.
///
/// ```
/// use idempotent_core::rpc::{JsonRpcRouter, Params, RpcError};
///
/// async fn add(Params((a, b)): Params<(i32, i32)>) -> Result<i32, RpcError> {
///     a.checked_add(b).ok_or_else(|| RpcError::invalid_params("too large"))
/// }
///
/// let app: axum::Router = JsonRpcRouter::new().method("add", add).with_state(());
/// ```
pub struct JsonRpcRouter<S> {
    methods: BTreeMap<String, Method<S>>,
    twice: Option<String>,
    idempotent: Vec<&'static str>,
    settings: Option<fn(&S) -> Config>,
    card: Option<Card>,
}

impl<S> fmt::Debug for JsonRpcRouter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonRpcRouter").field("methods", &self.methods.keys()).finish_non_exhaustive()
    }
}

impl<S: Clone + Send + Sync + 'static> Default for JsonRpcRouter<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Clone + Send + Sync + 'static> JsonRpcRouter<S> {
    /// A router without methods.
    pub fn new() -> Self {
        Self { methods: BTreeMap::new(), twice: None, idempotent: Vec::new(), settings: None, card: None }
    }

    /// Mounts annotated handlers under the methods that their annotations name.
    pub fn methods(mut self, methods: impl IntoIterator<Item = RpcMethod<S>>) -> Self {
        for RpcMethod { name, rule, answer, settings } in methods {
            self.idempotent.push(name);
            self.settings.get_or_insert(settings);
            self.mount(name, Method { answer, rule: Some(rule) });
        }
        self
    }

    /// Mounts a handler of a method that needs no key.
    pub fn method<H, T>(mut self, name: &str, handler: H) -> Self
    where
        H: RpcHandler<T, S>,
    {
        let answer = move |request: Request, state: S| handler.clone().call(request, state);
        self.mount(name, Method { answer: Arc::new(answer), rule: None });
        self
    }

    fn mount(&mut self, name: &str, method: Method<S>) {
        for name in [Some(name), other_name(name)].into_iter().flatten() {
            if self.methods.insert(name.to_owned(), method.clone()).is_some() {
                self.twice.get_or_insert_with(|| name.to_owned());
            }
        }
    }

    /// Serves the agent's card under `/.well-known/agent-card.json`, with the engine's settings as its params.
    pub fn agent_card(mut self, card: Card) -> Self {
        self.card = Some(card);
        self
    }

    /// The axum router: `POST /` for the methods, and the card's path.
    ///
    /// # Panics
    ///
    /// When [`JsonRpcRouter::try_with_state`] fails.
    pub fn with_state(self, state: S) -> Router {
        match self.try_with_state(state) {
            Ok(router) => router,
            Err(error) => panic!("{error}"),
        }
    }

    /// The axum router: `POST /` for the methods, and the card's path.
    ///
    /// # Errors
    ///
    /// A method is mounted twice, or the card and the annotated handlers that are mounted do not agree.
    pub fn try_with_state(self, state: S) -> Result<Router, RouterError> {
        if let Some(name) = self.twice {
            return Err(RouterError::MountedTwice(name));
        }
        let config = self.settings.map(|settings| settings(&state));
        let mut router = Router::new();
        if let Some(card) = self.card {
            if let Some(disagreement) = card.disagreement(self.idempotent.iter().copied()) {
                return Err(RouterError::CardDisagrees(disagreement));
            }
            let params = config.clone().unwrap_or_default().declared();
            router = router.route(card::WELL_KNOWN_PATH, card::serve(card.json(&params)));
        }
        let config = config.unwrap_or_default();
        let limit = DefaultBodyLimit::max(config.max_request_bytes);
        let routes = Routes { methods: Arc::new(self.methods), config: Arc::new(config), state };
        Ok(router.route("/", post(route::<S>).layer(limit).with_state(routes)))
    }
}

struct Routes<S> {
    methods: Arc<BTreeMap<String, Method<S>>>,
    config: Arc<Config>,
    state: S,
}

impl<S: Clone> Clone for Routes<S> {
    fn clone(&self) -> Self {
        Self { methods: Arc::clone(&self.methods), config: Arc::clone(&self.config), state: self.state.clone() }
    }
}

async fn route<S: Clone + Send + Sync + 'static>(State(routes): State<Routes<S>>, request: Request) -> Response {
    let (parts, body) = match body::read(request).await {
        Ok(read) => read,
        Err(unread) => return unread,
    };
    let rule_of = |method: &str| routes.methods.get(method).and_then(|method| method.rule);
    let call = match RpcCall::read(body, routes.config.numbers, rule_of) {
        Ok(call) => call,
        Err(unreadable) => return unreadable.into_response(),
    };
    let Some(method) = routes.methods.get(call.method()) else {
        return method_not_found(&call);
    };
    let is_keyed = method.rule.is_some();
    if !is_keyed {
        // An annotated handler does this by itself, since it may be mounted without this router.
        if let Err(error) = call.check_version(&parts) {
            return error.into_response(&call.id());
        }
    }
    let silent = call.is_notification() && !is_keyed;
    let mut request = Request::from_parts(parts, call.body().into());
    request.extensions_mut().insert(call.dialect());
    request.extensions_mut().insert(Arc::new(call));
    let response = (method.answer)(request, routes.state).await;
    if silent { StatusCode::NO_CONTENT.into_response() } else { response }
}

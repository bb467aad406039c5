//! From what a handler returns to the HTTP response that carries it.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use axum::response::{IntoResponse, Response, Sse};
use futures_core::Stream;
use http::{HeaderMap, StatusCode};
use serde::Serialize;

use super::{
    RpcError, RpcStream,
    error::json_response,
    json_text::{self, JsonText},
};

/// What a handler's return value becomes a response for: the request's `id`.
#[derive(Debug, Clone)]
pub struct Reply {
    id: JsonText,
    failed: Failed,
}

impl Reply {
    pub(crate) fn to(id: JsonText) -> Self {
        Self { id, failed: Failed::default() }
    }

    pub(crate) fn id(&self) -> &JsonText {
        &self.id
    }

    pub(crate) fn failed(&self) -> &Failed {
        &self.failed
    }

    fn success<T: Serialize>(self, headers: HeaderMap, result: &T) -> Response {
        match JsonText::of(result) {
            Ok(result) => json_response(StatusCode::OK, headers, json_text::success(&self.id, &result)),
            Err(error) => {
                tracing::error!(%error, "the result of a JSON-RPC method is not JSON");
                self.failure(RpcError::internal("Internal error: the result cannot be written as JSON"))
            }
        }
    }

    fn failure(self, error: RpcError) -> Response {
        self.failed.set();
        error.into_response(&self.id)
    }
}

/// Whether the operation said that it failed; for a stream this is known at its end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Failed(Arc<AtomicBool>);

impl Failed {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// What a handler of [`JsonRpcRouter`](super::JsonRpcRouter) may return, annotated or not.
///
/// - `Result<T, E>` where `T` is [`Serialize`] and `E` becomes an [`RpcError`]: the result or the error, in a JSON-RPC response
///   with the request's `id`; `Result<(HeaderMap, T), E>` adds HTTP headers.
/// - [`RpcStream`], alone or in a `Result`: server-sent events, each a JSON-RPC response. A failure before the first event is
///   answered as plain JSON.
/// - [`Sse`] or a [`Response`], alone or in a `Result<_, E>`, and everything else that is [`IntoResponse`]: sent as it is.
///   Status 400 and above counts as a failure of the operation: its effects are dropped.
///
/// `Via` tells these apart and is always inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not something that a JSON-RPC handler can return",
    label = "expected `Result<T, RpcError>` with a `T: Serialize`, an `RpcStream`, or an axum response",
    note = "return `Result<T, E>` where `T: serde::Serialize` and `E: Into<RpcError>`; `T` is the value itself and not a `Json<T>`"
)]
pub trait IntoRpcResponse<Via>: Sized {
    /// Makes the response. Waits for a stream's first event.
    fn into_rpc_response(self, reply: Reply) -> impl Future<Output = Response> + Send;
}

/// Marks [`IntoRpcResponse`] for a serialisable result.
#[derive(Debug)]
pub enum ViaResult {}
/// Marks [`IntoRpcResponse`] for a serialisable result with headers.
#[derive(Debug)]
pub enum ViaResultWithHeaders {}
/// Marks [`IntoRpcResponse`] for a typed stream.
#[derive(Debug)]
pub enum ViaStream {}
/// Marks [`IntoRpcResponse`] for a typed stream or an error.
#[derive(Debug)]
pub enum ViaStreamResult {}
/// Marks [`IntoRpcResponse`] for axum's server-sent events or an error.
#[derive(Debug)]
pub enum ViaSseResult {}
/// Marks [`IntoRpcResponse`] for a finished response or an error.
#[derive(Debug)]
pub enum ViaResponseResult {}
/// Marks [`IntoRpcResponse`] for anything that axum can answer with.
#[derive(Debug)]
pub enum ViaAxum {}

impl<T: Serialize + Send, E: Into<RpcError> + Send> IntoRpcResponse<ViaResult> for Result<T, E> {
    async fn into_rpc_response(self, reply: Reply) -> Response {
        match self {
            Ok(result) => reply.success(HeaderMap::new(), &result),
            Err(error) => reply.failure(error.into()),
        }
    }
}

impl<T: Serialize + Send, E: Into<RpcError> + Send> IntoRpcResponse<ViaResultWithHeaders>
    for Result<(HeaderMap, T), E>
{
    async fn into_rpc_response(self, reply: Reply) -> Response {
        match self {
            Ok((headers, result)) => reply.success(headers, &result),
            Err(error) => reply.failure(error.into()),
        }
    }
}

impl<S, T, E> IntoRpcResponse<ViaStream> for RpcStream<S>
where
    S: Stream<Item = Result<T, E>> + Send + 'static,
    T: Serialize,
    E: Into<RpcError>,
{
    async fn into_rpc_response(self, reply: Reply) -> Response {
        self.begin(reply).await
    }
}

impl<S, T, E, F> IntoRpcResponse<ViaStreamResult> for Result<RpcStream<S>, F>
where
    S: Stream<Item = Result<T, E>> + Send + 'static,
    T: Serialize,
    E: Into<RpcError>,
    F: Into<RpcError> + Send,
{
    async fn into_rpc_response(self, reply: Reply) -> Response {
        match self {
            Ok(stream) => stream.begin(reply).await,
            Err(error) => reply.failure(error.into()),
        }
    }
}

impl<S, E> IntoRpcResponse<ViaSseResult> for Result<Sse<S>, E>
where
    Sse<S>: IntoResponse + Send,
    E: Into<RpcError> + Send,
{
    async fn into_rpc_response(self, reply: Reply) -> Response {
        match self {
            Ok(events) => events.into_response(),
            Err(error) => reply.failure(error.into()),
        }
    }
}

impl<E: Into<RpcError> + Send> IntoRpcResponse<ViaResponseResult> for Result<Response, E> {
    async fn into_rpc_response(self, reply: Reply) -> Response {
        match self {
            Ok(response) => raw(response, &reply),
            Err(error) => reply.failure(error.into()),
        }
    }
}

impl<R: IntoResponse + Send> IntoRpcResponse<ViaAxum> for R {
    async fn into_rpc_response(self, reply: Reply) -> Response {
        raw(self.into_response(), &reply)
    }
}

fn raw(response: Response, reply: &Reply) -> Response {
    if response.status().as_u16() >= 400 {
        reply.failed.set();
    }
    response
}

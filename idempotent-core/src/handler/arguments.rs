//! The part of a call that knows the types of a handler's arguments: extracting them, and running the user's function with them.
//!
//! All of it is compiled for each handler, or for each type of argument, and nothing else is.

use std::{any::TypeId, convert::Infallible, future::Future, marker::PhantomData};

use axum::{
    extract::{FromRequest, FromRequestParts, Request},
    response::{IntoResponse, Response},
};
use futures_core::future::BoxFuture;
use http::{HeaderMap, request::Parts};

use crate::{
    message_id::{Scope, ToScope},
    rpc::{IntoRpcResponse, Reply, RpcError},
};

/// Runs a handler with its arguments, and answers.
pub(super) type Run<H, L> = fn(H, L, Reply) -> BoxFuture<'static, Response>;

/// Answers with what a handler returns.
#[doc(hidden)]
pub fn respond<Fut, R, Via>(run: Fut, reply: Reply) -> BoxFuture<'static, Response>
where
    Fut: Future<Output = R> + Send + 'static,
    R: IntoRpcResponse<Via> + Send + 'static,
    Via: 'static,
{
    Box::pin(async move { run.await.into_rpc_response(reply).await })
}

/// A handler whose arguments are being extracted, whatever their types.
pub(super) trait Handling<S>: Send {
    /// Extracts the header-only arguments and evaluates the scope. The error is the finished response.
    fn extract_headers<'a>(&'a mut self, parts: &'a mut Parts, state: &'a S) -> BoxFuture<'a, Result<Scope, Response>>;

    /// Whether the last argument, too, reads headers only.
    fn reads_headers_only(&self) -> bool;

    /// Extracts the last argument, which may read the body. The error is the finished response.
    fn extract_last<'a>(&'a mut self, request: Request, state: &'a S) -> BoxFuture<'a, Result<(), Response>>;

    /// Runs the handler, all of its arguments being extracted.
    fn run(self: Box<Self>, reply: Reply) -> BoxFuture<'static, Response>;
}

/// The arguments of a handler: those that read headers only, and the last one, extracted by `M`.
pub(super) struct Arguments<H, L, M> {
    headers: Option<H>,
    last: Option<L>,
    scope: fn(&H) -> Scope,
    run: Run<H, L>,
    way: PhantomData<fn() -> M>,
}

impl<H, L, M> Arguments<H, L, M> {
    pub(super) fn of(scope: fn(&H) -> Scope, run: Run<H, L>) -> Self {
        Self { headers: None, last: None, scope, run, way: PhantomData }
    }
}

impl<S, H, L, M> Handling<S> for Arguments<H, L, M>
where
    S: Send + Sync + 'static,
    H: Headers<S> + Send + 'static,
    L: FromRequest<S, M> + Send + 'static,
    M: 'static,
{
    fn extract_headers<'a>(&'a mut self, parts: &'a mut Parts, state: &'a S) -> BoxFuture<'a, Result<Scope, Response>> {
        Box::pin(extract_headers(&mut self.headers, self.scope, parts, state))
    }

    fn reads_headers_only(&self) -> bool {
        reads_headers_only::<M>()
    }

    fn extract_last<'a>(&'a mut self, request: Request, state: &'a S) -> BoxFuture<'a, Result<(), Response>> {
        Box::pin(extract_last(&mut self.last, request, state))
    }

    fn run(self: Box<Self>, reply: Reply) -> BoxFuture<'static, Response> {
        match (self.headers, self.last) {
            (Some(headers), Some(last)) => (self.run)(headers, last, reply),
            _ => unextracted(reply),
        }
    }
}

async fn extract_headers<H: Headers<S>, S>(
    headers: &mut Option<H>,
    scope: fn(&H) -> Scope,
    parts: &mut Parts,
    state: &S,
) -> Result<Scope, Response> {
    let extracted = H::extract(parts, state).await?;
    Ok(scope(headers.insert(extracted)))
}

async fn extract_last<L: FromRequest<S, M>, S, M>(
    last: &mut Option<L>,
    request: Request,
    state: &S,
) -> Result<(), Response> {
    *last = Some(L::from_request(request, state).await.map_err(IntoResponse::into_response)?);
    Ok(())
}

/// `Incoming::serve` runs no handler whose arguments have not been extracted.
fn unextracted(reply: Reply) -> BoxFuture<'static, Response> {
    Box::pin(async move { RpcError::internal("Internal error").into_response(reply.id()) })
}

/// The arguments that read only headers, as nested pairs: `(A, (B, ()))`.
pub trait Headers<S>: Sized {
    /// Extracts one after the other. The error is the finished response.
    fn extract(parts: &mut Parts, state: &S) -> impl Future<Output = Result<Self, Response>> + Send;
}

impl<S: Sync> Headers<S> for () {
    async fn extract(_: &mut Parts, _: &S) -> Result<Self, Response> {
        Ok(())
    }
}

impl<S, T, Rest> Headers<S> for (T, Rest)
where
    S: Sync,
    T: FromRequestParts<S> + Send,
    Rest: Headers<S> + Send,
{
    async fn extract(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let first = T::from_request_parts(parts, state).await.map_err(IntoResponse::into_response)?;
        Ok((first, Rest::extract(parts, state).await?))
    }
}

/// Stands for the last argument of a handler that has none.
#[derive(Debug)]
pub struct NoBody;

impl<S: Sync> FromRequest<S> for NoBody {
    type Rejection = Infallible;

    async fn from_request(_: Request, _: &S) -> Result<Self, Infallible> {
        Ok(Self)
    }
}

/// Whether axum extracts by `M`, its way from a type to `FromRequest`, without looking at the body. The type is private to
/// axum; that of an extractor which is known to read only headers is the same.
fn reads_headers_only<M: 'static>() -> bool {
    fn way_of<T: FromRequest<(), M>, M: 'static>(_: fn() -> T) -> TypeId {
        TypeId::of::<M>()
    }
    TypeId::of::<M>() == way_of(HeaderMap::new)
}

/// The scope of an annotation that names none.
#[doc(hidden)]
pub fn global_scope<H>(_: &H) -> Scope {
    Scope::global()
}

/// The scope that an annotation's expression names.
#[doc(hidden)]
pub fn scope<T: ToScope + ?Sized>(value: &T) -> Scope {
    value.to_scope()
}

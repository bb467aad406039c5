//! [`RpcHandler`]: async functions as JSON-RPC methods that need no key.

use std::{future::Future, sync::Arc};

use axum::{
    extract::{FromRequest, FromRequestParts, Request},
    response::{IntoResponse, Response},
};
use futures_core::future::BoxFuture;

use super::{IntoRpcResponse, call::RpcCall, json_text::JsonText, reply::Reply};

/// An async function that answers a JSON-RPC method: extractors as arguments, as with axum's handlers, and a return type that
/// is an [`IntoRpcResponse`].
///
/// `T` tells functions of different arguments apart and is always inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a JSON-RPC handler for a router with state `{S}`",
    label = "not a handler",
    note = "a handler is an `async fn` of up to 8 extractors, only the last of which may read the body, that returns \
            `Result<T, RpcError>` with a `T: Serialize`, an `RpcStream`, or an axum response"
)]
pub trait RpcHandler<T, S>: Clone + Send + Sync + 'static {
    /// Answers one request.
    fn call(self, request: Request, state: S) -> BoxFuture<'static, Response>;
}

fn reply_to(request: &Request) -> Reply {
    let call = request.extensions().get::<Arc<RpcCall>>();
    Reply::to(call.map_or(JsonText::NULL, |call| call.id()))
}

impl<F, Fut, R, Via, S> RpcHandler<((), Via), S> for F
where
    F: FnOnce() -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = R> + Send,
    R: IntoRpcResponse<Via> + Send,
{
    fn call(self, request: Request, _: S) -> BoxFuture<'static, Response> {
        let reply = reply_to(&request);
        Box::pin(async move { self().await.into_rpc_response(reply).await })
    }
}

macro_rules! impl_rpc_handler {
    ($($parts:ident)*; $last:ident) => {
        impl<F, Fut, R, Via, S, M, $($parts,)* $last> RpcHandler<(M, Via, $($parts,)* $last,), S> for F
        where
            F: FnOnce($($parts,)* $last) -> Fut + Clone + Send + Sync + 'static,
            Fut: Future<Output = R> + Send,
            R: IntoRpcResponse<Via> + Send,
            S: Send + Sync + 'static,
            $($parts: FromRequestParts<S> + Send,)*
            $last: FromRequest<S, M> + Send,
        {
            fn call(self, request: Request, state: S) -> BoxFuture<'static, Response> {
                Box::pin(async move {
                    let reply = reply_to(&request);
                    #[allow(unused_mut)]
                    let (mut parts, body) = request.into_parts();
                    $(
                        #[allow(non_snake_case)]
                        let $parts = match $parts::from_request_parts(&mut parts, &state).await {
                            Ok(extracted) => extracted,
                            Err(rejection) => return rejection.into_response(),
                        };
                    )*
                    let request = Request::from_parts(parts, body);
                    #[allow(non_snake_case)]
                    let $last = match $last::from_request(request, &state).await {
                        Ok(extracted) => extracted,
                        Err(rejection) => return rejection.into_response(),
                    };
                    self($($parts,)* $last).await.into_rpc_response(reply).await
                })
            }
        }
    };
}

impl_rpc_handler!(; A1);
impl_rpc_handler!(A1; A2);
impl_rpc_handler!(A1 A2; A3);
impl_rpc_handler!(A1 A2 A3; A4);
impl_rpc_handler!(A1 A2 A3 A4; A5);
impl_rpc_handler!(A1 A2 A3 A4 A5; A6);
impl_rpc_handler!(A1 A2 A3 A4 A5 A6; A7);
impl_rpc_handler!(A1 A2 A3 A4 A5 A6 A7; A8);

//! What an expansion of `#[idempotent]` names beside the gate's own types: parts of the prelude, which a user's module may
//! shadow or lack, and checks whose only work is to fail at compile time, at the user's own token.

use axum::{
    extract::FromRequest,
    response::{IntoResponse, Response},
};
use http::StatusCode;

pub use futures_core::future::BoxFuture;

pub use core::{
    clone::Clone,
    future::Future,
    marker::{Send, Sync},
};

use crate::engine::SuppliesIdempotency;

/// The state that an annotation names supplies the engine.
pub const fn supplies_idempotency<S: SuppliesIdempotency<C>, C: 'static>() {}

/// The type of a last argument can be extracted with the state that the annotation names.
pub const fn can_be_last<T: FromRequest<S, M>, S: Send + Sync, M>() {}

/// The body of a handler whose annotation has been refused. It is never run, since its crate does not compile.
pub fn refused<T>(_: T) -> BoxFuture<'static, Response> {
    Box::pin(async { StatusCode::INTERNAL_SERVER_ERROR.into_response() })
}

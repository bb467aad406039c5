//! [`Params`]: a method's `params`, read into a type.

use std::sync::Arc;

use axum::extract::{FromRequest, Request};
use serde::de::DeserializeOwned;

use super::{RpcError, RpcRejection, body, call::RpcCall};
use crate::json::Numbers;

/// Extracts the `params` of a JSON-RPC request.
///
/// Reads the body, so it is a handler's last argument. Absent `params` are read as `null`.
///
/// # Rejections
///
/// -32602 with HTTP 200 when `params` do not fit `T`, are not I-JSON, or have a member named like one of serde_json's private
/// tokens: a `serde_json::Value` inside `T` would hold something else than what was hashed. Never stored.
///
/// ```
/// use idempotent_core::rpc::{Params, RpcError};
///
/// #[derive(serde::Deserialize)]
/// struct TaskId { id: String }
///
/// async fn get_task(Params(task): Params<TaskId>) -> Result<String, RpcError> {
///     Ok(task.id)
/// }
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Params<T>(pub T);

impl<T, S> FromRequest<S> for Params<T>
where
    T: DeserializeOwned,
    S: Send + Sync,
{
    type Rejection = RpcRejection;

    async fn from_request(request: Request, _: &S) -> Result<Self, Self::Rejection> {
        let call = received(request).await?;
        let misfit = |error| RpcRejection::error(error, call.id());
        let params = readable(&call).map_err(misfit)?;
        serde_json::from_slice(params).map(Params).map_err(|error| misfit(unlike(error)))
    }
}

// What follows knows nothing of the type: it is compiled once, and not once for each.

/// The request as the router has read it, or else read now.
async fn received(request: Request) -> Result<Arc<RpcCall>, RpcRejection> {
    if let Some(call) = request.extensions().get::<Arc<RpcCall>>().cloned() {
        return Ok(call);
    }
    let (_, body) = body::read(request).await.map_err(RpcRejection::body)?;
    let call = RpcCall::read(body, Numbers::default(), |_| None).map_err(RpcRejection::unreadable)?;
    Ok(Arc::new(call))
}

/// The text of `params`, if serde_json reads in it what was hashed.
fn readable(call: &RpcCall) -> Result<&[u8], RpcError> {
    if let Some(violation) = call.violation() {
        let (reason, pointer) = (violation.reason(), violation.pointer());
        return Err(RpcError::invalid_params(format!("Invalid params: {reason} at `{pointer}`")));
    }
    if call.names_private_token() {
        return Err(RpcError::invalid_params("Invalid params: a member name is reserved by the JSON parser"));
    }
    Ok(call.params().unwrap_or(b"null"))
}

fn unlike(error: serde_json::Error) -> RpcError {
    RpcError::invalid_params(format!("Invalid params: {error}"))
}

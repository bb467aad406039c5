//! Reads a request's body whole, under axum's own limit.

use std::error::Error;

use axum::{RequestExt as _, extract::Request, response::IntoResponse, response::Response};
use bytes::Bytes;
use http::{StatusCode, request::Parts};
use http_body_util::{BodyExt as _, LengthLimitError};

/// The head and the body of a request; else the response to one whose body is too large (HTTP 413) or breaks off (HTTP 400).
///
/// The limit is what `axum::extract::DefaultBodyLimit` says, as for axum's own extractors.
pub(crate) async fn read(request: Request) -> Result<(Parts, Bytes), Response> {
    let (parts, body) = request.with_limited_body().into_parts();
    match body.collect().await {
        Ok(body) => Ok((parts, body.to_bytes())),
        Err(error) if is_length_limit(&error) => {
            Err((StatusCode::PAYLOAD_TOO_LARGE, "The request body is too large\n").into_response())
        }
        Err(_) => Err((StatusCode::BAD_REQUEST, "The request body could not be read\n").into_response()),
    }
}

fn is_length_limit(error: &(dyn Error + 'static)) -> bool {
    std::iter::successors(Some(error), |&error| error.source()).any(|error| error.is::<LengthLimitError>())
}

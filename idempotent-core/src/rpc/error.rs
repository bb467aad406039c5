//! [`RpcError`]: how a handler says that its operation failed.

use std::{borrow::Cow, fmt};

use axum::{body::Body, response::Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Serialize;

use super::json_text::{self, JsonText};

/// A JSON-RPC 2.0 error object, and the HTTP status and headers that it goes out with.
///
/// The status is 200 unless said otherwise, as every A2A server does.
///
/// ```
/// use idempotent_core::rpc::RpcError;
///
/// let error = RpcError::new(-32001, "Task not found").with_data(&serde_json::json!({"taskId": "7"}));
/// assert_eq!(error.code(), -32001);
/// ```
#[derive(Debug, Clone)]
pub struct RpcError(Box<Parts>);

/// Boxed: a handler's `Result` is moved about a lot, and is mostly `Ok`.
#[derive(Debug, Clone)]
struct Parts {
    code: i64,
    message: Cow<'static, str>,
    data: Option<JsonText>,
    status: StatusCode,
    headers: HeaderMap,
}

impl RpcError {
    /// The body is not JSON (JSON-RPC 2.0 section 5.1).
    pub const PARSE_ERROR: i64 = -32700;
    /// The body is not a request object.
    pub const INVALID_REQUEST: i64 = -32600;
    /// There is no such method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// `params` do not fit the method.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The server failed.
    pub const INTERNAL_ERROR: i64 = -32603;
    /// The A2A version is not served (A2A 1.0 `VersionNotSupportedError`).
    pub const VERSION_NOT_SUPPORTED: i64 = -32009;

    /// An error with a code and a message for the client.
    pub fn new(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        let message = message.into();
        Self(Box::new(Parts { code, message, data: None, status: StatusCode::OK, headers: HeaderMap::new() }))
    }

    /// -32602: `params` do not fit.
    pub fn invalid_params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Self::INVALID_PARAMS, message)
    }

    /// -32603 with HTTP 500: the server failed. The message goes to the client; keep the cause for the log.
    pub fn internal(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Self::INTERNAL_ERROR, message).with_status(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Adds `error.data`. A value that cannot be written as JSON (a map whose keys are not text) is left out and logged.
    pub fn with_data(mut self, data: &(impl Serialize + ?Sized)) -> Self {
        match JsonText::of(data) {
            Ok(data) => self.0.data = Some(data),
            Err(error) => tracing::error!(%error, code = self.0.code, "the data of a JSON-RPC error is not JSON"),
        }
        self
    }

    /// Sets the HTTP status.
    pub fn with_status(mut self, status: StatusCode) -> Self {
        self.0.status = status;
        self
    }

    /// Adds HTTP headers to those that the response has.
    pub fn with_headers(mut self, headers: HeaderMap) -> Self {
        self.0.headers.extend(headers);
        self
    }

    /// The numeric code.
    pub fn code(&self) -> i64 {
        self.0.code
    }

    /// The message for the client.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        self.0.status
    }

    /// The JSON-RPC response that carries this error.
    pub(crate) fn to_json(&self, id: &JsonText) -> JsonText {
        json_text::failure(id, self.0.code, &self.0.message, self.0.data.as_ref())
    }

    /// The HTTP response that carries this error.
    pub(crate) fn into_response(self, id: &JsonText) -> Response {
        let body = self.to_json(id);
        json_response(self.0.status, self.0.headers, body)
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.0.message, self.0.code)
    }
}

impl std::error::Error for RpcError {}

/// An `application/json` response; `headers` are added behind the content type, repeats kept.
pub(crate) fn json_response(status: StatusCode, headers: HeaderMap, body: JsonText) -> Response {
    let mut response = Response::new(Body::from(body.into_bytes()));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    append_all(response.headers_mut(), headers);
    response
}

/// Appends every header; one that may stand only once, `Content-Type`, is replaced.
pub(crate) fn append_all(target: &mut HeaderMap, headers: HeaderMap) {
    let mut current = None;
    for (name, value) in headers {
        current = name.or(current);
        match &current {
            Some(name) if *name == header::CONTENT_TYPE => _ = target.insert(name.clone(), value),
            Some(name) => _ = target.append(name.clone(), value),
            None => {}
        }
    }
}

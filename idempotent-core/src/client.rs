//! The client's side: a request that can be sent again.
//!
//! A retry is only a retry if it carries the same `messageId` and the same `params` as the first try (spec section 4.2). The
//! simplest way to that is to make the request once, keep its bytes, and send these.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header::CONTENT_TYPE};
use serde::Serialize;

use crate::{
    extension::{A2A_EXTENSIONS, A2A_VERSION, Dialect, URI, X_A2A_EXTENSIONS},
    json::{Numbers, Scanner},
    message_id::MessageId,
    request_hash::{MESSAGE_ID_POINTER, RequestHash, RequestHashError},
};

/// A JSON-RPC request with a `messageId` of its own, and what it takes to send it, once or many times.
///
/// ```
/// use idempotent_core::client::RetryableRequest;
/// use serde_json::json;
///
/// let request = RetryableRequest::new("message/send", |message_id| {
///     json!({"message": {
///         "kind": "message",
///         "messageId": message_id,
///         "role": "user",
///         "parts": [{"kind": "text", "text": "Book the 9:30."}],
///     }})
/// })?;
/// // POST `request.body()` with `request.headers()`, until there is an answer.
/// assert_eq!(request.headers()["x-a2a-extensions"], idempotent_core::extension::URI);
///
/// // A client that may die meanwhile stores the body before it sends it, and goes on from there.
/// let restored = RetryableRequest::from_body(request.body())?;
/// assert_eq!(restored.message_id(), request.message_id());
/// assert_eq!(restored.request_hash(), request.request_hash());
/// # Ok::<(), idempotent_core::client::RetryableRequestError>(())
/// ```
#[derive(Debug, Clone)]
pub struct RetryableRequest {
    message_id: MessageId,
    request_hash: RequestHash,
    dialect: Dialect,
    body: Bytes,
}

/// A request's JSON-RPC envelope.
#[derive(Serialize)]
struct Request<'a, P> {
    jsonrpc: &'a str,
    id: &'a str,
    method: &'a str,
    params: P,
}

impl RetryableRequest {
    /// Makes a request for `method` with a fresh id, a UUIDv7. `params` gets the id and has to put it where the method
    /// expects it, at `/message/messageId`.
    ///
    /// The JSON-RPC `id` is the message id too: a replayed answer carries the `id` of the first try.
    ///
    /// # Errors
    ///
    /// The params cannot be serialized, have no [hash](RequestHash::of), or do not carry the id.
    pub fn new<P: Serialize>(method: &str, params: impl FnOnce(&str) -> P) -> Result<Self, RetryableRequestError> {
        let message_id = MessageId::generate();
        let id = message_id.to_string();
        let request = Request { jsonrpc: "2.0", id: &id, method, params: params(&id) };
        let body = serde_json::to_vec(&request).map_err(RequestHashError::from)?;
        let request = Self::from_body(body.into())?;
        if request.message_id == message_id { Ok(request) } else { Err(RetryableRequestError::OtherMessageId) }
    }

    /// Takes up a request whose [body](Self::body) was stored.
    ///
    /// # Errors
    ///
    /// The body is no request with a `method` and a `messageId`, or has no [hash](RequestHash::of).
    pub fn from_body(body: Bytes) -> Result<Self, RetryableRequestError> {
        let (message_id, request_hash, dialect) = Scanner::with(|scanner| {
            let document = scanner.scan(&body, Numbers::Strict).map_err(RequestHashError::from)?;
            let envelope = document.envelope();
            let (Some(method), Some(params)) = (envelope.method(), envelope.params()) else {
                return Err(RetryableRequestError::NoRequest);
            };
            let key = params.pointer(MESSAGE_ID_POINTER);
            let request_hash = document.request_hash(params, key).map_err(RequestHashError::from)?;
            let message_id = key.and_then(|key| key.string()).and_then(|id| id.parse().ok());
            let message_id = message_id.ok_or(RetryableRequestError::NoMessageId)?;
            Ok((message_id, request_hash, Dialect::of_method(&method)))
        })?;
        Ok(Self { message_id, request_hash, dialect, body })
    }

    /// Its `messageId`.
    pub fn message_id(&self) -> MessageId {
        self.message_id
    }

    /// Its hash, as the server computes it and as `original_request_hash` or `submitted_request_hash` of a 422 tells it.
    pub fn request_hash(&self) -> RequestHash {
        self.request_hash
    }

    /// The body to send: the same bytes with every try.
    pub fn body(&self) -> Bytes {
        self.body.clone()
    }

    /// The header that activates the extension, under the name that the method's A2A version has for it (spec section 3.2).
    pub fn activation_header(&self) -> (HeaderName, HeaderValue) {
        let name = match self.dialect {
            Dialect::V0_3 => X_A2A_EXTENSIONS,
            Dialect::V1_0 => A2A_EXTENSIONS,
        };
        (name, HeaderValue::from_static(URI))
    }

    /// The headers to send: the content type, the activation, and for a method of A2A 1.0 its version.
    pub fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::from_iter([self.activation_header()]);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.dialect == Dialect::V1_0 {
            headers.insert(A2A_VERSION, HeaderValue::from_static("1.0"));
        }
        headers
    }
}

/// Why something is no [`RetryableRequest`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RetryableRequestError {
    /// It has no hash: a server would refuse it.
    #[error(transparent)]
    Hash(#[from] RequestHashError),
    /// The body is not an object with a `method` and `params`.
    #[error("the body is not a JSON-RPC request with params")]
    NoRequest,
    /// There is no valid `messageId` at `/message/messageId` of the params.
    #[error("the params have no UUID at {MESSAGE_ID_POINTER}")]
    NoMessageId,
    /// The params carry a `messageId`, but not the one that was made for them.
    #[error("the params do not carry the messageId that was made for them")]
    OtherMessageId,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn request(method: &str) -> RetryableRequest {
        RetryableRequest::new(method, |id| json!({"message": {"messageId": id, "role": "user"}})).unwrap()
    }

    #[test]
    fn a_request_carries_its_message_id_and_hash() {
        let request = request("message/send");
        let body: Value = serde_json::from_slice(&request.body()).unwrap();
        assert_eq!(body["params"]["message"]["messageId"], request.message_id().to_string());
        assert_eq!(request.message_id().as_uuid().get_version_num(), 7);
        assert_eq!(RequestHash::of(&body["params"]).unwrap(), request.request_hash());
        assert_eq!(RequestHash::of(&json!({"message": {"role": "user"}})).unwrap(), request.request_hash());
    }

    #[test]
    fn two_requests_with_equal_params_are_two_requests() {
        let (first, second) = (request("message/send"), request("message/send"));
        assert_ne!(first.message_id(), second.message_id());
        assert_eq!(first.request_hash(), second.request_hash());
    }

    #[test]
    fn the_method_decides_the_headers() {
        let headers = request("message/send").headers();
        assert_eq!(headers[X_A2A_EXTENSIONS], URI);
        assert!(!headers.contains_key(A2A_EXTENSIONS) && !headers.contains_key(A2A_VERSION));
        let headers = request("SendMessage").headers();
        assert_eq!((&headers[A2A_EXTENSIONS], &headers[A2A_VERSION]), (&URI.parse().unwrap(), &"1.0".parse().unwrap()));
        assert!(!headers.contains_key(X_A2A_EXTENSIONS));
    }

    #[test]
    fn params_that_lose_the_message_id_are_refused() {
        let lost = RetryableRequest::new("message/send", |_| json!({"message": {}}));
        assert!(matches!(lost, Err(RetryableRequestError::NoMessageId)));
        let other = MessageId::generate().to_string();
        let replaced = RetryableRequest::new("message/send", |_| json!({"message": {"messageId": other}}));
        assert!(matches!(replaced, Err(RetryableRequestError::OtherMessageId)));
    }

    #[test]
    fn what_a_server_would_refuse_is_not_sent() {
        let lossy = RetryableRequest::new(
            "message/send",
            |id| json!({"message": {"messageId": id, "metadata": {"order": 9_007_199_254_740_993_u64}}}),
        );
        assert!(matches!(lossy, Err(RetryableRequestError::Hash(RequestHashError::NotCanonicalizable(_)))));
        assert!(matches!(RetryableRequest::from_body("[]".into()), Err(RetryableRequestError::NoRequest)));
    }
}

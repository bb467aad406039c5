//! One JSON-RPC request, read once: what its envelope says, where its `params` lie, and what they hash to.

use std::{borrow::Cow, ops::Range, sync::Arc};

use axum::{extract::FromRequestParts, response::Response};
use bytes::Bytes;
use http::{Uri, request::Parts};

use super::{RpcError, RpcRejection, json_text::JsonText};
use crate::{
    error::MAX_ECHOED_BYTES,
    extension::{A2A_VERSION, Dialect, version_is_served},
    json::{Document, Kind, Node, Numbers, Scanner, SyntaxError, Violation, ViolationReason},
    message_id::{MalformedMessageId, MessageId},
    request_hash::RequestHash,
};

/// A request object (JSON-RPC 2.0 section 4) and the facts that the gate needs of it.
#[derive(Debug)]
pub(crate) struct RpcCall {
    body: Bytes,
    id: Option<JsonText>,
    method: String,
    dialect: Dialect,
    params: Option<Range<usize>>,
    violation: Option<Violation>,
    names_private_token: bool,
    keyed: Option<Keyed>,
}

/// What makes a request comparable with its retries; there for annotated methods.
#[derive(Debug)]
pub(crate) struct Keyed {
    /// The key as the client wrote it, unless it is absent or too long to be repeated.
    pub(crate) submitted: Option<JsonText>,
    pub(crate) message_id: Result<MessageId, MalformedMessageId>,
    /// Absent when `params` are, or when they have no canonical form.
    pub(crate) request_hash: Option<RequestHash>,
}

/// A body that is no request, with the error and the id to answer it with.
#[derive(Debug)]
pub(crate) struct Unreadable {
    error: RpcError,
    id: JsonText,
}

impl Unreadable {
    pub(crate) fn into_response(self) -> Response {
        self.error.into_response(&self.id)
    }
}

/// Where a method's key lies in its `params`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyRule {
    /// RFC 6901 pointer from `params`.
    pub(crate) pointer: &'static str,
}

impl RpcCall {
    /// Reads a body. `rule_of` says of a method whether, and by what, its requests are keyed.
    pub(crate) fn read(
        body: Bytes,
        numbers: Numbers,
        rule_of: impl FnOnce(&str) -> Option<KeyRule>,
    ) -> Result<Self, Unreadable> {
        let unreadable = |error: SyntaxError| Unreadable {
            error: RpcError::new(RpcError::PARSE_ERROR, format!("Parse error: {error}")),
            id: JsonText::NULL,
        };
        Scanner::with(|scanner| {
            let document = scanner.scan(&body, numbers).map_err(unreadable)?;
            let Some(id) = lossy_id(document) else {
                return Self::from_document(&body, document, rule_of);
            };
            // An id goes back as it was written, whatever its double is: 64-bit counters and clocks are common ids. Everything
            // else is read from a copy in which a harmless number of the same length stands in its place.
            let mut copy = body.to_vec();
            copy[id.clone()].fill(b'0');
            copy[id.start + 1] = b'.';
            let document = scanner.scan(&copy, numbers).map_err(unreadable)?;
            Self::from_document(&body, document, rule_of)
        })
    }

    fn from_document(
        body: &Bytes,
        document: Document<'_>,
        rule_of: impl FnOnce(&str) -> Option<KeyRule>,
    ) -> Result<Self, Unreadable> {
        let envelope = document.envelope();
        let text_of = |node: Node<'_>| JsonText::verbatim(body.slice(node.span()));
        let usable_id = |node: &Node<'_>| matches!(node.kind(), Kind::String | Kind::Number | Kind::Null);
        let id = envelope.id().filter(usable_id).map(text_of);
        let invalid = |message: String| Unreadable {
            error: RpcError::new(RpcError::INVALID_REQUEST, message),
            id: id.clone().unwrap_or(JsonText::NULL),
        };
        if envelope.is_batch() {
            return Err(invalid("Invalid request: batches are not supported".into()));
        }
        if let Some(violation) = document.violation().filter(|violation| !violation.is_in_params()) {
            let (reason, pointer) = (violation.reason(), violation.pointer());
            return Err(invalid(format!("Invalid request: {reason} at `{pointer}`")));
        }
        if envelope.jsonrpc().as_deref() != Some("2.0") {
            return Err(invalid("Invalid request: `jsonrpc` must be \"2.0\"".into()));
        }
        if envelope.id().is_some() && id.is_none() {
            return Err(invalid("Invalid request: `id` must be a string, a number or null".into()));
        }
        let Some(method) = envelope.method().map(Cow::into_owned) else {
            return Err(invalid("Invalid request: `method` must be a string".into()));
        };
        let violation = document.violation();
        let keyed = rule_of(&method).map(|rule| {
            let key = envelope.params().and_then(|params| params.pointer(rule.pointer));
            let message_id = key.and_then(Node::string).map_or(Err(MalformedMessageId), |text| text.parse());
            let request_hash = match (envelope.params(), &violation) {
                (Some(params), None) => document.request_hash(params, key).ok(),
                _ => None,
            };
            let submitted = key.map(text_of).filter(|text| text.as_bytes().len() <= MAX_ECHOED_BYTES);
            Keyed { submitted, message_id, request_hash }
        });
        Ok(Self {
            body: body.clone(),
            dialect: Dialect::of_method(&method),
            method,
            params: envelope.params().map(Node::span),
            violation,
            names_private_token: document.mentions_serde_json_private_names(),
            keyed,
            id,
        })
    }

    /// The request's `id` as it goes into the response: `null` when there is none.
    pub(crate) fn id(&self) -> JsonText {
        self.id.clone().unwrap_or(JsonText::NULL)
    }

    /// A request without `id` expects no response (JSON-RPC 2.0 section 4.1).
    pub(crate) fn is_notification(&self) -> bool {
        self.id.is_none()
    }

    pub(crate) fn method(&self) -> &str {
        &self.method
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The text of `params`.
    pub(crate) fn params(&self) -> Option<&[u8]> {
        self.params.clone().map(|span| &self.body[span])
    }

    pub(crate) fn body(&self) -> Bytes {
        self.body.clone()
    }

    /// What keeps `params` from being I-JSON.
    pub(crate) fn violation(&self) -> Option<&Violation> {
        self.violation.as_ref()
    }

    /// A member of `params` is named like one of serde_json's private tokens.
    pub(crate) fn names_private_token(&self) -> bool {
        self.names_private_token
    }

    pub(crate) fn keyed(&self) -> Option<&Keyed> {
        self.keyed.as_ref()
    }

    /// Refuses an A2A version that is not served (`A2A-Version`, header or query parameter).
    pub(crate) fn check_version(&self, parts: &Parts) -> Result<(), RpcError> {
        let asked = requested_version(parts);
        if asked.as_deref().is_none_or(version_is_served) {
            return Ok(());
        }
        let message = "The requested A2A version is not supported; this server speaks 0.3 and 1.0";
        Err(RpcError::new(RpcError::VERSION_NOT_SUPPORTED, message))
    }
}

/// Where the `id` lies, if what keeps the body from being I-JSON is that it is an integer without a double.
fn lossy_id(document: Document<'_>) -> Option<Range<usize>> {
    let violation = document.violation().filter(|violation| violation.reason() == ViolationReason::LossyInteger)?;
    let id = document.envelope().id()?.span();
    (violation.offset() == id.start).then_some(id)
}

fn requested_version(parts: &Parts) -> Option<Cow<'_, str>> {
    match parts.headers.get(A2A_VERSION) {
        Some(value) => Some(String::from_utf8_lossy(value.as_bytes())),
        None => version_in_query(&parts.uri).map(Cow::Owned),
    }
}

fn version_in_query(uri: &Uri) -> Option<String> {
    let axum::extract::Query(pairs) = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(uri).ok()?;
    pairs.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(A2A_VERSION.as_str())).map(|(_, version)| version)
}

/// The call that a request carries, as the router left it for extractors.
pub(crate) fn of(parts: &Parts) -> Option<Arc<RpcCall>> {
    parts.extensions.get::<Arc<RpcCall>>().cloned()
}

impl<S: Send + Sync> FromRequestParts<S> for Dialect {
    type Rejection = RpcRejection;

    /// The dialect of the method that was called.
    ///
    /// # Rejections
    ///
    /// -32603 outside a JSON-RPC method.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        parts
            .extensions
            .get::<Self>()
            .copied()
            .ok_or_else(|| RpcRejection::error(RpcError::internal("Internal error"), JsonText::NULL))
    }
}

//! The extension's own errors: one table, here.
//!
//! A [`Refusal`] is what the gate answers instead of running an operation. No refusal is ever stored. The first three codes
//! are published with the spec; the others are additions that its section 8 allows.

use axum::response::Response;
use http::{HeaderMap, HeaderValue, StatusCode, header::RETRY_AFTER};

use crate::{
    extension::{Dialect, URI},
    json::Violation,
    message_id::MessageId,
    request_hash::RequestHash,
    rpc::{
        RpcError,
        error::json_response,
        json_text::{self, JsonObject, JsonText},
    },
};

/// Why the gate does not run a request.
#[derive(Debug, Clone)]
pub(crate) enum Refusal {
    /// The key was used with another payload or for another operation (spec sections 4.3 and 4.5).
    KeyReused {
        message_id: JsonText,
        original_hash: RequestHash,
        submitted_hash: RequestHash,
        /// (original, submitted), when the operations differ.
        operations: Option<(String, String)>,
    },
    /// The key is missing or has the wrong shape (spec section 7.1).
    MessageIdMalformed { submitted: JsonText },
    /// The extension is required and the request did not activate it (spec section 3.1).
    NotActivated,
    /// `params` has no canonical form (spec section 5).
    NotCanonicalizable { message_id: JsonText, violation: Violation },
    /// The first execution still runs and the wait budget ran out.
    InProgress { message_id: JsonText },
    /// The first execution's process died and the method does not run again by itself.
    OutcomeUnknown { message_id: JsonText },
    /// The operation ran, but its response was too large to keep.
    NotRetained { message_id: JsonText, status: StatusCode, bytes: u64 },
    /// The store does not answer, or this process is shutting down.
    StoreUnavailable { message_id: JsonText },
    /// The stored row cannot be read.
    StoreCorrupt { message_id: JsonText },
}

/// Seconds after which a client that was told to wait should ask again.
const RETRY_AFTER_SECONDS: u64 = 1;

/// A `messageId` longer than this is not repeated in the error about it.
pub(crate) const MAX_ECHOED_BYTES: usize = 256;

impl Refusal {
    /// The stable string code, `error.data.code`.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::KeyReused { .. } => "IDEMPOTENCY_KEY_REUSED_WITH_DIFFERENT_PAYLOAD",
            Self::MessageIdMalformed { .. } => "IDEMPOTENCY_MESSAGE_ID_MALFORMED",
            Self::NotActivated => "IDEMPOTENCY_EXTENSION_NOT_ACTIVATED",
            Self::NotCanonicalizable { .. } => "IDEMPOTENCY_PAYLOAD_NOT_CANONICALIZABLE",
            Self::InProgress { .. } => "IDEMPOTENCY_REQUEST_IN_PROGRESS",
            Self::OutcomeUnknown { .. } => "IDEMPOTENCY_OUTCOME_UNKNOWN",
            Self::NotRetained { .. } => "IDEMPOTENCY_RESPONSE_NOT_RETAINED",
            Self::StoreUnavailable { .. } => "IDEMPOTENCY_STORE_UNAVAILABLE",
            Self::StoreCorrupt { .. } => "IDEMPOTENCY_STORE_CORRUPT",
        }
    }

    /// HTTP status, JSON-RPC code, message.
    fn row(&self, dialect: Dialect) -> (StatusCode, i64, &'static str) {
        match self {
            Self::KeyReused { .. } => {
                (StatusCode::UNPROCESSABLE_ENTITY, -32422, "Idempotency key reused with different payload")
            }
            Self::MessageIdMalformed { .. } => (
                StatusCode::BAD_REQUEST,
                RpcError::INVALID_PARAMS,
                "message.messageId must be a UUID in its hyphenated form, neither nil nor max",
            ),
            Self::NotActivated => (
                StatusCode::BAD_REQUEST,
                match dialect {
                    Dialect::V0_3 => RpcError::INVALID_REQUEST,
                    Dialect::V1_0 => -32008,
                },
                "The required idempotency extension is not activated",
            ),
            Self::NotCanonicalizable { .. } => {
                (StatusCode::BAD_REQUEST, RpcError::INVALID_PARAMS, "params is not I-JSON and has no canonical form")
            }
            Self::InProgress { .. } => {
                (StatusCode::CONFLICT, -32409, "A request with this messageId is still in progress")
            }
            Self::OutcomeUnknown { .. } => (
                StatusCode::CONFLICT,
                -32409,
                "The first request with this messageId was interrupted and its outcome is unknown",
            ),
            Self::NotRetained { .. } => (
                StatusCode::CONFLICT,
                -32409,
                "The request with this messageId was processed, but its response was too large to keep",
            ),
            Self::StoreUnavailable { .. } => {
                (StatusCode::SERVICE_UNAVAILABLE, -32503, "The idempotency store is unavailable")
            }
            Self::StoreCorrupt { .. } => (
                StatusCode::INTERNAL_SERVER_ERROR,
                RpcError::INTERNAL_ERROR,
                "The stored response for this messageId cannot be read",
            ),
        }
    }

    fn data(&self, dialect: Dialect) -> JsonText {
        let data = JsonObject::new().text("code", self.code());
        match self {
            Self::KeyReused { message_id, original_hash, submitted_hash, operations } => {
                let mut data = data
                    .member("message_id", message_id)
                    .text("original_request_hash", &original_hash.to_string())
                    .text("submitted_request_hash", &submitted_hash.to_string());
                if let Some((original, submitted)) = operations {
                    data = data.text("original_method", original).text("submitted_method", submitted);
                }
                data
            }
            Self::NotActivated if dialect == Dialect::V1_0 => {
                let metadata = JsonObject::new().text("code", self.code()).text("missing_extension", URI).finish();
                let info = JsonObject::new()
                    .text("@type", "type.googleapis.com/google.rpc.ErrorInfo")
                    .text("reason", "EXTENSION_SUPPORT_REQUIRED")
                    .text("domain", "a2a-protocol.org")
                    .member("metadata", &metadata)
                    .finish();
                return json_text::array_of(&info);
            }
            Self::NotActivated => data.text("missing_extension", URI),
            Self::NotCanonicalizable { message_id, violation } => data
                .member("message_id", message_id)
                .text("reason", violation.reason().as_str())
                .text("pointer", violation.pointer()),
            Self::InProgress { message_id } => {
                data.member("message_id", message_id).member("retry_after_seconds", &RETRY_AFTER_SECONDS.into())
            }
            Self::NotRetained { message_id, status, bytes } => data
                .member("message_id", message_id)
                .member("response_status", &u64::from(status.as_u16()).into())
                .member("response_bytes", &(*bytes).into()),
            Self::MessageIdMalformed { submitted: message_id }
            | Self::OutcomeUnknown { message_id }
            | Self::StoreUnavailable { message_id }
            | Self::StoreCorrupt { message_id } => data.member("message_id", message_id),
        }
        .finish()
    }

    /// The HTTP response that carries this refusal.
    pub(crate) fn into_response(self, id: &JsonText, dialect: Dialect) -> Response {
        let (status, code, message) = self.row(dialect);
        let mut headers = HeaderMap::new();
        if matches!(self, Self::InProgress { .. } | Self::StoreUnavailable { .. }) {
            headers.insert(RETRY_AFTER, HeaderValue::from(RETRY_AFTER_SECONDS));
        }
        json_response(status, headers, json_text::failure(id, code, message, Some(&self.data(dialect))))
    }
}

/// The key as errors show it: the text that the client sent, else its canonical form.
pub(crate) fn shown(submitted: Option<&JsonText>, message_id: MessageId) -> JsonText {
    submitted.cloned().unwrap_or_else(|| JsonText::string(&message_id.to_string()))
}

//! Why a JSON-RPC extractor turned a request down.

use axum::response::{IntoResponse, Response};

use super::{RpcError, call::Unreadable, json_text::JsonText};

/// The rejection of [`Params`](super::Params) and of the other extractors of this crate.
#[derive(Debug)]
pub struct RpcRejection(Kind);

#[derive(Debug)]
enum Kind {
    /// The body could not be read: too large (HTTP 413), or the connection broke.
    Body(Box<Response>),
    Unreadable(Unreadable),
    Error {
        error: RpcError,
        id: JsonText,
    },
}

impl RpcRejection {
    pub(crate) fn body(response: Response) -> Self {
        Self(Kind::Body(Box::new(response)))
    }

    pub(crate) fn unreadable(unreadable: Unreadable) -> Self {
        Self(Kind::Unreadable(unreadable))
    }

    pub(crate) fn error(error: RpcError, id: JsonText) -> Self {
        Self(Kind::Error { error, id })
    }
}

impl IntoResponse for RpcRejection {
    fn into_response(self) -> Response {
        match self.0 {
            Kind::Body(response) => *response,
            Kind::Unreadable(unreadable) => unreadable.into_response(),
            Kind::Error { error, id } => error.into_response(&id),
        }
    }
}

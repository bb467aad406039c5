//! An agent just large enough for one mistake.
#![allow(unused)]

pub use axum::Json;
pub use axum::Router;
pub use axum::extract::{FromRef, FromRequestParts, State};
pub use axum::http::{HeaderMap, StatusCode, request::Parts};
pub use axum::response::{IntoResponse, Response};
pub use axum::routing::post;
pub use idempotent::rpc::{JsonRpcRouter, Params, RpcError, RpcMethod, RpcStream};
pub use idempotent::{Idempotency, idempotent, rpc_methods};
pub use serde::{Deserialize, Serialize};

/// The router's state.
#[derive(Clone)]
pub struct App {
    pub agent: Agent,
    pub idempotency: Idempotency,
}

#[derive(Clone, Debug)]
pub struct Agent {
    pub tenant: String,
}

impl FromRef<App> for Agent {
    fn from_ref(app: &App) -> Self {
        app.agent.clone()
    }
}

impl FromRef<App> for Idempotency {
    fn from_ref(app: &App) -> Self {
        app.idempotency.clone()
    }
}

/// Who sent the request.
#[derive(Clone, Debug)]
pub struct AuthUser {
    pub tenant: String,
    pub name: Option<String>,
}

impl<S: Send + Sync> FromRequestParts<S> for AuthUser {
    type Rejection = StatusCode;

    async fn from_request_parts(_: &mut Parts, _: &S) -> Result<Self, StatusCode> {
        Err(StatusCode::UNAUTHORIZED)
    }
}

#[derive(Debug, Deserialize)]
pub struct SendMessage {
    pub text: String,
}

#[derive(Debug, Serialize)]
pub struct Task {
    pub id: String,
}

/// Something that cannot be extracted from a request.
#[derive(Clone, Debug)]
pub struct NoExtractor;

/// Mounts handlers on a router of this state, by their annotations.
pub fn mount(methods: impl IntoIterator<Item = RpcMethod<App>>) -> JsonRpcRouter<App> {
    JsonRpcRouter::new().methods(methods)
}

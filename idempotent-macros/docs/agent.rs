// What the examples of the attribute's documentation take for granted.

use axum::extract::{FromRef, FromRequestParts, State};
use axum::http::{StatusCode, request::Parts};
use idempotent::{Idempotency, IdempotencyContext, Params, RpcError, RpcStream, idempotent};

#[derive(Clone)]
struct App {
    agent: Agent,
    idempotency: Idempotency,
}

#[derive(Clone)]
struct Agent;

impl Agent {
    async fn answer(&self, text: String) -> Result<Task, RpcError> {
        Ok(Task { id: text })
    }
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

struct AuthUser {
    tenant: String,
    name: String,
}

impl<S: Send + Sync> FromRequestParts<S> for AuthUser {
    type Rejection = StatusCode;

    async fn from_request_parts(_: &mut Parts, _: &S) -> Result<Self, StatusCode> {
        Err(StatusCode::UNAUTHORIZED)
    }
}

#[derive(serde::Deserialize)]
struct SendMessage {
    text: String,
}

#[derive(serde::Deserialize)]
struct Order {
    id: String,
}

#[derive(serde::Serialize)]
struct Task {
    id: String,
}

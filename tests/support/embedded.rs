//! A router within the test itself, for what cannot be seen from outside.

#![allow(dead_code, unreachable_pub, reason = "each test file is a program of its own that uses a part of it")]

use std::time::Duration;

use axum::{Router, body::Body, extract::FromRef, http};
use bytes::Bytes;
use diesel::{
    RunQueryDsl as _, SqliteConnection, connection::SimpleConnection as _, dsl, sql_query, sql_types::BigInt,
};
use http_body_util::BodyExt as _;
use idempotent::{Effects, Idempotency, JsonRpcRouter, Params, RpcError, SqliteStore, idempotent, rpc_methods};
use serde_json::Value;
use tempfile::TempDir;
use tower::ServiceExt as _;

use crate::support::URI;

#[derive(Clone)]
struct Engine(Idempotency);

impl FromRef<Engine> for Idempotency {
    fn from_ref(engine: &Engine) -> Self {
        engine.0.clone()
    }
}

/// Works for 100 ms and leaves a row.
#[idempotent(method = "message/send")]
async fn work(effects: Effects<SqliteConnection>, Params(params): Params<Value>) -> Result<Value, RpcError> {
    tokio::time::sleep(Duration::from_millis(100)).await;
    effects.push(|connection| {
        sql_query("INSERT INTO runs VALUES (1)").execute(connection)?;
        Ok(())
    });
    Ok(params["message"]["messageId"].clone())
}

/// A router with one method, on a store that can be asked what it has done.
pub struct App {
    pub store: SqliteStore,
    router: Router,
    _folder: TempDir,
}

impl App {
    pub async fn open() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = SqliteStore::open(folder.path().join("app.db")).await.expect("the store opens");
        let create = |connection: &mut SqliteConnection| connection.batch_execute("CREATE TABLE runs (one INTEGER)");
        store.write(create).await.expect("the store works").expect("a table");
        let engine = Engine(Idempotency::new(store.clone()));
        let router = JsonRpcRouter::new().methods(rpc_methods![work]).with_state(engine);
        Self { store, router, _folder: folder }
    }

    /// The body of a successful answer.
    pub async fn call(&self, request: &Value) -> Bytes {
        let post = http::Request::post("/").header("content-type", "application/json").header("a2a-extensions", URI);
        let request = post.body(Body::from(request.to_string())).expect("a request");
        let response = self.router.clone().oneshot(request).await.expect("infallible");
        assert_eq!(response.status(), 200);
        response.into_body().collect().await.expect("a body").to_bytes()
    }

    /// How many executions have left their row.
    pub async fn runs(&self) -> u64 {
        let count = |connection: &mut SqliteConnection| {
            dsl::sql::<BigInt>("SELECT count(*) FROM runs").get_result::<i64>(connection)
        };
        let runs = self.store.read(count).await.expect("the store works").expect("a count");
        u64::try_from(runs).expect("a count")
    }

    /// Waits until so many executions have left their row, for up to a minute.
    pub async fn until_runs(&self, runs: u64) {
        let waited = tokio::time::timeout(Duration::from_secs(60), async {
            while self.runs().await < runs {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        waited.await.unwrap_or_else(|_| panic!("waited in vain for run {runs}"));
    }
}

//! A store on a file of its own, with a clock that is moved by hand and a table for effects to write to.

use std::{borrow::Cow, path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use diesel::{RunQueryDsl, SqliteConnection, connection::SimpleConnection, sql_query, sql_types::Text};
use http::{HeaderMap, StatusCode};
use idempotent_core::{
    Key, ManualClock, MessageId, RequestHash, Scope,
    store::{
        Claim, ClaimOutcome, ClaimRequest, CompleteOutcome, Completion, Effect, Entry, Occupant, OnTakeover, Store,
        StoredBody, StoredResponse,
    },
};
use idempotent_diesel::SqliteStore;
use tempfile::TempDir;

pub(crate) const LEASE: Duration = Duration::from_secs(30);

pub(crate) struct Fixture {
    pub(crate) store: SqliteStore,
    pub(crate) clock: ManualClock,
    pub(crate) directory: TempDir,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock = ManualClock::at_seconds(1_700_000_000);
        let store = open(&directory, &clock).await;
        create_log(&store).await;
        Self { store, clock, directory }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("agent.db")
    }

    /// Another store on the same file, as another process would have.
    pub(crate) async fn another(&self) -> SqliteStore {
        open(&self.directory, &self.clock).await
    }

    pub(crate) fn connect(&self) -> SqliteConnection {
        self.store.connect().unwrap()
    }

    /// Runs SQL on the file, behind the store's back.
    pub(crate) fn tamper(&self, sql: &str) {
        self.connect().batch_execute(sql).unwrap();
    }
}

async fn open(directory: &TempDir, clock: &ManualClock) -> SqliteStore {
    SqliteStore::builder(directory.path().join("agent.db")).clock(clock.clone()).readers(2).open().await.unwrap()
}

/// A table that effects write to.
pub(crate) async fn create_log(store: &SqliteStore) {
    let create = "CREATE TABLE log (name TEXT NOT NULL); CREATE INDEX log_name ON log (name)";
    store.write(|connection| connection.batch_execute(create)).await.unwrap().unwrap();
}

pub(crate) fn log(connection: &mut SqliteConnection, name: &str) -> diesel::QueryResult<()> {
    sql_query("INSERT INTO log (name) VALUES (?)").bind::<Text, _>(name).execute(connection).map(drop)
}

/// An effect that writes a row.
pub(crate) fn logs(name: &str) -> Effect<SqliteConnection> {
    let name = name.to_owned();
    Arc::new(move |connection| Ok(log(connection, &name)?))
}

/// An effect that runs SQL.
pub(crate) fn runs(sql: &'static str) -> Effect<SqliteConnection> {
    Arc::new(move |connection| Ok(connection.batch_execute(sql)?))
}

pub(crate) async fn logged(store: &SqliteStore, name: &str) -> i64 {
    let name = name.to_owned();
    let count = move |connection: &mut SqliteConnection| {
        diesel::dsl::sql::<diesel::sql_types::BigInt>("SELECT count(*) FROM log WHERE name = ")
            .bind::<Text, _>(name)
            .get_result::<i64>(connection)
    };
    store.read(count).await.unwrap().unwrap()
}

/// What `SELECT` of one number says.
pub(crate) async fn number(store: &SqliteStore, sql: &'static str) -> i64 {
    let read = move |connection: &mut SqliteConnection| {
        diesel::dsl::sql::<diesel::sql_types::BigInt>(sql).get_result::<i64>(connection)
    };
    store.read(read).await.unwrap().unwrap()
}

pub(crate) fn new_key() -> Key {
    Key { scope: Scope::of("tenant"), message_id: MessageId::generate() }
}

pub(crate) fn request(key: &Key) -> ClaimRequest {
    ClaimRequest {
        key: key.clone(),
        request_hash: RequestHash::from_bytes([1; 32]),
        operation: Cow::Borrowed("message/send"),
        lease: LEASE,
        on_takeover: OnTakeover::Run,
        nonce: uuid::Uuid::now_v7(),
    }
}

pub(crate) async fn win(store: &SqliteStore, key: &Key) -> Claim {
    match store.claim(request(key)).await.unwrap() {
        ClaimOutcome::Won(claim) => claim,
        other => panic!("the key should have been vacant: {other:?}"),
    }
}

pub(crate) fn completion(claim: &Claim, body: &str) -> Completion<SqliteConnection> {
    Completion {
        claim: claim.clone(),
        request_hash: RequestHash::from_bytes([1; 32]),
        operation: Cow::Borrowed("message/send"),
        response: StoredResponse {
            status: StatusCode::OK,
            headers: HeaderMap::new(),
            body: StoredBody::Whole(Bytes::copy_from_slice(body.as_bytes())),
        },
        effects: Vec::new(),
    }
}

pub(crate) fn with_effects(claim: &Claim, effects: Vec<Effect<SqliteConnection>>) -> Completion<SqliteConnection> {
    Completion { effects, ..completion(claim, "answer") }
}

pub(crate) async fn store_answer(store: &SqliteStore, key: &Key, body: &str) -> Claim {
    let claim = win(store, key).await;
    let outcome = store.complete(completion(&claim, body)).await.unwrap();
    assert!(matches!(outcome, CompleteOutcome::Stored), "{outcome:?}");
    claim
}

pub(crate) async fn entry(store: &SqliteStore, key: &Key) -> Entry {
    match store.inspect(key).await.unwrap() {
        Some(Occupant::Completed(entry)) => entry,
        other => panic!("the key should hold an entry: {other:?}"),
    }
}

pub(crate) async fn body(store: &SqliteStore, key: &Key) -> Bytes {
    match entry(store, key).await.response.body {
        StoredBody::Whole(bytes) => bytes,
        other => panic!("the body should be whole: {other:?}"),
    }
}

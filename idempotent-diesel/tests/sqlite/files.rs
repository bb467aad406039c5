//! The file: opened, opened again, shared with an application that has tables and migrations of its own.

use std::{thread, time::Duration};

use diesel::{Connection, RunQueryDsl, SqliteConnection, connection::SimpleConnection, dsl::sql, sql_types::Text};
use futures_util::FutureExt;
use idempotent_core::store::{CompleteOutcome, Occupant, Store};
use idempotent_diesel::SqliteStore;

use crate::support::{Fixture, body, completion, new_key, number, store_answer, win};

#[tokio::test]
async fn answers_and_claims_survive_a_restart() {
    let fixture = Fixture::new().await;
    let (done, running) = (new_key(), new_key());
    store_answer(&fixture.store, &done, "answer").await;
    let claim = win(&fixture.store, &running).await;
    fixture.store.close().await;

    let store = fixture.another().await;
    assert_eq!(body(&store, &done).await, "answer");
    assert!(matches!(store.inspect(&running).await.unwrap(), Some(Occupant::InFlight { .. })));
    let later = win(&store, &new_key()).await;
    assert!(later.token > claim.token);
    // Tokens that a power cut might have taken back are not given out again.
    assert!(later.token.0 - claim.token.0 > 1_000_000);
    let outcome = store.complete(completion(&claim, "after all")).await.unwrap();
    assert!(matches!(outcome, CompleteOutcome::Stored));
}

#[tokio::test]
async fn dropping_the_last_handle_finishes_the_queue() {
    let fixture = Fixture::new().await;
    let key = new_key();
    let claim = win(&fixture.store, &key).await;
    let path = fixture.path();
    {
        let clone = fixture.store.clone();
        assert!(clone.complete(completion(&claim, "answer")).now_or_never().is_none());
    }
    let Fixture { store, clock, directory } = fixture;
    drop(store);
    let store = SqliteStore::builder(&path).clock(clock).open().await.unwrap();
    for _ in 0..100 {
        if let Some(Occupant::Completed(_)) = store.inspect(&key).await.unwrap() {
            drop(directory);
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the answer was lost");
}

#[tokio::test]
async fn a_url_names_the_same_file_as_its_path() {
    let fixture = Fixture::new().await;
    let key = new_key();
    store_answer(&fixture.store, &key, "answer").await;
    let url = format!("sqlite:{}", fixture.path().display());
    let store = SqliteStore::builder(url).clock(fixture.clock.clone()).open().await.unwrap();
    assert_eq!(store.path(), fixture.path());
    assert_eq!(body(&store, &key).await, "answer");
}

#[tokio::test]
async fn what_is_no_database_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes.txt");
    std::fs::write(&path, "Not a database, but some text that is long enough to look like one at first.".repeat(100))
        .unwrap();
    let error = SqliteStore::open(&path).await.unwrap_err();
    assert_eq!(error.path(), path);
    let text = error.to_string();
    assert!(text.contains("notes.txt") && text.contains("not a database"), "{text}");
    assert!(std::fs::read_to_string(&path).unwrap().starts_with("Not a database"));
}

#[tokio::test]
async fn a_file_of_a_newer_program_is_refused() {
    let fixture = Fixture::new().await;
    fixture.tamper("INSERT INTO idempotency_schema (version) VALUES (99)");
    let error = SqliteStore::open(fixture.path()).await.unwrap_err().to_string();
    assert!(error.contains("version 99") && error.contains("agent.db"), "{error}");
}

#[test]
fn any_number_of_openers_of_a_new_file_succeed() {
    for _ in 0..5 {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("agent.db");
        let openers: Vec<_> = (0..8)
            .map(|_| {
                let path = path.clone();
                thread::spawn(move || {
                    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                    runtime.block_on(async {
                        let store = SqliteStore::open(&path).await.unwrap();
                        let key = new_key();
                        store_answer(&store, &key, "answer").await;
                        assert_eq!(body(&store, &key).await, "answer");
                    });
                })
            })
            .collect();
        for opener in openers {
            opener.join().unwrap();
        }
        // The stores' threads may still be closing the file.
        let mut connection = SqliteConnection::establish(path.to_str().unwrap()).unwrap();
        idempotent_diesel::sqlite::configure(&mut connection, Duration::from_secs(5)).unwrap();
        let count = sql::<diesel::sql_types::BigInt>("SELECT count(*) FROM idempotency_cache");
        assert_eq!(count.get_result::<i64>(&mut connection).unwrap(), 8);
    }
}

#[tokio::test]
async fn the_applications_tables_and_migrations_are_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent.db");
    // What diesel_migrations leaves in a file.
    let application = "CREATE TABLE __diesel_schema_migrations (version VARCHAR(50) PRIMARY KEY NOT NULL, \
         run_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP);
         INSERT INTO __diesel_schema_migrations (version) VALUES ('20250101000000');
         CREATE TABLE task (id TEXT PRIMARY KEY);
         INSERT INTO task VALUES ('one');";
    let mut connection = SqliteConnection::establish(path.to_str().unwrap()).unwrap();
    connection.batch_execute(application).unwrap();

    let store = SqliteStore::open(&path).await.unwrap();
    store_answer(&store, &new_key(), "answer").await;
    assert_eq!(number(&store, "SELECT count(*) FROM __diesel_schema_migrations").await, 1);
    assert_eq!(number(&store, "SELECT count(*) FROM task").await, 1);
    let ours = "SELECT group_concat(name) FROM (SELECT name FROM sqlite_schema WHERE type = 'table' AND \
                name NOT LIKE 'idempotency_%' AND name NOT LIKE 'sqlite_%' ORDER BY name)";
    let others = store.read(|connection| sql::<Text>(ours).get_result::<String>(connection)).await.unwrap().unwrap();
    assert_eq!(others, "__diesel_schema_migrations,task");
    // And the other way round: the application's next migration runs on a file that the store is using.
    let next = "BEGIN EXCLUSIVE; CREATE TABLE event (id TEXT); INSERT INTO __diesel_schema_migrations (version) \
                VALUES ('20250102000000'); COMMIT";
    idempotent_diesel::sqlite::configure(&mut connection, Duration::from_secs(5)).unwrap();
    connection.batch_execute(next).unwrap();
    store_answer(&store, &new_key(), "answer").await;
}

#[tokio::test]
async fn the_table_has_the_columns_of_the_spec() {
    let fixture = Fixture::new().await;
    let key = new_key();
    store_answer(&fixture.store, &key, "answer").await;
    let id = key.message_id.to_string();
    let found = number(
        &fixture.store,
        "SELECT count(*) FROM idempotency_cache WHERE typeof(message_id) = 'text' AND \
         request_hash = '0101010101010101010101010101010101010101010101010101010101010101' AND response_status = 200 AND \
         typeof(response_headers) = 'blob' AND response_headers = CAST('{}' AS BLOB) AND \
         typeof(response_body) = 'blob' AND response_body = CAST('answer' AS BLOB) AND inserted_at = 1700000000",
    );
    assert_eq!(found.await, 1);
    let stored = fixture
        .store
        .read(|connection| sql::<Text>("SELECT message_id FROM idempotency_cache").get_result::<String>(connection));
    assert_eq!(stored.await.unwrap().unwrap(), id);
    let index = "SELECT count(*) FROM pragma_index_info('idx_idempotency_inserted_at') WHERE name = 'inserted_at'";
    assert_eq!(number(&fixture.store, index).await, 1);
}

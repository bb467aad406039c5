//! Which batches wait for the disk.

use std::sync::Arc;

use bytes::Bytes;
use diesel::{RunQueryDsl, dsl::sql, sql_types::BigInt};
use idempotent_core::store::{ClaimRequest, Effect, OnTakeover, Store};

use crate::support::{Fixture, LEASE, completion, new_key, request, win, with_effects};

/// How many of the commits since `before` waited for the disk.
macro_rules! durable {
    ($fixture:expr, $call:expr) => {{
        let before = $fixture.store.stats();
        let _ = $call;
        let after = $fixture.store.stats();
        assert!(after.commits > before.commits);
        after.durable_commits - before.durable_commits
    }};
}

#[tokio::test]
async fn only_answers_effects_and_claims_that_must_not_be_forgotten_wait_for_the_disk() {
    let fixture = Fixture::new().await;
    let store = &fixture.store;
    let (run, refuse, released) = (new_key(), new_key(), new_key());

    let mut claims = Vec::new();
    assert_eq!(durable!(fixture, claims.push(win(store, &run).await)), 0);
    assert_eq!(durable!(fixture, claims.push(win(store, &released).await)), 0);
    let refusing = ClaimRequest { on_takeover: OnTakeover::Refuse, ..request(&refuse) };
    assert_eq!(durable!(fixture, store.claim(refusing).await.unwrap()), 1);
    assert_eq!(durable!(fixture, store.renew(&claims[0], LEASE).await.unwrap()), 0);
    assert_eq!(durable!(fixture, store.append_chunk(&claims[0], 0, Bytes::from_static(b"chunk")).await.unwrap()), 0);
    assert_eq!(durable!(fixture, store.release(&claims[1]).await.unwrap()), 0);
    assert_eq!(durable!(fixture, store.complete(completion(&claims[0], "answer")).await.unwrap()), 1);
    assert_eq!(durable!(fixture, store.commit(vec![crate::support::logs("task")]).await.unwrap().unwrap()), 1);
    let write = |connection: &mut diesel::SqliteConnection| crate::support::log(connection, "task");
    assert_eq!(durable!(fixture, store.write(write).await.unwrap().unwrap()), 1);
    assert_eq!(durable!(fixture, store.sweep().await.unwrap()), 0);
}

#[tokio::test]
async fn a_completion_runs_with_synchronous_full_in_a_write_ahead_log() {
    let fixture = Fixture::new().await;
    let full: Effect<_> = Arc::new(|connection| {
        let synchronous: i64 = sql::<BigInt>("PRAGMA synchronous").get_result(connection)?;
        let mode: String = sql::<diesel::sql_types::Text>("PRAGMA journal_mode").get_result(connection)?;
        match (synchronous, mode.as_str()) {
            (2, "wal") => Ok(()),
            other => Err(format!("{other:?}").into()),
        }
    });
    for _ in 0..3 {
        // A claim before each, so that the mode has been the other one.
        let claim = win(&fixture.store, &new_key()).await;
        let outcome = fixture.store.complete(with_effects(&claim, vec![full.clone()])).await.unwrap();
        assert!(matches!(outcome, idempotent_core::store::CompleteOutcome::Stored), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_request_costs_one_durable_commit() {
    let fixture = Fixture::new().await;
    let before = fixture.store.stats();
    for _ in 0..10 {
        crate::support::store_answer(&fixture.store, &new_key(), "answer").await;
    }
    let after = fixture.store.stats();
    assert_eq!(after.durable_commits - before.durable_commits, 10);
    assert_eq!(after.commits - before.commits, 20);
}

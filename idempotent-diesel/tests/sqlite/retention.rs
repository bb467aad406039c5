//! Expiry and eviction, by the store itself and in small steps.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use idempotent_core::{
    Clock,
    store::{Retention, Store},
};

use crate::support::{Fixture, LEASE, body, new_key, number, store_answer, win};

const COUNT: &str = "SELECT count(*) FROM idempotency_cache";

async fn eventually(fixture: &Fixture, sql: &'static str, expected: i64) -> Duration {
    let started = Instant::now();
    while number(&fixture.store, sql).await != expected {
        assert!(started.elapsed() < Duration::from_secs(20), "{sql} is still {}", number(&fixture.store, sql).await);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    started.elapsed()
}

#[tokio::test]
async fn what_is_over_the_bound_goes_within_five_seconds_without_being_asked() {
    let fixture = Fixture::new().await;
    fixture.store.set_retention(Retention { max_entries: 100, ..Retention::default() });
    let claim = win(&fixture.store, &new_key()).await;
    join_all((0..700).map(|_| async { store_answer(&fixture.store, &new_key(), "answer").await })).await;
    let took = eventually(&fixture, COUNT, 100).await;
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert!(fixture.store.renew(&claim, LEASE).await.unwrap());
}

#[tokio::test]
async fn what_has_expired_goes_without_being_asked() {
    let fixture = Fixture::new().await;
    fixture.store.set_retention(Retention { ttl_seconds: 10, ..Retention::default() });
    join_all((0..300).map(|_| async { store_answer(&fixture.store, &new_key(), "answer").await })).await;
    fixture.clock.advance(Duration::from_secs(11));
    let young = new_key();
    store_answer(&fixture.store, &young, "young").await;
    eventually(&fixture, COUNT, 1).await;
    assert_eq!(body(&fixture.store, &young).await, "young");
    assert_eq!(number(&fixture.store, "SELECT entries FROM idempotency_ledger").await, 1);
}

#[tokio::test]
async fn replays_count_across_a_restart() {
    let fixture = Fixture::new().await;
    let keys: Vec<_> = (0..4).map(|_| new_key()).collect();
    for key in &keys {
        store_answer(&fixture.store, key, "answer").await;
    }
    fixture.store.touch(&keys[0]);
    fixture.store.close().await;
    let store = fixture.another().await;
    store.set_retention(Retention { max_entries: 2, ..Retention::default() });
    store.touch(&keys[1]);
    let swept = store.sweep().await.unwrap();
    assert_eq!((swept.expired, swept.evicted), (0, 2));
    for (number, key) in keys.iter().enumerate() {
        assert_eq!(store.inspect(key).await.unwrap().is_some(), number < 2, "entry {number}");
    }
}

#[tokio::test]
async fn replays_are_written_within_a_second_or_so_and_once() {
    let fixture = Fixture::new().await;
    let key = new_key();
    store_answer(&fixture.store, &key, "answer").await;
    store_answer(&fixture.store, &new_key(), "younger").await;
    let before = fixture.store.stats();
    for _ in 0..1_000 {
        fixture.store.touch(&key);
    }
    let youngest = "SELECT claim_token = (SELECT min(claim_token) FROM idempotency_cache) FROM idempotency_cache \
                    ORDER BY last_used DESC LIMIT 1";
    let took = eventually(&fixture, youngest, 1).await;
    assert!(took < Duration::from_secs(3), "{took:?}");
    assert!(fixture.store.stats().operations - before.operations <= 2);
}

#[tokio::test]
async fn thousands_of_replays_are_written_in_steps_and_before_anything_is_evicted() {
    let fixture = Fixture::new().await;
    let keys: Vec<_> = (0..1_500).map(|_| new_key()).collect();
    join_all(keys.iter().map(|key| store_answer(&fixture.store, key, "answer"))).await;
    let (replayed, others) = keys.split_at(1_000);
    replayed.iter().for_each(|key| fixture.store.touch(key));
    fixture.store.set_retention(Retention { max_entries: 1_000, ..Retention::default() });
    fixture.store.sweep().await.unwrap();
    for (keys, there) in [(replayed, true), (others, false)] {
        for key in keys {
            assert_eq!(fixture.store.inspect(key).await.unwrap().is_some(), there);
        }
    }
}

#[tokio::test]
async fn rows_that_others_removed_are_counted_out() {
    let fixture = Fixture::new().await;
    for _ in 0..20 {
        store_answer(&fixture.store, &new_key(), "answer").await;
    }
    fixture.tamper("DELETE FROM idempotency_cache WHERE rowid % 2 = 0");
    assert_eq!(number(&fixture.store, "SELECT entries FROM idempotency_ledger").await, 20);
    let _store = fixture.another().await;
    eventually(&fixture, "SELECT entries FROM idempotency_ledger", 10).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_thousand_expired_rows_go_while_requests_go_on() {
    let fixture = Fixture::new().await;
    let now = fixture.clock.now_seconds();
    fixture.tamper(&format!(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
         INSERT INTO idempotency_cache SELECT 'tenant', lower(hex(randomblob(16))), '{}', 'message/send', 200,
         CAST('{{}}' AS BLOB), {now}, i, i, 1, 0, 0, randomblob(300) FROM n;
         UPDATE idempotency_ledger SET entries = 100000;",
        "0".repeat(64),
    ));
    fixture.store.set_retention(Retention { ttl_seconds: 10, ..Retention::default() });
    fixture.clock.advance(Duration::from_secs(11));
    let mut slowest = Duration::ZERO;
    let requests = 100;
    for _ in 0..requests {
        let request = Instant::now();
        store_answer(&fixture.store, &new_key(), "answer").await;
        slowest = slowest.max(request.elapsed());
        tokio::time::sleep(Duration::from_millis(15)).await;
    }
    let left = number(&fixture.store, COUNT).await - requests;
    assert!(left < 100_000, "the sweep waits for the requests to end");
    // The rest of it, now that nobody is in its way.
    fixture.store.sweep().await.unwrap();
    assert_eq!(number(&fixture.store, COUNT).await, requests);
    // A step is a millisecond or so; this leaves room for a slow disk that others use too.
    assert!(slowest < Duration::from_secs(1), "a request took {slowest:?}");
    assert_eq!(number(&fixture.store, "SELECT entries FROM idempotency_ledger").await, requests);
}

#[tokio::test]
async fn claims_whose_owner_died_long_ago_are_swept() {
    let fixture = Fixture::new().await;
    fixture.store.set_retention(Retention { ttl_seconds: 10, ..Retention::default() });
    let claim = win(&fixture.store, &new_key()).await;
    fixture.store.append_chunk(&claim, 0, bytes::Bytes::from_static(b"chunk")).await.unwrap();
    fixture.clock.advance(LEASE + Duration::from_secs(5));
    fixture.store.sweep().await.unwrap();
    assert_eq!(number(&fixture.store, "SELECT count(*) FROM idempotency_claim").await, 1);
    fixture.clock.advance(Duration::from_secs(7));
    fixture.store.sweep().await.unwrap();
    for table in [
        "SELECT count(*) FROM idempotency_claim",
        "SELECT count(*) FROM idempotency_chunk",
        "SELECT count(*) FROM idempotency_garbage",
    ] {
        assert_eq!(number(&fixture.store, table).await, 0, "{table}");
    }
}

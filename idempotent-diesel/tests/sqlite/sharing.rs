//! Two stores on one file, as in two processes.

use std::time::Duration;

use diesel::connection::SimpleConnection;
use futures_util::future::join_all;
use idempotent_core::store::{ClaimOutcome, CompleteOutcome, Occupant, Store, StoreError};
use idempotent_diesel::SqliteStore;

use crate::support::{
    Fixture, LEASE, body, completion, logged, logs, new_key, request, store_answer, win, with_effects,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_stores_one_wins_each_key() {
    let fixture = Fixture::new().await;
    let other = fixture.another().await;
    let keys: Vec<_> = (0..200).map(|_| new_key()).collect();
    let race = |store: SqliteStore| {
        let keys = keys.clone();
        tokio::spawn(async move {
            let outcomes = join_all(keys.iter().map(|key| store.claim(request(key)))).await;
            let won: Vec<_> = outcomes
                .into_iter()
                .filter_map(|outcome| match outcome.unwrap() {
                    ClaimOutcome::Won(claim) => Some(claim),
                    ClaimOutcome::Occupied(_) => None,
                })
                .collect();
            for claim in &won {
                store.complete(with_effects(claim, vec![logs("ran")])).await.unwrap();
            }
            won
        })
    };
    let (first, second) = (race(fixture.store.clone()), race(other.clone()));
    let (first, second) = (first.await.unwrap(), second.await.unwrap());
    assert_eq!(first.len() + second.len(), keys.len());
    let mut tokens: Vec<_> = first.iter().chain(&second).map(|claim| claim.token).collect();
    tokens.sort();
    tokens.dedup();
    assert_eq!(tokens.len(), keys.len(), "a token names one claim");
    assert_eq!(logged(&fixture.store, "ran").await, 200);
    for key in &keys {
        assert_eq!(body(&other, key).await, "answer");
    }
}

#[tokio::test]
async fn a_store_sees_what_another_one_stored_claimed_and_took_over() {
    let fixture = Fixture::new().await;
    let other = fixture.another().await;
    let key = new_key();
    let stale = win(&fixture.store, &key).await;
    assert!(matches!(other.inspect(&key).await.unwrap(), Some(Occupant::InFlight { .. })));
    fixture.clock.advance(LEASE);
    let current = win(&other, &key).await;
    assert_eq!(current.attempt, 2);
    assert!(!fixture.store.renew(&stale, LEASE).await.unwrap());
    let late = fixture.store.complete(with_effects(&stale, vec![logs("stale")])).await.unwrap();
    assert!(matches!(late, CompleteOutcome::Superseded));
    other.complete(completion(&current, "current")).await.unwrap();
    assert_eq!(body(&fixture.store, &key).await, "current");
    assert_eq!(logged(&fixture.store, "stale").await, 0);
}

#[tokio::test]
async fn a_waiter_learns_soon_that_another_store_has_finished() {
    let fixture = Fixture::new().await;
    let other = fixture.another().await;
    let key = new_key();
    let claim = win(&fixture.store, &key).await;
    let started = std::time::Instant::now();
    let wait = other.changed(&key, Duration::from_secs(30));
    let work = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        fixture.store.complete(completion(&claim, "answer")).await.unwrap();
    };
    tokio::join!(wait, work);
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    assert!(started.elapsed() >= Duration::from_millis(300));
    assert_eq!(body(&other, &key).await, "answer");
    // Nothing runs there any more: nothing to wait for.
    tokio::time::timeout(Duration::from_secs(3), other.changed(&key, Duration::from_secs(30))).await.unwrap();
}

#[tokio::test]
async fn two_stores_share_one_bound() {
    let fixture = Fixture::new().await;
    let other = fixture.another().await;
    let retention = idempotent_core::store::Retention { max_entries: 50, ..Default::default() };
    for store in [&fixture.store, &other] {
        store.set_retention(retention);
        for _ in 0..40 {
            store_answer(store, &new_key(), "answer").await;
        }
    }
    fixture.store.sweep().await.unwrap();
    assert_eq!(crate::support::number(&other, "SELECT count(*) FROM idempotency_cache").await, 50);
    assert_eq!(crate::support::number(&other, "SELECT entries FROM idempotency_ledger").await, 50);
}

#[tokio::test]
async fn a_lock_that_another_process_keeps_is_unavailable_and_passes() {
    let fixture = Fixture::new().await;
    let impatient = SqliteStore::builder(fixture.path())
        .clock(fixture.clock.clone())
        .busy_timeout(Duration::from_millis(50))
        .open()
        .await
        .unwrap();
    let key = new_key();
    let claim = win(&impatient, &key).await;
    let mut other = fixture.connect();
    other.batch_execute("BEGIN IMMEDIATE").unwrap();
    for _ in 0..2 {
        match impatient.complete(with_effects(&claim, vec![logs("once")])).await {
            Err(StoreError::Unavailable(error)) => assert!(error.to_string().contains("locked"), "{error}"),
            result => panic!("the file is locked: {result:?}"),
        }
    }
    other.batch_execute("ROLLBACK").unwrap();
    impatient.complete(with_effects(&claim, vec![logs("once")])).await.unwrap();
    assert_eq!(body(&fixture.store, &key).await, "answer");
    assert_eq!(logged(&fixture.store, "once").await, 1);
}

//! A store that fails is never mistaken for a miss.

use std::time::Duration;

use idempotent_core::store::{Store, StoreError};

use crate::support::{
    Fixture, LEASE, body, completion, logged, logs, new_key, request, runs, store_answer, win, with_effects,
};

fn assert_unavailable<T: std::fmt::Debug>(result: Result<T, StoreError>, reason: &str) {
    match result {
        Err(StoreError::Unavailable(error)) => assert!(error.to_string().contains(reason), "{error}"),
        other => panic!("the store is unavailable ({reason}): {other:?}"),
    }
}

#[tokio::test]
async fn a_closed_store_is_unavailable_in_every_method() {
    let fixture = Fixture::new().await;
    let (store, key) = (&fixture.store, new_key());
    let claim = win(store, &key).await;
    let clone = store.clone();
    clone.close().await;
    clone.close().await;
    assert_unavailable(store.inspect(&key).await, "closed");
    assert_unavailable(store.claim(request(&key)).await, "closed");
    assert_unavailable(store.renew(&claim, LEASE).await, "closed");
    assert_unavailable(store.complete(completion(&claim, "answer")).await, "closed");
    assert_unavailable(store.release(&claim).await, "closed");
    assert_unavailable(store.append_chunk(&claim, 0, bytes::Bytes::new()).await, "closed");
    assert_unavailable(store.read_chunk(claim.token, 0).await, "closed");
    assert_unavailable(store.commit(vec![logs("task")]).await, "closed");
    assert_unavailable(store.sweep().await, "closed");
    assert_unavailable(store.read(|_| Ok::<(), ()>(())).await, "closed");
    assert_unavailable(store.write(|_| Ok::<(), ()>(())).await, "closed");
    store.touch(&key);
    tokio::time::timeout(Duration::from_secs(5), store.changed(&key, Duration::from_millis(10))).await.unwrap();
}

#[tokio::test]
async fn closing_finishes_what_is_queued() {
    let fixture = Fixture::new().await;
    let claims = futures_util::future::join_all((0..50).map(|_| async { win(&fixture.store, &new_key()).await })).await;
    let completions = claims.iter().map(|claim| fixture.store.complete(with_effects(claim, vec![logs("task")])));
    let (outcomes, ()) = tokio::join!(futures_util::future::join_all(completions), fixture.store.close());
    for outcome in outcomes {
        outcome.unwrap();
    }
    assert_eq!(logged(&fixture.another().await, "task").await, 50);
}

#[tokio::test]
async fn a_table_that_refuses_is_unavailable_until_it_does_not() {
    let fixture = Fixture::new().await;
    let keys: Vec<_> = (0..10).map(|_| new_key()).collect();
    let mut claims = Vec::new();
    for key in &keys {
        claims.push(win(&fixture.store, key).await);
    }
    fixture.tamper(
        "CREATE TRIGGER full BEFORE INSERT ON idempotency_cache BEGIN SELECT RAISE(ABORT, 'no space on this table'); END",
    );
    let complete = |claim| fixture.store.complete(with_effects(claim, vec![logs("task")]));
    for outcome in futures_util::future::join_all(claims.iter().map(complete)).await {
        assert_unavailable(outcome, "no space on this table");
    }
    assert_eq!(logged(&fixture.store, "task").await, 0);
    // Others are not concerned.
    win(&fixture.store, &new_key()).await;
    fixture.tamper("DROP TRIGGER full");
    for outcome in futures_util::future::join_all(claims.iter().map(complete)).await {
        outcome.unwrap();
    }
    assert_eq!(logged(&fixture.store, "task").await, 10);
}

#[tokio::test]
async fn one_key_that_the_table_refuses_spoils_nobody_elses_commit() {
    let fixture = Fixture::new().await;
    let claims = futures_util::future::join_all((0..60).map(|_| async { win(&fixture.store, &new_key()).await })).await;
    let refused = claims[7].key.message_id;
    fixture.tamper(&format!(
        "CREATE TRIGGER picky BEFORE INSERT ON idempotency_cache WHEN NEW.message_id = '{refused}' \
         BEGIN SELECT RAISE(ROLLBACK, 'not this one'); END",
    ));
    let complete = |claim| fixture.store.complete(completion(claim, "answer"));
    for (number, outcome) in futures_util::future::join_all(claims.iter().map(complete)).await.into_iter().enumerate() {
        if number == 7 {
            assert_unavailable(outcome, "not this one");
        } else {
            outcome.unwrap();
            assert_eq!(body(&fixture.store, &claims[number].key).await, "answer");
        }
    }
}

#[tokio::test]
async fn a_missing_table_is_unavailable_and_no_miss() {
    let fixture = Fixture::new().await;
    let key = new_key();
    store_answer(&fixture.store, &key, "answer").await;
    fixture.tamper("ALTER TABLE idempotency_cache RENAME TO elsewhere");
    assert_unavailable(fixture.store.inspect(&key).await, "idempotency_cache");
    assert_unavailable(fixture.store.claim(request(&key)).await, "idempotency_cache");
    fixture.tamper("ALTER TABLE elsewhere RENAME TO idempotency_cache");
    assert_eq!(body(&fixture.store, &key).await, "answer");
}

#[tokio::test]
async fn a_writer_that_may_not_write_is_unavailable_and_recovers() {
    let fixture = Fixture::new().await;
    let (key, other) = (new_key(), new_key());
    let claim = win(&fixture.store, &key).await;
    // An effect turns the writer's own connection read-only: the commit cannot be made, and the next one has a new connection.
    let outcome = fixture.store.complete(with_effects(&claim, vec![runs("PRAGMA query_only = ON")])).await;
    assert_unavailable(outcome, "readonly");
    let mut recovered = false;
    for _ in 0..2 {
        recovered = fixture.store.claim(request(&other)).await.is_ok();
    }
    assert!(recovered);
    fixture.store.complete(completion(&claim, "answer")).await.unwrap();
    assert_eq!(body(&fixture.store, &key).await, "answer");
}

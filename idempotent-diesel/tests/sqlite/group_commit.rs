//! Many requests share a commit.

use std::time::Duration;

use diesel::connection::SimpleConnection;
use futures_util::{FutureExt, future::join_all};
use idempotent_core::store::{CompleteOutcome, Store};

use crate::support::{Fixture, completion, logged, logs, new_key, request, win, with_effects};

/// Everything that queues while another connection holds the lock goes into at most two transactions: the one that waited,
/// and all the rest.
async fn while_the_writer_waits<T>(fixture: &Fixture, work: impl Future<Output = T>) -> T {
    let mut other = fixture.connect();
    other.batch_execute("BEGIN IMMEDIATE").unwrap();
    let release = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        other.batch_execute("COMMIT").unwrap();
    };
    tokio::join!(work, release).0
}

#[tokio::test]
async fn what_queues_during_a_commit_shares_the_next_one() {
    let fixture = Fixture::new().await;
    let claims =
        while_the_writer_waits(&fixture, join_all((0..100).map(|_| async { win(&fixture.store, &new_key()).await })))
            .await;
    let before = fixture.store.stats();
    let complete = |claim| fixture.store.complete(with_effects(claim, vec![logs("task"), logs("task")]));
    let outcomes = while_the_writer_waits(&fixture, join_all(claims.iter().map(complete))).await;
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Ok(CompleteOutcome::Stored))), "{outcomes:?}");

    let after = fixture.store.stats();
    assert_eq!(after.operations - before.operations, 100);
    assert!(after.durable_commits - before.durable_commits <= 2, "{before:?} {after:?}");
    assert_eq!(after.redone, 0);
    assert_eq!(logged(&fixture.store, "task").await, 200);
}

#[tokio::test]
async fn a_batch_is_bounded_in_number_and_in_bytes() {
    let fixture = Fixture::new().await;
    let (small, large) = (600, 30);
    let claims = join_all((0..small + large).map(|_| async { win(&fixture.store, &new_key()).await })).await;
    let before = fixture.store.stats();
    let bodies = ["x".to_owned(), "x".repeat(1 << 20)];
    let complete = |(number, claim)| fixture.store.complete(completion(claim, &bodies[usize::from(number >= small)]));
    let outcomes = while_the_writer_waits(&fixture, join_all(claims.iter().enumerate().map(complete))).await;
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Ok(CompleteOutcome::Stored))));
    // 600 small ones at 256 a transaction, 30 MiB at 8 MiB a transaction.
    let commits = fixture.store.stats().commits - before.commits;
    assert!((6..=12).contains(&commits), "{commits} commits");
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_is_not_begun() {
    let fixture = Fixture::new().await;
    let (first, key) = (new_key(), new_key());
    while_the_writer_waits(&fixture, async {
        // The first one is taken up at once; those behind it are dropped before their turn.
        let mut first = fixture.store.claim(request(&first));
        assert!((&mut first).now_or_never().is_none());
        tokio::time::sleep(Duration::from_millis(50)).await;
        for _ in 0..10 {
            assert!(fixture.store.claim(request(&key)).now_or_never().is_none());
        }
        first.await.unwrap();
    })
    .await;
    assert!(fixture.store.inspect(&key).await.unwrap().is_none());
}

#[tokio::test]
async fn reads_do_not_wait_for_the_writer() {
    let fixture = Fixture::new().await;
    let key = new_key();
    crate::support::store_answer(&fixture.store, &key, "answer").await;
    let mut other = fixture.connect();
    other.batch_execute("BEGIN IMMEDIATE").unwrap();
    let waiting = tokio::spawn({
        let store = fixture.store.clone();
        async move { win(&store, &new_key()).await }
    });
    for _ in 0..20 {
        let read = tokio::time::timeout(Duration::from_secs(2), crate::support::body(&fixture.store, &key)).await;
        assert_eq!(read.expect("no lock is in the way"), "answer");
    }
    assert!(!waiting.is_finished());
    other.batch_execute("COMMIT").unwrap();
    waiting.await.unwrap();
}

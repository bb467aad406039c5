//! Who may run an operation.

use std::{borrow::Cow, time::Duration};

use futures_util::{FutureExt, future::join_all};

use super::*;

/// Of any number of concurrent calls for one key, one wins.
pub async fn a_vacant_key_is_won_by_exactly_one_of_many<H: Harness>(harness: H) {
    let (store, key) = (harness.store(), new_key());
    let outcomes = join_all((0..50).map(|_| store.claim(request(&key)))).await;
    let mut wins = 0;
    for outcome in outcomes {
        match outcome.expect("the store answers") {
            ClaimOutcome::Won(claim) => {
                wins += 1;
                assert_eq!((claim.key, claim.attempt), (key.clone(), 1));
            }
            ClaimOutcome::Occupied(Occupant::InFlight { .. }) => {}
            ClaimOutcome::Occupied(other) => panic!("the key is in flight: {other:?}"),
        }
    }
    assert_eq!(wins, 1);
}

/// Whoever meets a claim learns what it was made with, whatever hash and operation they bring; nothing is changed.
pub async fn an_occupied_key_shows_hash_operation_and_lease<H: Harness>(harness: H) {
    let (store, key) = (harness.store(), new_key());
    assert_vacant(store, &key).await;
    let claim = won(store.claim(request(&key)).await.expect("the store answers"));
    harness.advance(Duration::from_secs(10)).await;

    let other = ClaimRequest { request_hash: hash(2), operation: Cow::Borrowed("message/stream"), ..request(&key) };
    let claimed = match store.claim(other).await.expect("the store answers") {
        ClaimOutcome::Occupied(occupant) => Some(occupant),
        ClaimOutcome::Won(claim) => panic!("the key is claimed, yet was won again: {claim:?}"),
    };
    for found in [claimed, occupant(store, &key).await] {
        match found {
            Some(Occupant::InFlight { request_hash, operation, lease_left }) => {
                assert_eq!((request_hash, operation.as_str()), (hash(1), OPERATION));
                assert_eq!(lease_left, LEASE - Duration::from_secs(10));
            }
            other => panic!("the key should be in flight: {other:?}"),
        }
    }

    stored(store, completion(&claim, "answer")).await;
    match store.claim(ClaimRequest { request_hash: hash(2), ..request(&key) }).await.expect("the store answers") {
        ClaimOutcome::Occupied(Occupant::Completed(entry)) => {
            assert_eq!((entry.request_hash, entry.operation.as_str()), (hash(1), OPERATION));
        }
        other => panic!("the key should be completed: {other:?}"),
    }
}

/// A caller that did not see the first call's answer gets its claim by asking again.
pub async fn the_same_nonce_answers_with_the_same_claim<H: Harness>(harness: H) {
    let (store, key) = (harness.store(), new_key());
    let first = request(&key);
    let claim = won(store.claim(first.clone()).await.expect("the store answers"));
    let again = won(store.claim(first.clone()).await.expect("the store answers"));
    assert_eq!(claim, again);

    // Not its own any more once somebody else has taken over.
    harness.advance(LEASE + Duration::from_millis(1)).await;
    let successor = win(store, &key).await;
    match store.claim(first).await.expect("the store answers") {
        ClaimOutcome::Occupied(Occupant::InFlight { .. }) => {}
        other => panic!("the successor {successor:?} holds the key: {other:?}"),
    }
}

/// A claim whose lease has ended is a miss: the next request runs, as a counted attempt with a larger token.
pub async fn a_lapsed_claim_is_taken_over_with_a_larger_token<H: Harness>(harness: H) {
    let (store, key) = (harness.store(), new_key());
    let first = win(store, &key).await;
    harness.advance(LEASE - Duration::from_millis(1)).await;
    assert_in_flight(store, &key).await;
    harness.advance(Duration::from_millis(1)).await;
    assert_vacant(store, &key).await;

    let second = win(store, &key).await;
    assert!(second.token > first.token);
    assert_eq!(second.attempt, 2);
    harness.advance(LEASE).await;
    let third = win(store, &key).await;
    assert!(third.token > second.token);
    assert_eq!(third.attempt, 3);
}

/// A takeover, too, has one winner.
pub async fn a_lapsed_claim_is_taken_over_by_exactly_one_of_many<H: Harness>(harness: H) {
    let (store, key) = (harness.store(), new_key());
    win(store, &key).await;
    harness.advance(LEASE).await;
    let outcomes = join_all((0..50).map(|_| store.claim(request(&key)))).await;
    let wins = outcomes.iter().filter(|outcome| matches!(outcome, Ok(ClaimOutcome::Won(_)))).count();
    assert_eq!(wins, 1);
    assert!(outcomes.iter().all(Result::is_ok));
}

/// A claim lasts as long as its owner renews it.
pub async fn a_renewed_claim_lasts<H: Harness>(harness: H) {
    let (store, key) = (harness.store(), new_key());
    let claim = win(store, &key).await;
    for _ in 0..5 {
        harness.advance(LEASE / 2).await;
        assert!(store.renew(&claim, LEASE).await.expect("the store answers"));
        assert_in_flight(store, &key).await;
    }
    // A renewal counts from now: it may also shorten.
    assert!(store.renew(&claim, Duration::from_millis(5)).await.expect("the store answers"));
    harness.advance(Duration::from_millis(5)).await;
    assert_vacant(store, &key).await;
}

/// An owner that was late, but that nobody has replaced, keeps its claim.
pub async fn a_lapsed_claim_that_nobody_took_over_is_still_current<H: Harness>(harness: H) {
    let store = harness.store();
    let (renewed, completed) = (new_key(), new_key());
    let (first, second) = (win(store, &renewed).await, win(store, &completed).await);
    harness.advance(LEASE * 3).await;
    assert!(store.renew(&first, LEASE).await.expect("the store answers"));
    assert_in_flight(store, &renewed).await;
    stored(store, completion(&second, "late")).await;
    assert_eq!(body(store, &completed).await, "late");
}

/// An owner that was replaced learns it.
pub async fn a_renewal_of_a_stale_claim_is_refused<H: Harness>(harness: H) {
    let (store, key) = (harness.store(), new_key());
    let first = win(store, &key).await;
    harness.advance(LEASE).await;
    let second = win(store, &key).await;
    assert!(!store.renew(&first, LEASE * 100).await.expect("the store answers"));
    harness.advance(LEASE).await;
    assert_vacant(store, &key).await;
    assert!(store.renew(&second, LEASE).await.expect("the store answers"));
    stored(store, completion(&second, "answer")).await;
    assert!(!store.renew(&second, LEASE).await.expect("the store answers"));
}

/// A release makes the key vacant at once: the operation has not begun.
pub async fn a_released_key_is_vacant<H: Harness>(harness: H) {
    let (store, key) = (harness.store(), new_key());
    let first = won(store.claim(refusing(&key)).await.expect("the store answers"));
    store.release(&first).await.expect("the store answers");
    assert_vacant(store, &key).await;
    let second = win(store, &key).await;
    assert!(second.token > first.token);
    assert_eq!(second.attempt, 1, "an operation that never began was not an attempt");
}

/// A stale owner's release does not take the key from its successor, and nobody's takes an entry away.
pub async fn a_release_of_a_stale_claim_changes_nothing<H: Harness>(harness: H) {
    let (store, key) = (harness.store(), new_key());
    let first = win(store, &key).await;
    harness.advance(LEASE).await;
    let second = win(store, &key).await;
    store.release(&first).await.expect("the store answers");
    assert_in_flight(store, &key).await;
    stored(store, completion(&second, "answer")).await;
    store.release(&second).await.expect("the store answers");
    assert_eq!(body(store, &key).await, "answer");
}

/// Of two claims the later one has the larger token, whatever became of those between.
pub async fn tokens_only_grow<H: Harness>(harness: H) {
    let store = harness.store();
    let mut last = None;
    for round in 0..12 {
        let key = new_key();
        let claim = win(store, &key).await;
        assert!(Some(claim.token) > last, "round {round}");
        last = Some(claim.token);
        match round % 3 {
            0 => store.release(&claim).await.expect("the store answers"),
            1 => stored(store, completion(&claim, "answer")).await,
            _ => {}
        }
    }
}

/// A future may be dropped at any point. Nothing stays locked, and the key can be used when the lease is over.
pub async fn a_dropped_call_leaves_nothing_open<H: Harness>(harness: H) {
    let (store, key) = (harness.store(), new_key());
    drop(store.claim(request(&key)));
    for _ in 0..20 {
        // Polled once: the call has begun, its answer is never awaited.
        let _ = store.claim(request(&key)).now_or_never();
        let _ = store.inspect(&key).now_or_never();
        let _ = store.sweep().now_or_never();
    }
    win(store, &new_key()).await;
    harness.advance(LEASE).await;
    let claim = win(store, &key).await;
    // A completion that has begun is finished or undone, never half done.
    let effect = harness.effect("dropped");
    let mut dropped = completion(&claim, "dropped");
    dropped.effects = vec![effect];
    let _ = store.complete(dropped).now_or_never();
    let mut again = completion(&claim, "dropped");
    again.effects = vec![harness.effect("dropped")];
    stored(store, again).await;
    assert_eq!(body(store, &key).await, "dropped");
    assert_eq!(harness.committed("dropped").await, 1);
}

/// [`Store::changed`] returns, when the time is up or sooner.
pub async fn a_change_is_told_and_no_wait_is_for_ever<H: Harness>(harness: H) {
    let (store, key) = (harness.store(), new_key());
    let claim = win(store, &key).await;
    let patience = Duration::from_secs(20);
    tokio::time::timeout(patience, store.changed(&key, Duration::from_millis(20))).await.expect("the time was up");
    // Long enough to fail the test if a store that is told of changes does not use it, and a sleeping one passes too.
    let at_most = Duration::from_millis(500);
    let (_, ()) = tokio::join!(
        tokio::time::timeout(patience, store.changed(&key, at_most)).map(|woken| woken.expect("the time was up")),
        stored(store, completion(&claim, "answer")),
    );
    assert_eq!(body(store, &key).await, "answer");
}

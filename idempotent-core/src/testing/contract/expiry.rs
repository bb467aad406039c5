//! How long things last.

use super::*;
use crate::store::Retention;

const TTL: Duration = Duration::from_secs(100);

fn retain<S: Store>(store: &S) {
    store.set_retention(Retention { ttl_seconds: TTL.as_secs(), ..Retention::default() });
}

/// `inserted_at + ttl_seconds < now`, strictly, in whole seconds (spec section 4.4).
pub async fn an_entry_answers_until_its_ttl_has_passed_strictly<H: Harness>(harness: H) {
    let (store, key) = (harness.store(), new_key());
    retain(store);
    store_answer(store, &key, "answer").await;
    harness.advance(TTL).await;
    assert_eq!(body(store, &key).await, "answer");
    assert!(matches!(store.claim(request(&key)).await, Ok(ClaimOutcome::Occupied(Occupant::Completed(_)))));
    harness.advance(Duration::from_secs(1)).await;
    assert_vacant(store, &key).await;
    let claim = win(store, &key).await;
    assert_eq!(claim.attempt, 1);
}

/// The operation runs anew, and its new answer takes the old one's place (AC-3).
pub async fn an_expired_entry_is_overwritten<H: Harness>(harness: H) {
    let (store, key) = (harness.store(), new_key());
    retain(store);
    let old = store_answer(store, &key, "old").await;
    let inserted = entry(store, &key).await.inserted_at;
    harness.advance(TTL + Duration::from_secs(1)).await;
    let new = win(store, &key).await;
    assert!(new.token > old.token);
    superseded(store, completion(&old, "very late")).await;
    stored(store, completion(&new, "new")).await;
    let found = entry(store, &key).await;
    assert_eq!(found.inserted_at, inserted + TTL.as_secs() + 1);
    assert_eq!(body(store, &key).await, "new");
}

/// However often it is replayed, an entry ends when it would have.
pub async fn a_replay_does_not_prolong_an_entry<H: Harness>(harness: H) {
    let (store, key) = (harness.store(), new_key());
    retain(store);
    store_answer(store, &key, "answer").await;
    for _ in 0..4 {
        harness.advance(TTL / 4).await;
        assert_eq!(body(store, &key).await, "answer");
        store.touch(&key);
    }
    store.sweep().await.expect("the store answers");
    assert_eq!(body(store, &key).await, "answer");
    harness.advance(Duration::from_secs(1)).await;
    assert_vacant(store, &key).await;
}

/// Under [`OnTakeover::Refuse`] nobody runs the operation again before the TTL since the claim has passed, strictly.
pub async fn an_abandoned_claim_is_refused_until_the_ttl_has_passed<H: Harness>(harness: H) {
    let (store, key) = (harness.store(), new_key());
    retain(store);
    won(store.claim(refusing(&key)).await.expect("the store answers"));
    harness.advance(LEASE - Duration::from_millis(1)).await;
    assert_in_flight(store, &key).await;
    harness.advance(TTL - LEASE + Duration::from_millis(1)).await;
    store.sweep().await.expect("the store answers");
    for found in [
        occupant(store, &key).await,
        match store.claim(request(&key)).await.expect("the store answers") {
            ClaimOutcome::Occupied(occupant) => Some(occupant),
            ClaimOutcome::Won(claim) => panic!("the outcome is unknown, yet it runs again: {claim:?}"),
        },
    ] {
        match found {
            Some(Occupant::Abandoned { request_hash, operation }) => {
                assert_eq!((request_hash, operation.as_str()), (hash(1), OPERATION));
            }
            other => panic!("the claim should be abandoned: {other:?}"),
        }
    }
    harness.advance(Duration::from_secs(1)).await;
    assert_vacant(store, &key).await;
    win(store, &key).await;
}

/// The owner of an abandoned claim may come back: it still is the current one.
pub async fn an_abandoned_claim_can_still_be_completed<H: Harness>(harness: H) {
    let (store, key) = (harness.store(), new_key());
    retain(store);
    let claim = won(store.claim(refusing(&key)).await.expect("the store answers"));
    harness.advance(LEASE).await;
    assert!(matches!(occupant(store, &key).await, Some(Occupant::Abandoned { .. })));
    assert!(store.renew(&claim, LEASE).await.expect("the store answers"));
    assert_in_flight(store, &key).await;
    harness.advance(LEASE).await;
    stored(store, completion(&claim, "back")).await;
    assert_eq!(body(store, &key).await, "back");
}

/// An operation that takes longer than the TTL keeps its claim as long as its owner lives.
pub async fn a_renewed_claim_outlives_the_ttl<H: Harness>(harness: H) {
    let store = harness.store();
    retain(store);
    let (running, refused) = (new_key(), new_key());
    let claims = [win(store, &running).await, won(store.claim(refusing(&refused)).await.expect("the store answers"))];
    for _ in 0..6 {
        harness.advance(LEASE - Duration::from_secs(1)).await;
        for claim in &claims {
            assert!(store.renew(claim, LEASE).await.expect("the store answers"));
        }
        store.sweep().await.expect("the store answers");
    }
    for claim in &claims {
        assert_in_flight(store, &claim.key).await;
        stored(store, completion(claim, "at last")).await;
        assert_eq!(body(store, &claim.key).await, "at last");
    }
}

/// [`Store::sweep`] removes expired entries and long abandoned claims, tells how many, and nothing else.
pub async fn a_sweep_removes_what_has_expired<H: Harness>(harness: H) {
    let store = harness.store();
    retain(store);
    let old: Vec<Key> = (0..5).map(|_| new_key()).collect();
    for key in &old {
        store_answer(store, key, "old").await;
    }
    let abandoned = new_key();
    won(store.claim(refusing(&abandoned)).await.expect("the store answers"));
    harness.advance(TTL).await;
    let young = new_key();
    store_answer(store, &young, "young").await;
    let running = new_key();
    let claim = win(store, &running).await;
    let swept = store.sweep().await.expect("the store answers");
    assert_eq!((swept.expired, swept.evicted), (0, 0));

    harness.advance(Duration::from_secs(1)).await;
    // A store may have swept by itself in the meantime, so the count has a bound only from above.
    let swept = store.sweep().await.expect("the store answers");
    assert!(swept.expired <= 6 && swept.evicted == 0, "{swept:?}");
    for key in old.iter().chain([&abandoned]) {
        assert_vacant(store, key).await;
    }
    assert_eq!(body(store, &young).await, "young");
    assert_in_flight(store, &running).await;
    stored(store, completion(&claim, "answer")).await;
    let swept = store.sweep().await.expect("the store answers");
    assert_eq!((swept.expired, swept.evicted), (0, 0));
}

/// The TTL of the day judges every entry, also those that were stored under another one.
pub async fn a_shorter_ttl_holds_at_once<H: Harness>(harness: H) {
    let (store, key) = (harness.store(), new_key());
    retain(store);
    store_answer(store, &key, "answer").await;
    harness.advance(TTL / 2).await;
    store.set_retention(Retention { ttl_seconds: 1, ..Retention::default() });
    assert_vacant(store, &key).await;
    store.set_retention(Retention { ttl_seconds: TTL.as_secs(), ..Retention::default() });
    // Whether it was swept in between is the store's business; it never is half there.
    if let Some(found) = occupant(store, &key).await {
        assert!(matches!(found, Occupant::Completed(_)), "{found:?}");
    }
}

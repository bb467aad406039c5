//! How many entries there may be, and which ones go.

use super::*;
use crate::store::Retention;

fn bound<S: Store>(store: &S, max_entries: u64) {
    store.set_retention(Retention { max_entries, ..Retention::default() });
}

/// Above the bound those entries go that were stored or replayed longest ago.
pub async fn the_least_recently_used_entry_is_evicted<H: Harness>(harness: H) {
    let store = harness.store();
    bound(store, 3);
    let keys: Vec<Key> = (0..5).map(|_| new_key()).collect();
    for key in &keys[..3] {
        store_answer(store, key, "answer").await;
    }
    store.touch(&keys[0]);
    store_answer(store, &keys[3], "answer").await;
    store.touch(&keys[2]);
    store_answer(store, &keys[4], "answer").await;
    store.sweep().await.expect("the store answers");

    for (number, key) in keys.iter().enumerate() {
        let found = occupant(store, key).await;
        assert_eq!(found.is_some(), ![1, 0].contains(&number), "entry {number}: {found:?}");
    }
    let claim = win(store, &keys[1]).await;
    assert_eq!(claim.attempt, 1, "an evicted entry is a miss");
    let swept = store.sweep().await.expect("the store answers");
    assert_eq!((swept.expired, swept.evicted), (0, 0));
}

/// A claim in flight does not count, and does not go.
pub async fn a_claim_is_never_evicted<H: Harness>(harness: H) {
    let store = harness.store();
    bound(store, 1);
    let running: Vec<Key> = (0..5).map(|_| new_key()).collect();
    let mut claims = Vec::new();
    for key in &running {
        claims.push(win(store, key).await);
    }
    for _ in 0..5 {
        store_answer(store, &new_key(), "answer").await;
    }
    store.sweep().await.expect("the store answers");
    for key in &running {
        assert_in_flight(store, key).await;
    }
    for claim in &claims {
        stored(store, completion(claim, "answer")).await;
    }
    store.sweep().await.expect("the store answers");
    assert_eq!(body(store, &running[4]).await, "answer");
    for key in &running[..4] {
        assert_vacant(store, key).await;
    }
}

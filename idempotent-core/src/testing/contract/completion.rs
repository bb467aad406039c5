//! What an answer and its effects are worth once they are stored, and that they are stored together or not at all.

use futures_util::future::join_all;
use http::{HeaderName, HeaderValue};

use super::*;
use crate::store::StoreError;

/// Status, headers with order, repeats and bytes that are no text, and body are what they were.
pub async fn an_answer_comes_back_byte_for_byte<H: Harness>(harness: H) {
    let (store, key) = (harness.store(), new_key());
    let claim = win(store, &key).await;
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("zulu", &b"last letter first"[..]),
        ("set-cookie", b"a=1"),
        ("alpha", b""),
        ("set-cookie", b"b=2; Path=/"),
        ("x-latin", b"caf\xe9 \x80\xff"),
        ("x-quotes", br#"W/"a\b", 'c'"#),
        ("content-type", b"application/json"),
        ("x-tab", b"a\tb"),
    ] {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a header name");
        headers.append(name, HeaderValue::from_bytes(value).expect("a header value"));
    }
    let every_byte: Vec<u8> = (0..=255).chain([0, 0, b'{', 0xff]).collect();
    let answer = StoredResponse {
        status: StatusCode::from_u16(599).expect("a status"),
        headers: headers.clone(),
        body: StoredBody::Whole(Bytes::from(every_byte.clone())),
    };
    stored(store, completion_with(&claim, answer)).await;

    let found = entry(store, &key).await;
    assert_eq!((found.request_hash, found.operation.as_str()), (hash(1), OPERATION));
    assert_eq!(found.response.status.as_u16(), 599);
    let list = |headers: &HeaderMap| -> Vec<(String, Vec<u8>)> {
        headers.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect()
    };
    assert_eq!(list(&found.response.headers), list(&headers));
    match found.response.body {
        StoredBody::Whole(bytes) => assert_eq!(bytes, every_byte),
        other => panic!("the body should be whole: {other:?}"),
    }
}

/// Completing again with a claim whose answer is stored says so, and does nothing.
pub async fn an_answer_is_stored_once<H: Harness>(harness: H) {
    let (store, key) = (harness.store(), new_key());
    let claim = win(store, &key).await;
    for _ in 0..3 {
        let mut again = completion(&claim, "answer");
        again.effects = vec![harness.effect("once")];
        stored(store, again).await;
    }
    assert_eq!(harness.committed("once").await, 1);
    assert_eq!(body(store, &key).await, "answer");
}

/// Whoever looks while an answer is being stored sees the claim or the entry, never nothing.
pub async fn a_key_is_never_vacant_between_claim_and_answer<H: Harness>(harness: H) {
    let store = harness.store();
    let keys: Vec<Key> = (0..40).map(|_| new_key()).collect();
    let mut claims = Vec::new();
    for key in &keys {
        claims.push(win(store, key).await);
    }
    let watch = join_all(keys.iter().map(|key| async move {
        loop {
            match occupant(store, key).await {
                Some(Occupant::InFlight { .. }) => tokio::task::yield_now().await,
                Some(Occupant::Completed(_)) => return,
                other => panic!("the key is claimed or answered: {other:?}"),
            }
        }
    }));
    let work = async {
        for claim in &claims {
            stored(store, completion(claim, "answer")).await;
        }
    };
    tokio::join!(watch, work);
}

/// Whoever was replaced can store neither its answer nor its effects.
pub async fn a_stale_owner_changes_nothing<H: Harness>(harness: H) {
    let (store, key) = (harness.store(), new_key());
    let stale = win(store, &key).await;
    harness.advance(LEASE).await;
    let current = win(store, &key).await;

    let mut late = completion(&stale, "stale");
    late.effects = vec![harness.effect("stale")];
    superseded(store, late.clone()).await;
    assert_in_flight(store, &key).await;
    stored(store, completion(&current, "current")).await;
    superseded(store, late).await;
    assert_eq!(body(store, &key).await, "current");
    assert_eq!(harness.committed("stale").await, 0);
}

/// A claim that was given back is worth nothing.
pub async fn a_released_claim_cannot_complete<H: Harness>(harness: H) {
    let (store, key) = (harness.store(), new_key());
    let claim = win(store, &key).await;
    store.release(&claim).await.expect("the store answers");
    let mut late = completion(&claim, "late");
    late.effects = vec![harness.effect("late")];
    superseded(store, late).await;
    assert_vacant(store, &key).await;
    assert_eq!(harness.committed("late").await, 0);
}

/// Effects run in their order and are there when the answer is.
pub async fn effects_commit_with_the_answer_in_order<H: Harness>(harness: H) {
    let (store, key) = (harness.store(), new_key());
    let claim = win(store, &key).await;
    let order = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut answer = completion(&claim, "answer");
    for name in ["task", "event", "task"] {
        let (order, effect) = (order.clone(), harness.effect(name));
        answer.effects.push(std::sync::Arc::new(move |connection| {
            order.lock().expect("no test panics here").push(name);
            effect(connection)
        }));
    }
    stored(store, answer).await;
    // It may have been called more than once, but always in order.
    let order = order.lock().expect("no test panics here").clone();
    assert!(order.chunks(3).all(|run| run == ["task", "event", "task"]), "{order:?}");
    assert_eq!(harness.committed("task").await, 2);
    assert_eq!(harness.committed("event").await, 1);
}

/// An effect that returns an error leaves no trace of itself or the others; the claim stands and can be completed without.
pub async fn a_failed_effect_changes_nothing<H: Harness>(harness: H) {
    let (store, key) = (harness.store(), new_key());
    let claim = win(store, &key).await;
    let mut answer = completion(&claim, "answer");
    answer.effects = vec![harness.effect("before"), std::sync::Arc::new(|_| Err("no more stock".into()))];
    match store.complete(answer).await.expect("the store answers") {
        CompleteOutcome::EffectFailed(error) => assert_eq!(error.to_string(), "no more stock"),
        other => panic!("the effect failed: {other:?}"),
    }
    assert_eq!(harness.committed("before").await, 0);
    assert_in_flight(store, &key).await;
    assert!(store.renew(&claim, LEASE).await.expect("the store answers"));
    stored(store, completion(&claim, "failed")).await;
    assert_eq!(body(store, &key).await, "failed");
}

/// A panic in an effect is that effect's failure, not the store's.
pub async fn a_panicking_effect_changes_nothing<H: Harness>(harness: H) {
    let (store, key) = (harness.store(), new_key());
    let claim = win(store, &key).await;
    let mut answer = completion(&claim, "answer");
    answer.effects = vec![harness.effect("before"), std::sync::Arc::new(|_| panic!("an effect panics, as it should"))];
    let outcome = store.complete(answer).await.expect("the store answers");
    assert!(matches!(outcome, CompleteOutcome::EffectFailed(_)), "{outcome:?}");
    assert_eq!(harness.committed("before").await, 0);
    assert_in_flight(store, &key).await;
    stored(store, completion(&claim, "failed")).await;
    assert_eq!(body(store, &key).await, "failed");
}

/// Effects of a request without a key commit together or not at all.
pub async fn effects_without_a_key_commit_all_or_nothing<H: Harness>(harness: H) {
    let store = harness.store();
    let both = vec![harness.effect("kept"), harness.effect("kept")];
    assert!(store.commit(both).await.expect("the store answers").is_ok());
    assert!(store.commit(Vec::new()).await.expect("the store answers").is_ok());
    let failing = vec![harness.effect("lost"), std::sync::Arc::new(|_: &mut _| Err("no".into()))];
    assert!(store.commit(failing).await.expect("the store answers").is_err());
    let panicking =
        vec![harness.effect("lost"), std::sync::Arc::new(|_: &mut _| panic!("an effect panics, as it should"))];
    assert!(store.commit(panicking).await.expect("the store answers").is_err());
    assert_eq!((harness.committed("kept").await, harness.committed("lost").await), (2, 0));
}

/// Whatever a store puts into one transaction, each operation fails alone.
pub async fn one_failed_effect_spoils_nobody_elses_commit<H: Harness>(harness: H) {
    let store = harness.store();
    let mut claims = Vec::new();
    for _ in 0..30 {
        claims.push(win(store, &new_key()).await);
    }
    let outcomes = join_all(claims.iter().enumerate().map(|(number, claim)| {
        let mut answer = completion(claim, "answer");
        answer.effects.push(harness.effect(if number % 3 == 0 { "bad" } else { "good" }));
        match number % 6 {
            0 => answer.effects.push(std::sync::Arc::new(|_| Err("no".into()))),
            3 => answer.effects.push(std::sync::Arc::new(|_| panic!("an effect panics, as it should"))),
            _ => {}
        }
        store.complete(answer)
    }))
    .await;
    for (number, outcome) in outcomes.into_iter().enumerate() {
        match outcome {
            Ok(CompleteOutcome::EffectFailed(_)) => assert_eq!(number % 3, 0, "number {number} had no failing effect"),
            Ok(CompleteOutcome::Stored) => assert_ne!(number % 3, 0, "number {number} had a failing effect"),
            Ok(CompleteOutcome::Superseded) => panic!("number {number} holds its claim"),
            Err(StoreError::Unavailable(error)) => panic!("number {number}: {error}"),
            Err(error) => panic!("number {number}: {error}"),
        }
    }
    assert_eq!((harness.committed("good").await, harness.committed("bad").await), (20, 0));
}

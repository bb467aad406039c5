//! Bodies that are not one piece of bytes: recorded in chunks, or too large to keep.

use super::*;
use crate::store::{ClaimToken, Retention};

async fn append<S: Store>(store: &S, claim: &Claim, index: u32, bytes: &'static str) -> bool {
    store.append_chunk(claim, index, Bytes::from_static(bytes.as_bytes())).await.expect("the store answers")
}

async fn chunk<S: Store>(store: &S, token: ClaimToken, index: u32) -> Option<Bytes> {
    store.read_chunk(token, index).await.expect("the store answers")
}

fn chunked(claim: &Claim, chunks: u32, rest: &'static str) -> StoredResponse {
    response(StoredBody::Chunked { token: claim.token, chunks, rest: Bytes::from_static(rest.as_bytes()) })
}

/// What was recorded can be read at once and stays readable; the same number again replaces it.
pub async fn chunks_are_read_while_they_are_written<H: Harness>(harness: H) {
    let (store, key) = (harness.store(), new_key());
    let claim = win(store, &key).await;
    assert_eq!(chunk(store, claim.token, 0).await, None);
    assert!(append(store, &claim, 0, "zero").await);
    assert_eq!(chunk(store, claim.token, 0).await.as_deref(), Some(&b"zero"[..]));
    assert!(append(store, &claim, 1, "one").await);
    assert!(append(store, &claim, 1, "one again").await);
    assert!(append(store, &claim, 2, "").await);
    assert_eq!(chunk(store, claim.token, 3).await, None);
    stored(store, completion_with(&claim, chunked(&claim, 3, "rest"))).await;

    match entry(store, &key).await.response.body {
        StoredBody::Chunked { token, chunks, rest } => {
            assert_eq!((token, chunks, &rest[..]), (claim.token, 3, &b"rest"[..]));
        }
        other => panic!("the body should be chunked: {other:?}"),
    }
    for (index, bytes) in [(0, "zero"), (1, "one again"), (2, "")] {
        assert_eq!(chunk(store, claim.token, index).await.as_deref(), Some(bytes.as_bytes()), "chunk {index}");
    }
    assert_eq!(chunk(store, claim.token, 3).await, None);
}

/// A stale owner records nothing.
pub async fn chunks_belong_to_the_current_claim<H: Harness>(harness: H) {
    let (store, key) = (harness.store(), new_key());
    let stale = win(store, &key).await;
    assert!(append(store, &stale, 0, "stale").await);
    harness.advance(LEASE).await;
    assert!(append(store, &stale, 1, "late, but nobody took over").await);
    let current = win(store, &key).await;
    assert!(!append(store, &stale, 2, "stale").await);
    assert_eq!(chunk(store, stale.token, 2).await, None);
    assert!(append(store, &current, 0, "current").await);
    stored(store, completion_with(&current, chunked(&current, 1, ""))).await;
    assert!(!append(store, &current, 1, "after the end").await);
    assert_eq!(chunk(store, current.token, 0).await.as_deref(), Some(&b"current"[..]));
    assert_eq!(chunk(store, current.token, 1).await, None);
}

/// A takeover and a release remove what the claim had recorded.
pub async fn chunks_go_with_their_claim<H: Harness>(harness: H) {
    let store = harness.store();
    let (taken, released) = (new_key(), new_key());
    let first = win(store, &taken).await;
    assert!(append(store, &first, 0, "first").await);
    harness.advance(LEASE).await;
    let second = win(store, &taken).await;
    assert_eq!(chunk(store, first.token, 0).await, None);
    assert_eq!(chunk(store, second.token, 0).await, None);

    let third = win(store, &released).await;
    assert!(append(store, &third, 0, "third").await);
    store.release(&third).await.expect("the store answers");
    assert_eq!(chunk(store, third.token, 0).await, None);
}

/// An entry that expires, is evicted or is overwritten takes its chunks along.
pub async fn chunks_go_with_their_entry<H: Harness>(harness: H) {
    let store = harness.store();
    store.set_retention(Retention { ttl_seconds: 100, max_entries: 2 });
    let mut claims = Vec::new();
    for _ in 0..3 {
        let claim = win(store, &new_key()).await;
        assert!(append(store, &claim, 0, "chunk").await);
        stored(store, completion_with(&claim, chunked(&claim, 1, "rest"))).await;
        claims.push(claim);
    }
    store.sweep().await.expect("the store answers");
    assert_eq!(chunk(store, claims[0].token, 0).await, None, "evicted");
    assert_eq!(chunk(store, claims[1].token, 0).await.as_deref(), Some(&b"chunk"[..]));

    harness.advance(Duration::from_secs(101)).await;
    store_answer(store, &claims[1].key, "whole").await;
    assert_eq!(chunk(store, claims[1].token, 0).await, None, "overwritten");
    store.sweep().await.expect("the store answers");
    assert_eq!(chunk(store, claims[2].token, 0).await, None, "expired");
    assert_eq!(body(store, &claims[1].key).await, "whole");
}

/// A recording that ends in another kind of body leaves no chunks.
pub async fn chunks_of_a_body_that_was_not_kept_are_gone<H: Harness>(harness: H) {
    let (store, key) = (harness.store(), new_key());
    let claim = win(store, &key).await;
    assert!(append(store, &claim, 0, "chunk").await);
    stored(store, completion_with(&claim, response(StoredBody::NotRetained { bytes: 5 }))).await;
    assert_eq!(chunk(store, claim.token, 0).await, None);
}

/// A body that was too large leaves its status and its size, whatever it is.
pub async fn a_tombstone_remembers_its_size<H: Harness>(harness: H) {
    let store = harness.store();
    for size in [0, 1, 5_000_000_000, i64::MAX as u64] {
        let key = new_key();
        let claim = win(store, &key).await;
        let answer =
            StoredResponse { status: StatusCode::CREATED, ..response(StoredBody::NotRetained { bytes: size }) };
        stored(store, completion_with(&claim, answer)).await;
        let found = entry(store, &key).await.response;
        assert_eq!(found.status, StatusCode::CREATED);
        assert!(matches!(found.body, StoredBody::NotRetained { bytes } if bytes == size), "{found:?}");
    }
}

/// No bytes are bytes, too.
pub async fn an_empty_body_is_a_body<H: Harness>(harness: H) {
    let (store, key) = (harness.store(), new_key());
    store_answer(store, &key, "").await;
    assert_eq!(body(store, &key).await, "");
}

/// 3 MiB come back as they were.
pub async fn a_large_body_is_kept<H: Harness>(harness: H) {
    let (store, key) = (harness.store(), new_key());
    let claim = win(store, &key).await;
    let large: Bytes = (0..3 << 20).map(|number: u32| (number % 251) as u8).collect();
    stored(store, completion_with(&claim, response(StoredBody::Whole(large.clone())))).await;
    assert!(body(store, &key).await == large);
}

//! A row that cannot be read is loud, and is never executed over.

use idempotent_core::store::{Store, StoreError};

use crate::support::{Fixture, body, new_key, request, store_answer, win};

async fn assert_corrupt(fixture: &Fixture, key: &idempotent_core::Key, what: &str) {
    match fixture.store.inspect(key).await {
        Err(StoreError::Corrupt(text)) => assert!(text.contains("idempotency_"), "{text}"),
        other => panic!("inspect: {what} is not seen: {other:?}"),
    }
    match fixture.store.claim(request(key)).await {
        Err(StoreError::Corrupt(_)) => {}
        other => panic!("claim: {what} is not seen: {other:?}"),
    }
}

#[tokio::test]
async fn an_entry_that_cannot_be_read_is_corrupt_never_vacant() {
    for change in [
        "body_kind = 7",
        "body_kind = -1",
        "body_kind = 'whole'",
        "body_kind = 2, body_chunks = 0",
        "body_kind = 2, body_chunks = -5",
        "body_kind = 2, body_chunks = 9000000000",
        "body_kind = 1, body_chunks = 2",
        "body_kind = 3, body_bytes = -1",
        "response_status = 0",
        "response_status = 99",
        "response_status = 1000",
        "response_status = -200",
        "response_status = 65736",
        "response_status = 'OK'",
        "response_headers = x'00'",
        "response_headers = '[]'",
        "response_headers = ''",
        "response_headers = '{\"a\":\"b\"}'",
        "response_headers = '{\"a\":[\"b\"]} '||char(0)",
        "response_headers = '{\"a b\":[\"c\"]}'",
        "response_headers = '{\"a\":[\"\u{20ac}\"]}'",
        "response_headers = '{\"a\":[\"b\\nc: d\"]}'",
        "request_hash = ''",
        "request_hash = 'abc'",
        "request_hash = upper(request_hash) || 'A'",
        "request_hash = replace(request_hash, '1', 'G')",
        "request_hash = replace(request_hash, '01', x'ff')",
        "inserted_at = 'yesterday'",
        "inserted_at = 0",
        "inserted_at = -1",
    ] {
        let fixture = Fixture::new().await;
        let (key, neighbour) = (new_key(), new_key());
        store_answer(&fixture.store, &key, "answer").await;
        fixture.tamper(&format!("UPDATE idempotency_cache SET {change}"));
        assert_corrupt(&fixture, &key, change).await;
        // Its neighbours in the same batch and table are well.
        store_answer(&fixture.store, &neighbour, "well").await;
        assert_eq!(body(&fixture.store, &neighbour).await, "well");
    }
}

#[tokio::test]
async fn a_claim_that_cannot_be_read_is_corrupt_never_vacant() {
    for change in [
        "request_hash = 'abc'",
        "on_takeover = 7",
        "on_takeover = 'refuse'",
        "lease_until = -1",
        "lease_until = 'soon'",
        "claimed_at = -1",
        "claimed_at = 'then'",
    ] {
        let fixture = Fixture::new().await;
        let key = new_key();
        win(&fixture.store, &key).await;
        fixture.tamper(&format!("UPDATE idempotency_claim SET {change}"));
        assert_corrupt(&fixture, &key, change).await;
    }
}

#[tokio::test]
async fn a_corrupt_row_spoils_nobody_elses_batch() {
    let fixture = Fixture::new().await;
    let broken = new_key();
    store_answer(&fixture.store, &broken, "answer").await;
    fixture.tamper("UPDATE idempotency_cache SET body_kind = 7");
    let claims = futures_util::future::join_all((0..60).map(|number| {
        let key = if number % 3 == 0 { broken.clone() } else { new_key() };
        fixture.store.claim(request(&key))
    }))
    .await;
    for (number, outcome) in claims.into_iter().enumerate() {
        match outcome {
            Err(StoreError::Corrupt(_)) => assert_eq!(number % 3, 0),
            Ok(idempotent_core::store::ClaimOutcome::Won(_)) => assert_ne!(number % 3, 0),
            other => panic!("number {number}: {other:?}"),
        }
    }
}

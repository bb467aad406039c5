//! What is one key, and what is two.

use super::*;

/// The same `messageId` in two scopes is two operations.
pub async fn scopes_share_nothing<H: Harness>(harness: H) {
    let store = harness.store();
    let message_id = MessageId::generate();
    let scopes = [Scope::global(), Scope::of("alice"), Scope::of("bob"), Scope::of(""), Scope::of("Alice")];
    for scope in &scopes {
        let key = Key { scope: scope.clone(), message_id };
        store_answer(store, &key, scope.as_stored()).await;
    }
    for scope in &scopes {
        let key = Key { scope: scope.clone(), message_id };
        assert_eq!(body(store, &key).await, scope.as_stored());
    }
}

/// A scope may be long, and hold anything that is text: NUL, quotes, what looks like a wildcard, what normalises alike.
pub async fn scopes_of_any_text_are_kept_apart<H: Harness>(harness: H) {
    let store = harness.store();
    let message_id = MessageId::generate();
    let long = "a long name, ".repeat(5_000);
    let texts = [
        "a",
        "a\0",
        "a\0b",
        "a ",
        " a",
        "a'--",
        "%",
        "_",
        "\u{e9}",
        "e\u{301}",
        "\u{10ffff}",
        &long,
        &format!("{long}."),
    ]
    .map(str::to_owned);
    let mut claims = Vec::new();
    for text in &texts {
        let key = Key { scope: Scope::of(text), message_id };
        claims.push(win(store, &key).await);
    }
    for (claim, text) in claims.iter().zip(&texts) {
        stored(store, completion(claim, text)).await;
    }
    for text in &texts {
        let key = Key { scope: Scope::of(text), message_id };
        assert!(body(store, &key).await == *text, "{text:?}");
    }
}

/// Upper and lower case are one `messageId`.
pub async fn message_ids_are_compared_as_uuids<H: Harness>(harness: H) {
    let store = harness.store();
    let key = |text: &str| Key { scope: Scope::global(), message_id: text.parse().expect("a UUID") };
    store_answer(store, &key("01983A7E-0000-7000-8000-00000000000A"), "answer").await;
    assert_eq!(body(store, &key("01983a7e-0000-7000-8000-00000000000a")).await, "answer");
}

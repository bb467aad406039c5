//! The shape of a key: which `messageId`s are one, and what is said about the others.

use serde_json::{Value, json};

use crate::{
    REUSED, assert_error, assert_executed, assert_replays,
    support::{Agent, URI, fresh_id, send},
};

const MALFORMED: &str = "IDEMPOTENCY_MESSAGE_ID_MALFORMED";

#[tokio::test]
async fn a_uuid_of_any_version_is_a_key() {
    let agent = Agent::start(&[]);
    for id in [
        "c232ab00-9414-11ec-b3c8-9f6bdeced846",
        "5df41881-3aed-3515-88a7-2f4a814cf09e",
        "919108f7-52d1-4320-9bac-f847db4148a8",
        "2ed6657d-e927-568b-95e1-2665a8aea6a2",
        "1ec9414c-232a-6b00-b3c8-9f6bdeced846",
        "017f22e2-79b0-7cc3-98c4-dc0c0c07398f",
        "2489e9ad-2ee2-8e00-8ec9-32d5f69181c0",
        "00000000-0000-0000-0000-000000000001",
        "ffffffff-ffff-ffff-ffff-fffffffffffe",
    ] {
        let request = send(id, "hello", json!({}));
        let first = agent.call(&request).await;
        assert_executed(&first);
        assert_replays(&agent.call(&request).await, &first);
    }
}

#[tokio::test]
async fn case_makes_no_other_key_and_errors_show_what_was_sent() {
    let agent = Agent::start(&[]);
    let upper = "017F22E2-79B0-7CC3-98C4-DC0C0C07398F";
    let mixed = "017f22E2-79b0-7cc3-98c4-dc0c0c07398F";
    let first = agent.call(&send(upper, "hello", json!({}))).await;
    assert_executed(&first);
    assert_replays(&agent.call(&send(&upper.to_lowercase(), "hello", json!({}))).await, &first);
    let collision = agent.call(&send(mixed, "other", json!({}))).await;
    assert_error(&collision, 422, -32422, REUSED);
    assert_eq!(collision.json()["error"]["data"]["message_id"], mixed);
    let stored = format!("SELECT count(*) AS n FROM idempotency_cache WHERE message_id = '{}'", upper.to_lowercase());
    assert_eq!(agent.count_rows(&stored), 1);
}

#[tokio::test]
async fn what_is_no_canonical_uuid_is_refused_and_shown_as_submitted() {
    let agent = Agent::start(&[]);
    let uuid = fresh_id();
    let malformed = [
        json!("00000000-0000-0000-0000-000000000000"),
        json!("ffffffff-ffff-ffff-ffff-ffffffffffff"),
        json!("FFFFFFFF-ffff-FFFF-ffff-ffffffffffff"),
        json!(format!("{{{uuid}}}")),
        json!(format!("urn:uuid:{uuid}")),
        json!(uuid.replace('-', "")),
        json!(format!(" {uuid}")),
        json!(format!("{uuid}\n")),
        json!(format!("{}g", &uuid[..35])),
        json!(format!("{}-{}", &uuid[..7], &uuid[8..])),
        json!(&uuid[..35]),
        json!(""),
        json!("msg-1"),
        json!("é"),
        json!(7),
        json!(1.5),
        json!(null),
        json!(true),
        json!([uuid]),
        json!({"id": uuid}),
    ];
    for value in &malformed {
        let mut request = send(&uuid, "hello", json!({}));
        request["params"]["message"]["messageId"] = value.clone();
        let answer = agent.call(&request).await;
        assert_error(&answer, 400, -32602, MALFORMED);
        assert_eq!(answer.json()["error"]["data"], json!({"code": MALFORMED, "message_id": value}));
        assert_eq!(answer.header("a2a-extensions"), Some(URI));
    }
    assert_eq!(agent.metric("message/send", "refused").await, malformed.len() as u64);
    assert_executed(&agent.call(&send(&uuid, "hello", json!({}))).await);
    assert_eq!(agent.executions().await, 1);
}

#[tokio::test]
async fn a_key_that_is_not_there_is_malformed() {
    let agent = Agent::start(&[]);
    let without: [Value; 9] = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "message/send"}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": null}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": [1]}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": "x"}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {}}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": null}}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": [fresh_id()]}}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": {"message_id": fresh_id()}}}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"messageId": fresh_id(), "message": {}}}),
    ];
    for request in &without {
        let answer = agent.call(request).await;
        assert_error(&answer, 400, -32602, MALFORMED);
        assert_eq!(answer.json()["error"]["data"], json!({"code": MALFORMED, "message_id": null}), "{request}");
    }
}

#[tokio::test]
async fn a_long_key_is_not_repeated() {
    let agent = Agent::start(&[]);
    // With its quotes, 256 and 257 bytes.
    for (length, shown) in [(254, true), (255, false), (100_000, false)] {
        let id = "x".repeat(length);
        let answer = agent.call(&send(&id, "hello", json!({}))).await;
        assert_error(&answer, 400, -32602, MALFORMED);
        let expected = if shown { json!(id) } else { json!(null) };
        assert_eq!(answer.json()["error"]["data"]["message_id"], expected, "{length}");
    }
}

#[tokio::test]
async fn a_key_of_any_spelling_is_the_key() {
    let agent = Agent::start(&[]);
    let id = fresh_id();
    let first = agent.call(&send(&id, "hello", json!({}))).await;
    let escaped: String = id.chars().map(|char| format!("\\u{:04x}", u32::from(char))).collect();
    let body = send(&id, "hello", json!({})).to_string().replace(&id, &escaped);
    assert_replays(&agent.post(&[("a2a-extensions", URI)], body.clone()).await, &first);
    let other = body.replace("hello", "other");
    let collision = agent.post(&[("a2a-extensions", URI)], other).await;
    assert_error(&collision, 422, -32422, REUSED);
    assert!(collision.text().contains(&escaped), "as submitted: {}", collision.text());
}

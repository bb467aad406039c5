//! Which refusal wins when a request deserves two: each test takes neighbours of the promised order.
//!
//! Body limit (413), JSON (-32700), envelope (-32600), method (-32601), A2A version (-32009), header-only extractors (401, 429),
//! activation, key, canonical form, claim, body extractors, the handler.

use serde_json::{Value, json};

use crate::{
    REUSED, assert_error, assert_executed, assert_replays,
    support::{Agent, URI, fresh_id, send},
};

const ACTIVATED: (&str, &str) = ("a2a-extensions", URI);
const BAD_VERSION: (&str, &str) = ("a2a-version", "9.9");
const DENIED: (&str, &str) = ("authorization", "Bearer denied");
const LIMITED: (&str, &str) = ("authorization", "Bearer limited");

fn hello() -> Value {
    send(&fresh_id(), "hello", json!({}))
}

#[tokio::test]
async fn the_body_limit_comes_before_json() {
    let agent = Agent::start(&["--max-request-bytes", "1000"]);
    assert_eq!(agent.post(&[ACTIVATED], "{".repeat(1001)).await.status, 413);
    assert_error(&agent.post(&[ACTIVATED], "{".repeat(1000)).await, 200, -32700, "");
}

#[tokio::test]
async fn json_comes_before_the_envelope_and_the_envelope_before_the_method() {
    let agent = Agent::start(&[]);
    let batch_cut_short = format!("[{}", hello());
    assert_error(&agent.post(&[ACTIVATED], batch_cut_short).await, 200, -32700, "");
    let twice = r#"{"id":1,"id":1,"jsonrpc":"2.0","method":"message/send","params":{}"#;
    assert_error(&agent.post(&[ACTIVATED], twice).await, 200, -32700, "");
    let unknown_in_an_old_envelope = json!({"jsonrpc": "1.0", "id": 1, "method": "nope"});
    assert_error(&agent.call(&unknown_in_an_old_envelope).await, 200, -32600, "");
    let unknown_twice = r#"{"jsonrpc":"2.0","id":1,"method":"nope","method":"nope"}"#;
    assert_error(&agent.post(&[ACTIVATED], unknown_twice).await, 200, -32600, "");
}

#[tokio::test]
async fn the_method_comes_before_the_version_and_the_version_before_the_caller() {
    let agent = Agent::start(&[]);
    let mut unknown = hello();
    unknown["method"] = json!("nope");
    assert_error(&agent.post(&[ACTIVATED, BAD_VERSION, DENIED], unknown.to_string()).await, 200, -32601, "");
    for method in ["message/send", "SendStreamingMessage", "tasks/list", "GetTask"] {
        let mut request = hello();
        request["method"] = json!(method);
        let answer = agent.post(&[ACTIVATED, BAD_VERSION, DENIED], request.to_string()).await;
        assert_error(&answer, 200, -32009, "");
    }
}

#[tokio::test]
async fn a_notification_is_an_envelope_that_does_not_fit() {
    let agent = Agent::start(&[]);
    let mut notification = hello();
    notification.as_object_mut().expect("an object").remove("id");
    assert_error(&agent.post(&[ACTIVATED, BAD_VERSION, DENIED], notification.to_string()).await, 200, -32600, "");
}

#[tokio::test]
async fn the_caller_comes_before_activation_and_activation_before_the_key() {
    let agent = Agent::start(&[]);
    let malformed = send("no uuid", "hello", json!({})).to_string();
    assert_eq!(agent.post(&[DENIED], malformed.clone()).await.status, 401);
    assert_eq!(agent.post(&[LIMITED], malformed.clone()).await.status, 429);
    let answer = agent.post(&[], malformed.clone()).await;
    assert_error(&answer, 400, -32600, "IDEMPOTENCY_EXTENSION_NOT_ACTIVATED");
    let answer = agent.post(&[ACTIVATED], malformed).await;
    assert_error(&answer, 400, -32602, "IDEMPOTENCY_MESSAGE_ID_MALFORMED");
}

#[tokio::test]
async fn the_key_comes_before_the_canonical_form() {
    let agent = Agent::start(&[]);
    let body = send("no uuid", "hello", json!({})).to_string().replace("\"hello\"", "1e999");
    let answer = agent.post(&[ACTIVATED], body).await;
    assert_error(&answer, 400, -32602, "IDEMPOTENCY_MESSAGE_ID_MALFORMED");
}

#[tokio::test]
async fn the_canonical_form_comes_before_the_claim_and_the_claim_before_the_typed_params() {
    let agent = Agent::start(&[]);
    let id = fresh_id();
    let request = send(&id, "hello", json!({}));
    let first = agent.call(&request).await;
    assert_executed(&first);

    let not_i_json = request.to_string().replace("\"hello\"", "1e999");
    let answer = agent.post(&[ACTIVATED], not_i_json).await;
    assert_error(&answer, 400, -32602, "IDEMPOTENCY_PAYLOAD_NOT_CANONICALIZABLE");

    let misfit = send(&id, "hello", json!("no object"));
    assert_error(&agent.call(&misfit).await, 422, -32422, REUSED);
    let private = request.to_string().replace("\"demo\"", "\"$serde_json::private::RawValue\"");
    assert_error(&agent.post(&[ACTIVATED], private).await, 422, -32422, REUSED);
    assert_replays(&agent.call(&request).await, &first);
}

#[tokio::test]
async fn a_caller_who_is_turned_away_learns_nothing_of_what_is_stored() {
    let agent = Agent::start(&[]);
    let request = hello();
    let first = agent.call(&request).await;
    for (turned_away, status) in [(DENIED, 401), (LIMITED, 429)] {
        let answer = agent.post(&[ACTIVATED, turned_away], request.to_string()).await;
        assert_eq!(answer.status, status);
        assert!(!answer.is_replay());
        assert_eq!(answer.header("a2a-extensions"), Some(URI));
    }
    let answer = agent.post(&[ACTIVATED, BAD_VERSION], request.to_string()).await;
    assert_error(&answer, 200, -32009, "");
    assert_error(&agent.post(&[], request.to_string()).await, 400, -32600, "IDEMPOTENCY_EXTENSION_NOT_ACTIVATED");
    assert_replays(&agent.call(&request).await, &first);
}

#[tokio::test]
async fn typed_params_come_before_the_handler() {
    let agent = Agent::start(&[]);
    let mut request = send(&fresh_id(), "hello", json!({"http_status": 503, "delay_ms": "long"}));
    assert_error(&agent.call(&request).await, 200, -32602, "");
    request["params"]["metadata"]["demo"]["delay_ms"] = json!(1);
    let failed = agent.call(&request).await;
    assert_error(&failed, 503, -32000, "");
    assert_replays(&agent.call(&request).await, &failed);
}

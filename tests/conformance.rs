//! The scenarios of the spec's section 6 against the example agent: a real process, over TCP. What the error table and the
//! open questions of the spec promise besides is in the modules.

mod support;

#[path = "conformance/activation.rs"]
mod activation;
#[path = "conformance/broken_store.rs"]
mod broken_store;
#[path = "conformance/callers.rs"]
mod callers;
#[path = "conformance/canonical_form.rs"]
mod canonical_form;
#[path = "conformance/dialects.rs"]
mod dialects;
#[path = "conformance/envelope.rs"]
mod envelope;
#[path = "conformance/flags.rs"]
mod flags;
#[path = "conformance/headers.rs"]
mod headers;
#[path = "conformance/message_id.rs"]
mod message_id;
#[path = "conformance/order.rs"]
mod order;
#[path = "conformance/retention.rs"]
mod retention;
#[path = "conformance/routes.rs"]
mod routes;
#[path = "conformance/stored_answers.rs"]
mod stored_answers;

use std::time::{Duration, Instant};

use serde_json::json;
use support::{Agent, Answer, URI, fresh_id, send};

const REUSED: &str = "IDEMPOTENCY_KEY_REUSED_WITH_DIFFERENT_PAYLOAD";

/// An error: HTTP status, JSON-RPC code and the extension's own code (empty for a plain JSON-RPC error).
#[track_caller]
fn assert_error(answer: &Answer, status: u16, rpc_code: i64, code: &str) {
    let json = answer.json();
    let found = (answer.status.as_u16(), json["error"]["code"].as_i64(), answer.code());
    assert_eq!(found, (status, Some(rpc_code), code.to_owned()), "{json}");
    assert_eq!(json["jsonrpc"], "2.0");
    assert!(json["error"]["message"].as_str().is_some_and(|message| !message.is_empty()), "{json}");
    assert!(json.get("result").is_none(), "{json}");
    assert!(!answer.headers.contains_key("idempotent-replayed"));
    let waits = matches!(code, "IDEMPOTENCY_REQUEST_IN_PROGRESS" | "IDEMPOTENCY_STORE_UNAVAILABLE");
    assert_eq!(answer.headers.contains_key("retry-after"), waits, "{:?}", answer.headers);
}

/// A first answer: it succeeded, and is no replay.
#[track_caller]
fn assert_executed(answer: &Answer) {
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.json()["result"].is_object(), "{}", answer.text());
    assert!(!answer.headers.contains_key("idempotent-replayed"), "{:?}", answer.headers);
}

/// A replay of `first`: the same status, headers and bytes.
#[track_caller]
fn assert_replays(replay: &Answer, first: &Answer) {
    assert_eq!(replay.header("idempotent-replayed"), Some("true"), "{}", replay.text());
    assert_eq!(replay.without_mark(), first.without_mark());
}

/// Answers until they are as they should be; a deadline bounds it.
async fn eventually(agent: &Agent, request: &serde_json::Value, wanted: impl Fn(&Answer) -> bool) -> Answer {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let answer = agent.call(request).await;
        if wanted(&answer) {
            return answer;
        }
        assert!(Instant::now() < deadline, "still {}", answer.text());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn ac_1_an_identical_body_is_replayed_and_runs_nothing() {
    let agent = Agent::start(&[]);
    let request = send(&fresh_id(), "hello", json!({}));
    let first = agent.call(&request).await;
    assert_executed(&first);
    assert_eq!(first.header("a2a-extensions"), Some(URI));
    assert_eq!(first.json()["result"]["artifacts"][0]["parts"][0]["text"], "hello");

    for _ in 0..3 {
        let replay = agent.call(&request).await;
        assert_replays(&replay, &first);
        assert_eq!(replay.header("a2a-extensions"), Some(URI));
    }
    assert_eq!(agent.executions().await, 1);
    assert_eq!(agent.count_rows("SELECT count(*) AS n FROM outbox"), 1);
}

#[tokio::test]
async fn ac_1_white_space_member_order_and_spelling_make_no_other_body() {
    let agent = Agent::start(&[]);
    let id = fresh_id();
    let body = |params: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"message/send","params":{params}}}"#);
    let activated: &[(&str, &str)] = &[("a2a-extensions", URI)];
    let first = format!(
        r#"{{"message":{{"messageId":"{id}","role":"user","kind":"message","parts":[{{"kind":"text","text":"café/é"}}]}},"metadata":{{"n":1,"x":100,"é":null}}}}"#
    );
    let first = agent.post(activated, body(&first)).await;
    assert_executed(&first);
    let retry = format!(
        "{{ \"metadata\" : {{\"\\u00e9\":null, \"x\":1E2,\t\"n\":1.0}},\r\n \"message\" : {{ \"parts\":[{{\"text\":\"caf\\u00E9\\/é\",\"kind\":\"text\"}}], \
         \"kind\":\"message\", \"role\":\"user\", \"message\\u0049d\":\"{id}\" }} }}"
    );
    let retry = format!("  {}\n", body(&retry));
    assert_replays(&agent.post(activated, retry).await, &first);
    assert_eq!(agent.executions().await, 1);
}

#[tokio::test]
async fn ac_2_another_body_collides_and_changes_nothing() {
    let agent = Agent::start(&[]);
    let id = fresh_id();
    let request = send(&id, "one", json!({}));
    let first = agent.call(&request).await;

    let other_text = send(&id, "two", json!({}));
    let mut other_metadata = request.clone();
    other_metadata["params"]["metadata"]["trace"] = json!(1);
    let mut task = request.clone();
    task["params"]["message"]["taskId"] = json!("t");
    for other in [other_text, other_metadata, task] {
        let collision = agent.call(&other).await;
        assert_error(&collision, 422, -32422, REUSED);
        let data = &collision.json()["error"]["data"];
        assert_eq!(data["message_id"], id.as_str());
        let hash = |name: &str| data[name].as_str().expect("a hash").to_owned();
        let (original, submitted) = (hash("original_request_hash"), hash("submitted_request_hash"));
        assert_ne!(original, submitted);
        assert_eq!(original, idempotent::RequestHash::of(&request["params"]).expect("I-JSON").to_string());
        assert_eq!(submitted, idempotent::RequestHash::of(&other["params"]).expect("I-JSON").to_string());
        assert_eq!(data.as_object().expect("an object").len(), 4, "the operations do not differ: {data}");
        assert_eq!(collision.header("a2a-extensions"), Some(URI));
        assert_replays(&agent.call(&request).await, &first);
    }
    assert_eq!(agent.executions().await, 1);
}

#[tokio::test]
async fn ac_3_past_the_ttl_a_request_is_new() {
    let agent = Agent::start(&["--ttl-seconds", "2"]);
    let id = fresh_id();
    let request = send(&id, "hello", json!({}));
    let first = agent.call(&request).await;
    assert_replays(&agent.call(&request).await, &first);

    // The replays on the way there do not extend it.
    let second = eventually(&agent, &request, |answer| !answer.is_replay()).await;
    assert_executed(&second);
    assert_ne!(second.body, first.body);
    assert_replays(&agent.call(&request).await, &second);

    let other = send(&id, "another body", json!({}));
    let third = eventually(&agent, &other, |answer| answer.status == 200).await;
    assert_executed(&third);
    assert_error(&agent.call(&request).await, 422, -32422, REUSED);
    assert_replays(&agent.call(&other).await, &third);
    assert_eq!(agent.executions().await, 3);
    assert_eq!(agent.count_rows("SELECT count(*) AS n FROM idempotency_cache"), 1);
}

async fn survives(mut end: impl FnMut(&mut Agent)) {
    let mut agent = Agent::start(&[]);
    let mut sent = Vec::new();
    for round in 1..=2 {
        let request = send(&fresh_id(), "hello", json!({"headers": [["x-round", round.to_string()]]}));
        sent.push((request.clone(), agent.call(&request).await));
        assert_executed(&sent[sent.len() - 1].1);
        end(&mut agent);
        agent.restart();
        for (request, first) in &sent {
            assert_replays(&agent.call(request).await, first);
        }
        assert_eq!(agent.executions().await, round);
    }
    let (request, _) = &sent[0];
    let mut other = request.clone();
    other["params"]["metadata"]["trace"] = json!(1);
    assert_error(&agent.call(&other).await, 422, -32422, REUSED);
}

#[tokio::test]
async fn ac_4_answers_survive_sigterm() {
    survives(|agent| assert_eq!(agent.terminate(), Some(0))).await;
}

#[tokio::test]
async fn ac_4_answers_survive_sigint() {
    survives(|agent| {
        agent.signal("INT");
        assert_eq!(agent.exit_code(Duration::from_secs(60)), Some(0));
    })
    .await;
}

#[tokio::test]
async fn ac_4_answers_survive_kill_9() {
    survives(Agent::kill).await;
}

#[tokio::test]
async fn sigterm_lets_what_runs_finish() {
    let mut agent = Agent::start(&[]);
    let request = send(&fresh_id(), "slow", json!({"delay_ms": 1500}));
    let running = agent.request(&[("a2a-extensions", URI)], request.to_string()).send();
    let running = tokio::spawn(running);
    agent.until_claimed().await;
    agent.signal("TERM");
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        match agent.try_call(&send(&fresh_id(), "too late", json!({"http_status": 418}))).await {
            Ok(answer) if answer.status == 418 => assert!(Instant::now() < deadline, "it goes on accepting"),
            Ok(answer) => break assert_error(&answer, 503, -32503, "IDEMPOTENCY_STORE_UNAVAILABLE"),
            Err(_) => break,
        }
    }
    let first = Answer::read(running.await.expect("no panic").expect("an answer")).await.expect("a whole answer");
    assert_executed(&first);
    assert_eq!(agent.exit_code(Duration::from_secs(60)), Some(0));
    agent.restart();
    assert_replays(&agent.call(&request).await, &first);
    assert_eq!(agent.executions().await, 1);
}

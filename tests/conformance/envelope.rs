//! The JSON-RPC envelope around a request: its `id`, notifications, batches, methods.

use serde_json::{Value, json};

use crate::{
    REUSED, assert_error, assert_executed, assert_replays,
    support::{Agent, Answer, URI, fresh_id, send},
};

/// The text of a response's `id`.
fn id_text(answer: &Answer) -> String {
    let text = answer.text();
    let after = text.split_once(r#""id":"#).expect("an id").1;
    let end = after.find([',', '}']).expect("an end");
    after[..end].to_owned()
}

fn with_id(request: &Value, id: &str) -> String {
    request.to_string().replacen(r#""id":1"#, &format!(r#""id":{id}"#), 1)
}

const IDS: [&str; 11] = [
    "1",
    "0",
    "-7",
    "null",
    r#""""#,
    r#""a-1""#,
    r#""\u0061\/é""#,
    "1.50",
    "1e2",
    "9007199254740993",
    "123456789012345678901234567890",
];

#[tokio::test]
async fn every_id_is_echoed_as_it_was_written() {
    let agent = Agent::start(&[]);
    let activated: &[(&str, &str)] = &[("a2a-extensions", URI)];
    for id in IDS {
        let request = send(&fresh_id(), "hello", json!({}));
        let first = agent.post(activated, with_id(&request, id)).await;
        assert_executed(&first);
        assert_eq!(id_text(&first), id);
        let mut other = request.clone();
        other["params"]["x"] = json!(1);
        let collision = agent.post(activated, with_id(&other, id)).await;
        assert_error(&collision, 422, -32422, REUSED);
        assert_eq!(id_text(&collision), id);
        let unknown = json!({"jsonrpc": "2.0", "id": 1, "method": "nope"});
        assert_eq!(id_text(&agent.post(&[], with_id(&unknown, id)).await), id);
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/list"});
        assert_eq!(id_text(&agent.post(&[], with_id(&list, id)).await), id);
    }
}

#[tokio::test]
async fn a_replay_carries_the_id_of_the_first_request() {
    let agent = Agent::start(&[]);
    let request = send(&fresh_id(), "hello", json!({}));
    let first = agent.call(&request).await;
    for id in IDS {
        assert_replays(&agent.post(&[("a2a-extensions", URI)], with_id(&request, id)).await, &first);
    }
    assert_eq!(agent.executions().await, 1);
}

#[tokio::test]
async fn where_it_is_asked_for_a_replay_carries_its_own_id_and_nothing_else_changes() {
    let agent = Agent::start(&["--replay-id", "request"]);
    let activated: &[(&str, &str)] = &[("a2a-extensions", URI)];
    for demo in [json!({}), json!({"http_status": 503}), json!({"panic": true}), json!({"response_bytes": 200_000})] {
        let request = send(&fresh_id(), r#"hello "id":1,"#, demo);
        let first = agent.call(&request).await;
        assert_eq!(first.json()["id"], 1);
        for id in IDS {
            let replay = agent.post(activated, with_id(&request, id)).await;
            assert!(replay.is_replay());
            assert_eq!(replay.status, first.status);
            assert_eq!(replay.text(), first.text().replacen(r#""id":1"#, &format!(r#""id":{id}"#), 1));
        }
    }
    assert_eq!(agent.executions().await, 2);
}

#[tokio::test]
async fn an_id_of_another_type_is_an_invalid_request() {
    let agent = Agent::start(&[]);
    let request = send(&fresh_id(), "hello", json!({}));
    for id in ["true", "[1]", "{}"] {
        let answer = agent.post(&[("a2a-extensions", URI)], with_id(&request, id)).await;
        assert_error(&answer, 200, -32600, "");
        assert_eq!(answer.json()["id"], json!(null));
    }
    assert_executed(&agent.call(&request).await);
}

#[tokio::test]
async fn a_notification_of_an_annotated_method_is_refused() {
    let agent = Agent::start(&[]);
    for method in ["message/send", "SendMessage", "message/stream", "SendStreamingMessage"] {
        let mut request = send(&fresh_id(), "hello", json!({}));
        request["method"] = json!(method);
        let mut notification = request.clone();
        notification.as_object_mut().expect("an object").remove("id");
        let answer = agent.call(&notification).await;
        assert_error(&answer, 200, -32600, "");
        assert_eq!(answer.json()["id"], json!(null));
        assert_eq!(agent.executions().await, 0);
    }
    let mut notification = send(&fresh_id(), "hello", json!({}));
    let with_null = with_id(&notification, "null");
    notification.as_object_mut().expect("an object").remove("id");
    assert_error(&agent.call(&notification).await, 200, -32600, "");
    // `null` is an id.
    assert_executed(&agent.post(&[("a2a-extensions", URI)], with_null).await);
}

#[tokio::test]
async fn batches_and_other_values_are_invalid_requests() {
    let agent = Agent::start(&[]);
    let request = send(&fresh_id(), "hello", json!({}));
    for body in [
        json!([]),
        json!([request]),
        json!([request, request]),
        json!(1),
        json!("x"),
        json!(null),
        json!({}),
        json!({"jsonrpc": "1.0", "id": 1, "method": "message/send", "params": request["params"]}),
        json!({"jsonrpc": 2.0, "id": 1, "method": "message/send", "params": request["params"]}),
        json!({"id": 1, "method": "message/send", "params": request["params"]}),
        json!({"jsonrpc": "2.0", "id": 1, "params": request["params"]}),
        json!({"jsonrpc": "2.0", "id": 1, "method": 7, "params": request["params"]}),
    ] {
        let answer = agent.call(&body).await;
        assert_error(&answer, 200, -32600, "");
        assert_eq!(answer.json()["id"], body.get("id").cloned().unwrap_or_default(), "{body}");
    }
    assert_eq!(agent.executions().await, 0);
    assert_executed(&agent.call(&request).await);
}

#[tokio::test]
async fn a_method_that_is_not_there_is_not_found() {
    let agent = Agent::start(&[]);
    let request = send(&fresh_id(), "hello", json!({}));
    for method in ["", "message", "Message/Send", "message/send ", "sendMessage", "tasks/nope", "message/send/"] {
        let mut other = request.clone();
        other["method"] = json!(method);
        let answer = agent.call(&other).await;
        assert_error(&answer, 200, -32601, "");
        assert_eq!(answer.json()["id"], 1);
    }
    assert_executed(&agent.call(&request).await);
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_and_not_stored() {
    let agent = Agent::start(&["--max-request-bytes", "2000"]);
    let id = fresh_id();
    let request = send(&id, &"x".repeat(3000), json!({}));
    assert_eq!(agent.call(&request).await.status, 413);

    let empty = send(&id, "", json!({})).to_string().len();
    let largest = send(&id, &"x".repeat(2000 - empty), json!({}));
    assert_eq!(largest.to_string().len(), 2000);
    let one_more = send(&id, &"x".repeat(2001 - empty), json!({}));
    assert_eq!(agent.call(&one_more).await.status, 413);
    let first = agent.call(&largest).await;
    assert_executed(&first);
    assert_replays(&agent.call(&largest).await, &first);
}

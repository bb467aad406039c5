//! Who activated the extension, in which header form, and what an agent does with those who did not.

use serde_json::json;

use crate::{
    assert_error, assert_executed, assert_replays,
    support::{Agent, Answer, URI, fresh_id, request, send},
};

const NOT_ACTIVATED: &str = "IDEMPOTENCY_EXTENSION_NOT_ACTIVATED";

async fn post(agent: &Agent, headers: &[(&str, &str)], id: &str) -> Answer {
    agent.post(headers, send(id, "hello", json!({})).to_string()).await
}

#[tokio::test]
async fn every_form_of_the_activation_headers_is_read() {
    let agent = Agent::start(&[]);
    let id = fresh_id();
    let first = post(&agent, &[("a2a-extensions", URI)], &id).await;
    assert_executed(&first);
    let behind = format!("urn:x:1,\t{URI} , urn:x:2");
    let empty_items = format!(" ,,{URI},");
    let forms: &[&[(&str, &str)]] = &[
        &[("A2A-EXTENSIONS", URI)],
        &[("x-a2a-extensions", URI)],
        &[("X-A2A-Extensions", &behind)],
        &[("a2a-extensions", &behind)],
        &[("a2a-extensions", &empty_items)],
        &[("a2a-extensions", "urn:x:1"), ("a2a-extensions", URI)],
        &[("a2a-extensions", "urn:x:1"), ("x-a2a-extensions", URI)],
        &[("x-a2a-extensions", "urn:x:1"), ("a2a-extensions", URI)],
    ];
    for form in forms {
        let replay = post(&agent, form, &id).await;
        assert!(replay.is_replay(), "{form:?}: {}", replay.text());
        assert_eq!(replay.body, first.body);
    }
    assert_eq!(agent.executions().await, 1);
}

#[tokio::test]
async fn the_uri_is_compared_exactly() {
    let agent = Agent::start(&[]);
    let id = fresh_id();
    let slash = format!("{URI}/");
    let upper = URI.to_uppercase();
    let newer = URI.replace("/v1", "/v2");
    let quoted = format!("\"{URI}\"");
    let parameter = format!("{URI};q=1");
    let spaced = format!("urn:x {URI}");
    for other in [&slash, &upper, &newer, &quoted, &parameter, &spaced, "", "urn:x"] {
        assert_error(&post(&agent, &[("a2a-extensions", other)], &id).await, 400, -32600, NOT_ACTIVATED);
    }
    assert_error(&post(&agent, &[("extensions", URI)], &id).await, 400, -32600, NOT_ACTIVATED);
    assert_executed(&post(&agent, &[("a2a-extensions", URI)], &id).await);
}

#[tokio::test]
async fn a_request_without_activation_is_refused_in_its_dialect() {
    let agent = Agent::start(&[]);
    let id = fresh_id();
    for method in ["message/send", "message/stream"] {
        let answer = agent.post(&[], request(method, &id, "hello", json!({})).to_string()).await;
        assert_error(&answer, 400, -32600, NOT_ACTIVATED);
        let data = json!({"code": NOT_ACTIVATED, "missing_extension": URI});
        assert_eq!(answer.json()["error"]["data"], data);
        assert_eq!(answer.json()["id"], 1);
        assert_no_echo(&answer);
    }
    for method in ["SendMessage", "SendStreamingMessage"] {
        let answer = agent.post(&[], request(method, &id, "hello", json!({})).to_string()).await;
        assert_error(&answer, 400, -32008, "");
        let data = json!([{
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "EXTENSION_SUPPORT_REQUIRED",
            "domain": "a2a-protocol.org",
            "metadata": {"code": NOT_ACTIVATED, "missing_extension": URI},
        }]);
        assert_eq!(answer.json()["error"]["data"], data);
        assert_no_echo(&answer);
    }
    assert_eq!(agent.executions().await, 0);
    assert_executed(&post(&agent, &[("a2a-extensions", URI)], &id).await);
}

#[track_caller]
fn assert_no_echo(answer: &Answer) {
    for name in ["a2a-extensions", "x-a2a-extensions"] {
        assert!(!answer.headers.contains_key(name), "{:?}", answer.headers);
    }
}

#[tokio::test]
async fn other_methods_need_no_activation() {
    let agent = Agent::start(&[]);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}).to_string();
    assert_eq!(agent.post(&[], list).await.json()["result"]["totalSize"], 0);
}

#[tokio::test]
async fn where_it_is_not_required_only_activated_requests_are_deduplicated() {
    let agent = Agent::start(&["--required", "false"]);
    let id = fresh_id();
    for _ in 0..2 {
        let answer = post(&agent, &[], &id).await;
        assert_executed(&answer);
        assert_no_echo(&answer);
    }
    assert_eq!(agent.executions().await, 2);

    let first = post(&agent, &[("a2a-extensions", URI)], &id).await;
    assert_executed(&first);
    assert_eq!(first.header("a2a-extensions"), Some(URI));
    assert_replays(&post(&agent, &[("a2a-extensions", URI)], &id).await, &first);
    assert_eq!(agent.executions().await, 3);

    let unkeyed = post(&agent, &[], &id).await;
    assert_executed(&unkeyed);
    assert_ne!(unkeyed.body, first.body);
    assert_eq!(agent.executions().await, 4);
}

#[tokio::test]
async fn where_it_is_not_required_a_request_without_activation_may_have_any_message_id() {
    let agent = Agent::start(&["--required", "false"]);
    for id in ["msg-1", "msg-1", ""] {
        let answer = post(&agent, &[], id).await;
        assert_executed(&answer);
    }
    let mut without = send("x", "hello", json!({}));
    without["params"]["message"].as_object_mut().expect("an object").remove("messageId");
    assert_executed(&agent.post(&[], without.to_string()).await);
    assert_eq!(agent.executions().await, 4);

    let failing = send("x", "hello", json!({"http_status": 503, "rpc_code": -32077}));
    assert_error(&agent.post(&[], failing.to_string()).await, 503, -32077, "");
    let panicking = send("x", "hello", json!({"panic": true}));
    assert_error(&agent.post(&[], panicking.to_string()).await, 500, -32603, "");
    assert_eq!(agent.executions().await, 4);
}

#[tokio::test]
async fn a_handler_cannot_echo_the_extension_to_a_client_that_did_not_activate_it() {
    let agent = Agent::start(&["--required", "false"]);
    let demo = json!({"headers": [["a2a-extensions", format!("urn:x, {URI}")], ["idempotent-replayed", "true"]]});
    let answer = agent.post(&[], send(&fresh_id(), "hello", demo).to_string()).await;
    assert_executed(&answer);
    assert_eq!(answer.header("a2a-extensions"), Some("urn:x"));

    let stream = agent.post(&[], request("message/stream", &fresh_id(), "hello", json!({})).to_string()).await;
    assert_eq!((stream.status.as_u16(), stream.header("content-type")), (200, Some("text/event-stream")));
    assert_no_echo(&stream);
}

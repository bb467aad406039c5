//! A2A 0.3 and 1.0: two spellings of one operation, and of one key.

use serde_json::{Value, json};

use crate::{
    REUSED, assert_error, assert_executed, assert_replays,
    support::{Agent, URI, fresh_id, request},
};

fn named(request: &Value, method: &str) -> Value {
    let mut request = request.clone();
    request["method"] = json!(method);
    request
}

#[tokio::test]
async fn the_same_request_under_its_other_name_is_a_retry() {
    let agent = Agent::start(&[]);
    for (one, other) in [
        ("message/send", "SendMessage"),
        ("SendMessage", "message/send"),
        ("message/stream", "SendStreamingMessage"),
        ("SendStreamingMessage", "message/stream"),
    ] {
        let request = request(one, &fresh_id(), "hello", json!({}));
        let first = agent.call(&request).await;
        assert_eq!((first.status.as_u16(), first.is_replay()), (200, false));
        assert_replays(&agent.call(&named(&request, other)).await, &first);
    }
    assert_eq!(agent.executions().await, 4);
    for method in ["message/send", "message/stream"] {
        assert_eq!(agent.metric(method, "executed").await, 2);
        assert_eq!(agent.metric(method, "replayed").await, 2);
    }
    assert!(!agent.get("/metrics").await.text().contains("SendMessage"), "one operation, one label");
}

#[tokio::test]
async fn a_send_answers_in_the_form_of_its_dialect() {
    let agent = Agent::start(&[]);
    let old = agent.call(&request("message/send", &fresh_id(), "hello", json!({}))).await.json();
    let task = &old["result"];
    assert_eq!(task["kind"], "task");
    assert_eq!(task["status"]["state"], "completed");
    assert_eq!(task["artifacts"][0]["parts"], json!([{"kind": "text", "text": "hello"}]));
    assert!(task["id"].is_string() && task["contextId"].is_string(), "{old}");

    let new = json!({
        "jsonrpc": "2.0", "id": "n", "method": "SendMessage",
        "params": {"message": {"role": "ROLE_USER", "messageId": fresh_id(), "parts": [{"text": "hello"}], "contextId": "c"}},
    });
    let new = agent.call(&new).await.json();
    let task = &new["result"]["task"];
    assert_eq!(new["result"].as_object().expect("an object").len(), 1);
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(task["artifacts"][0]["parts"], json!([{"text": "hello"}]));
    assert_eq!(task["contextId"], "c");
    assert!(task.get("kind").is_none(), "{new}");
}

#[tokio::test]
async fn tasks_are_shown_in_the_form_of_the_dialect_that_asks() {
    let agent = Agent::start(&[]);
    let sent = agent.call(&request("message/send", &fresh_id(), "hello", json!({}))).await.json();
    let id = &sent["result"]["id"];
    let ask = async |method: &str, params: Value| {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        agent.post(&[], request.to_string()).await.json()["result"].clone()
    };
    assert_eq!(ask("tasks/get", json!({"id": id})).await, sent["result"]);
    assert_eq!(ask("GetTask", json!({"id": id})).await["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(ask("tasks/list", json!({})).await, json!({"tasks": [sent["result"]], "totalSize": 1}));
    let new = ask("ListTasks", json!({})).await;
    assert_eq!(new["totalSize"], 1);
    assert_eq!(new["tasks"][0]["status"]["state"], "TASK_STATE_COMPLETED");
}

#[tokio::test]
async fn a_stream_answers_in_the_form_of_its_dialect() {
    let agent = Agent::start(&[]);
    let events = |text: String| -> Vec<Value> {
        let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
        data.map(|line| serde_json::from_str::<Value>(line).expect("JSON")["result"].clone()).collect()
    };
    let answer = agent.call(&request("message/stream", &fresh_id(), "hello", json!({"events": 2}))).await;
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    let old = events(answer.text());
    assert_eq!(old.len(), 4);
    assert_eq!((&old[0]["kind"], &old[0]["status"]["state"]), (&json!("task"), &json!("submitted")));
    for working in &old[1..3] {
        assert_eq!((&working["kind"], &working["status"]["state"]), (&json!("status-update"), &json!("working")));
        assert_eq!((&working["taskId"], &working["final"]), (&old[0]["id"], &json!(false)));
    }
    assert_eq!(old[3]["status"]["message"]["parts"], json!([{"kind": "text", "text": "hello"}]));
    assert_eq!((&old[3]["status"]["state"], &old[3]["final"]), (&json!("completed"), &json!(true)));

    let answer = agent.call(&request("SendStreamingMessage", &fresh_id(), "hello", json!({"events": 0}))).await;
    let new = events(answer.text());
    assert_eq!(new.len(), 2);
    assert_eq!(new[0]["task"]["status"]["state"], "TASK_STATE_SUBMITTED");
    assert_eq!(new[1]["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(new[1]["statusUpdate"]["status"]["message"]["parts"], json!([{"text": "hello"}]));
    assert_eq!(agent.executions().await, 2);
}

#[tokio::test]
async fn another_operation_under_a_used_key_collides() {
    let agent = Agent::start(&[]);
    for (first, second, original, submitted) in [
        ("message/send", "message/stream", "message/send", "message/stream"),
        ("SendMessage", "SendStreamingMessage", "message/send", "message/stream"),
        ("SendStreamingMessage", "message/send", "message/stream", "message/send"),
    ] {
        let id = fresh_id();
        let request = request(first, &id, "hello", json!({}));
        let answer = agent.call(&request).await;
        let collision = agent.call(&named(&request, second)).await;
        assert_error(&collision, 422, -32422, REUSED);
        let hash = idempotent::RequestHash::of(&request["params"]).expect("I-JSON").to_string();
        let data = json!({
            "code": REUSED, "message_id": id,
            "original_request_hash": hash, "submitted_request_hash": hash,
            "original_method": original, "submitted_method": submitted,
        });
        assert_eq!(collision.json()["error"]["data"], data);
        assert_eq!(collision.header("content-type"), Some("application/json"));
        assert_replays(&agent.call(&request).await, &answer);
    }
}

#[tokio::test]
async fn the_served_versions_are_absent_empty_0_3_and_1_0() {
    let agent = Agent::start(&[]);
    let request = request("message/send", &fresh_id(), "hello", json!({}));
    let first = agent.call(&request).await;
    assert_executed(&first);
    for version in ["", "0.3", "1.0"] {
        let header = agent.post(&[("a2a-extensions", URI), ("A2A-Version", version)], request.to_string()).await;
        assert_replays(&header, &first);
        assert_replays(&agent.post_to(&format!("/?A2A-Version={version}"), &request).await, &first);
    }
    assert_replays(&agent.post_to("/?other=9.9", &request).await, &first);
    // The header is the transport's own place for it.
    let both = agent.request(&[("a2a-extensions", URI), ("a2a-version", "1.0")], request.to_string());
    assert_eq!(both.send().await.expect("an answer").status(), 200);

    for version in ["0.2", "0.3.0", "1", "1.1", "2.0", "x", "0.3,1.0"] {
        let header = agent.post(&[("a2a-extensions", URI), ("a2a-version", version)], request.to_string()).await;
        assert_error(&header, 200, -32009, "");
        assert_eq!(header.header("a2a-extensions"), Some(URI));
        assert_error(&agent.post_to(&format!("/?A2A-Version={version}"), &request).await, 200, -32009, "");
    }
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/list"}).to_string();
    assert_error(&agent.post(&[("a2a-version", "0.2")], list).await, 200, -32009, "");
    assert_eq!(agent.executions().await, 1);
}

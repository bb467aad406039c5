//! Whose key it is: callers with different bearer tokens never meet.

use serde_json::{Value, json};

use crate::{
    assert_error, assert_executed, assert_replays,
    support::{Agent, Answer, URI, fresh_id, request, send},
};

async fn call_as(agent: &Agent, authorization: &str, request: &Value) -> Answer {
    agent.post(&[("a2a-extensions", URI), ("authorization", authorization)], request.to_string()).await
}

#[tokio::test]
async fn one_message_id_of_two_callers_is_two_keys() {
    let agent = Agent::start(&[]);
    let request = send(&fresh_id(), "hello", json!({}));
    let nobodys = agent.call(&request).await;
    let alices = call_as(&agent, "Bearer alice", &request).await;
    let bobs = call_as(&agent, "Bearer bob", &request).await;
    for first in [&nobodys, &alices, &bobs] {
        assert_executed(first);
    }
    assert_replays(&agent.call(&request).await, &nobodys);
    assert_replays(&call_as(&agent, "Bearer alice", &request).await, &alices);
    assert_replays(&call_as(&agent, "bearer   bob", &request).await, &bobs);

    // Nor does another's payload collide.
    let mut other = request.clone();
    other["params"]["x"] = json!(1);
    assert_executed(&call_as(&agent, "Bearer carol", &other).await);
    assert_error(&call_as(&agent, "Bearer bob", &other).await, 422, -32422, crate::REUSED);
    assert_eq!(agent.executions().await, 1);
    assert_eq!(agent.executions_seen_with(&[("authorization", "Bearer alice")]).await, 1);
}

#[tokio::test]
async fn tokens_that_look_alike_are_different_callers() {
    let agent = Agent::start(&[]);
    let request = send(&fresh_id(), "hello", json!({}));
    for token in ["alice", "Alice", "alice ;", "alice\u{a0}", "alïce", "al ice", "\"\"", "null", "anonymous"] {
        assert_executed(&call_as(&agent, &format!("Bearer {token}"), &request).await);
    }
    assert_executed(&agent.call(&request).await);
}

#[tokio::test]
async fn no_answer_waits_for_another_callers_execution() {
    let agent = Agent::start(&[]);
    let request = send(&fresh_id(), "slow", json!({"delay_ms": 1000}));
    let (alices, bobs) =
        tokio::join!(call_as(&agent, "Bearer alice", &request), call_as(&agent, "Bearer bob", &request));
    assert_executed(&alices);
    assert_executed(&bobs);
    assert_ne!(alices.body, bobs.body);
}

#[tokio::test]
async fn a_caller_who_is_turned_away_leaves_nothing_behind() {
    let agent = Agent::start(&[]);
    for method in ["message/send", "SendMessage", "message/stream", "SendStreamingMessage"] {
        let request = request(method, &fresh_id(), "hello", json!({}));
        for unauthorized in ["Basic YTpi", "Bearer", "Bearer ", "Bearer    ", "Bearer denied", "token"] {
            let answer = call_as(&agent, unauthorized, &request).await;
            assert_eq!(answer.status, 401, "{unauthorized}");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
            assert_eq!(answer.header("a2a-extensions"), Some(URI));
            assert!(!answer.is_replay());
        }
        assert_eq!(call_as(&agent, "Bearer limited", &request).await.status, 429);
        let answer = call_as(&agent, "Bearer alice", &request).await;
        assert_eq!((answer.status.as_u16(), answer.is_replay()), (200, false));
    }
    assert_eq!(agent.count_rows("SELECT count(*) AS n FROM idempotency_cache"), 4);
    assert_eq!(agent.metric("message/send", "refused").await, 14);

    let request = send(&fresh_id(), "hello", json!({}));
    let headers = [format!("A2A-Extensions: {URI}").into_bytes(), b"Authorization: Bearer \xff\xfe".to_vec()];
    let undecodable = agent.post_raw(&[&headers[0], &headers[1]], &request.to_string()).await;
    assert!(undecodable.status_line.contains(" 401 "), "{}", undecodable.status_line);
}

#[tokio::test]
async fn a_corrected_token_runs() {
    let agent = Agent::start(&[]);
    let request = send(&fresh_id(), "hello", json!({}));
    assert_eq!(call_as(&agent, "Bearer limited", &request).await.status, 429);
    assert_eq!(call_as(&agent, "Bearer denied", &request).await.status, 401);
    let first = call_as(&agent, "Bearer alice", &request).await;
    assert_executed(&first);
    assert_replays(&call_as(&agent, "Bearer alice", &request).await, &first);
}

#[tokio::test]
async fn a_caller_sees_own_tasks_only() {
    let agent = Agent::start(&[]);
    let sent = call_as(&agent, "Bearer alice", &send(&fresh_id(), "hello", json!({}))).await.json();
    let get = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": sent["result"]["id"]}});
    assert_eq!(call_as(&agent, "Bearer alice", &get).await.json()["result"], sent["result"]);
    assert_error(&call_as(&agent, "Bearer bob", &get).await, 200, -32001, "");
    assert_error(&agent.call(&get).await, 200, -32001, "");
    assert_eq!(call_as(&agent, "Bearer denied", &get).await.status, 401);
    assert_eq!(agent.executions_seen_with(&[("authorization", "Bearer bob")]).await, 0);
    assert_eq!(agent.executions_seen_with(&[("authorization", "Bearer alice")]).await, 1);
    assert_eq!(agent.executions().await, 0);

    let nowhere = json!({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "no such task"}});
    assert_error(&agent.call(&nowhere).await, 200, -32001, "");
    let misfit = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {}});
    assert_error(&agent.call(&misfit).await, 200, -32602, "");
}

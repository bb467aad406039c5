//! A store that fails is never taken for one that holds nothing.

use std::time::{Duration, Instant};

use diesel::connection::SimpleConnection as _;
use serde_json::json;

use crate::{
    assert_error, assert_executed, assert_replays, eventually,
    support::{Agent, URI, fresh_id, send},
};

const CORRUPT: &str = "IDEMPOTENCY_STORE_CORRUPT";
const UNAVAILABLE: &str = "IDEMPOTENCY_STORE_UNAVAILABLE";

/// Ways to ruin a row of `idempotency_cache`.
const RUINS: [&str; 15] = [
    "request_hash = 'no hash'",
    "request_hash = upper(request_hash)",
    "request_hash = x'ff'",
    "method = x'ff'",
    "response_status = 0",
    "response_status = 70000",
    "response_status = 'many'",
    "response_headers = 'no JSON'",
    "response_headers = x'ff'",
    "response_headers = '{\"x y\":[\"1\"]}'",
    "body_kind = 9",
    "body_kind = 'whole'",
    "body_chunks = 3",
    "inserted_at = -1",
    "inserted_at = 'long ago'",
];

#[tokio::test]
async fn a_corrupt_row_is_loud_and_never_executed_over_while_the_agent_runs() {
    let agent = Agent::start(&[]);
    for ruin in RUINS {
        let id = fresh_id();
        let request = send(&id, "hello", json!({}));
        let first = agent.call(&request).await;
        assert_executed(&first);
        let before = agent.executions().await;
        agent.execute(&format!(
            "CREATE TABLE whole AS SELECT * FROM idempotency_cache WHERE message_id = '{id}';
             UPDATE idempotency_cache SET {ruin} WHERE message_id = '{id}';"
        ));
        for _ in 0..2 {
            let answer = agent.call(&request).await;
            assert_eq!((ruin, answer.status.as_u16()), (ruin, 500), "{}", answer.text());
            assert_error(&answer, 500, -32603, CORRUPT);
            assert_eq!(answer.json()["error"]["data"], json!({"code": CORRUPT, "message_id": id}));
            assert_eq!(answer.header("a2a-extensions"), Some(URI));
        }
        assert_eq!(agent.executions().await, before, "{ruin}");
        // Mended, it is what it was.
        agent.execute("REPLACE INTO idempotency_cache SELECT * FROM whole; DROP TABLE whole;");
        assert_replays(&agent.call(&request).await, &first);
    }
}

#[tokio::test]
async fn a_corrupt_row_is_loud_after_a_restart() {
    let mut agent = Agent::start(&[]);
    let mut requests = Vec::new();
    for ruin in RUINS {
        let id = fresh_id();
        let request = send(&id, "hello", json!({}));
        assert_executed(&agent.call(&request).await);
        requests.push((id, request, ruin));
    }
    let whole = send(&fresh_id(), "hello", json!({}));
    let first = agent.call(&whole).await;
    agent.kill();
    for (id, _, ruin) in &requests {
        agent.execute(&format!("UPDATE idempotency_cache SET {ruin} WHERE message_id = '{id}'"));
    }
    agent.restart();
    for (_, request, ruin) in &requests {
        let answer = agent.call(request).await;
        assert_eq!((*ruin, answer.status.as_u16(), answer.code().as_str()), (*ruin, 500, CORRUPT));
    }
    assert_eq!(agent.executions().await, 16);
    assert_replays(&agent.call(&whole).await, &first);
}

#[tokio::test]
async fn a_corrupt_claim_is_not_taken_over() {
    let mut agent = Agent::start(&["--lease-ms", "60000"]);
    for ruin in [
        "request_hash = 'no hash'",
        "request_hash = x'ff'",
        "method = x'ff'",
        "lease_until = 'soon'",
        "lease_until = -1",
        "claimed_at = 'then'",
        "on_takeover = 7",
    ] {
        let id = fresh_id();
        let request = send(&id, "hello", json!({"delay_ms": 60_000}));
        let running = tokio::spawn(agent.request(&[("a2a-extensions", URI)], request.to_string()).send());
        agent.until_claimed().await;
        agent.kill();
        running.await.expect("no panic").expect_err("the agent is gone");
        agent.execute(&format!("UPDATE idempotency_claim SET {ruin}"));
        agent.restart();
        let answer = agent.call(&request).await;
        assert_eq!((ruin, answer.status.as_u16(), answer.code().as_str()), (ruin, 500, CORRUPT));
        agent.execute("DELETE FROM idempotency_claim");
    }
    assert_eq!(agent.executions().await, 0);
}

#[tokio::test]
async fn a_store_that_cannot_be_written_refuses_and_recovers() {
    let agent = Agent::start(&[]);
    let known = send(&fresh_id(), "hello", json!({}));
    let first = agent.call(&known).await;
    let mut other_program = agent.connect();
    other_program.batch_execute("BEGIN IMMEDIATE").expect("the lock");

    let id = fresh_id();
    let request = send(&id, "hello", json!({}));
    let answer = agent.call(&request).await;
    assert_error(&answer, 503, -32503, UNAVAILABLE);
    assert_eq!(answer.json()["error"]["data"], json!({"code": UNAVAILABLE, "message_id": id}));
    let seconds = answer.header("retry-after").and_then(|value| value.parse::<u64>().ok());
    assert!(seconds.is_some_and(|seconds| seconds > 0), "{:?}", answer.headers);
    assert_eq!(answer.header("a2a-extensions"), Some(URI));
    assert_replays(&agent.call(&known).await, &first);

    other_program.batch_execute("ROLLBACK").expect("the lock is given back");
    let executed = eventually(&agent, &request, |answer| answer.status == 200).await;
    assert_executed(&executed);
    assert_replays(&agent.call(&request).await, &executed);
    assert_eq!(agent.executions().await, 2);
}

#[tokio::test]
async fn a_store_that_cannot_be_read_is_no_store_that_holds_nothing() {
    let agent = Agent::start(&[]);
    let known = send(&fresh_id(), "hello", json!({}));
    let first = agent.call(&known).await;
    for table in ["idempotency_cache", "idempotency_claim", "idempotency_ledger"] {
        agent.execute(&format!("ALTER TABLE {table} RENAME TO elsewhere"));
        let request = send(&fresh_id(), "hello", json!({}));
        assert_error(&agent.call(&request).await, 503, -32503, UNAVAILABLE);
        let retry = agent.call(&known).await;
        if table == "idempotency_cache" {
            assert_error(&retry, 503, -32503, UNAVAILABLE);
        } else {
            assert_replays(&retry, &first);
        }
        agent.execute(&format!("ALTER TABLE elsewhere RENAME TO {table}"));
        assert_replays(&agent.call(&known).await, &first);
        assert_executed(&eventually(&agent, &request, |answer| answer.status == 200).await);
    }
    assert_eq!(agent.executions().await, 4);
}

#[tokio::test]
async fn an_answer_whose_write_fails_is_replayed_from_memory_and_stored_later() {
    let agent = Agent::start(&[]);
    let request = send(&fresh_id(), "hello", json!({"delay_ms": 2000}));
    let running = tokio::spawn(agent.request(&[("a2a-extensions", URI)], request.to_string()).send());
    agent.until_claimed().await;
    let mut other_program = agent.connect();
    other_program.batch_execute("BEGIN IMMEDIATE").expect("the lock");
    let first = crate::Answer::read(running.await.expect("no panic").expect("an answer")).await.expect("whole");
    assert_executed(&first);
    assert_replays(&agent.call(&request).await, &first);
    assert_eq!(agent.count_rows("SELECT count(*) AS n FROM idempotency_cache"), 0);
    let text = agent.get("/metrics").await.text();
    assert!(!text.contains("idempotent_store_failures_total 0\n"), "{text}");

    other_program.batch_execute("ROLLBACK").expect("the lock is given back");
    let deadline = Instant::now() + Duration::from_secs(30);
    while agent.count_rows("SELECT count(*) AS n FROM idempotency_cache") == 0 {
        assert!(Instant::now() < deadline, "it is never stored");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let mut agent = agent;
    agent.kill();
    agent.restart();
    assert_replays(&agent.call(&request).await, &first);
    assert_eq!(agent.executions().await, 1);
}

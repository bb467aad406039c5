//! What the agent serves beside its methods, and the first thing it prints.

use std::collections::BTreeSet;

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::{
    assert_executed,
    support::{Agent, URI, fresh_id, send},
};

const CARD: &str = "/.well-known/agent-card.json";

#[tokio::test]
async fn the_card_declares_the_extension_with_the_params_of_this_run() {
    for (flags, expected) in [
        (&[][..], json!({"required": true, "ttl": 86_400, "entries": 100_000})),
        (
            &["--required", "false", "--ttl-seconds", "7", "--max-entries", "12345678"][..],
            json!({"required": false, "ttl": 7, "entries": 12_345_678}),
        ),
    ] {
        let agent = Agent::start(flags);
        let answer = agent.get(CARD).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        let card = answer.json();
        let extensions = card["capabilities"]["extensions"].as_array().expect("a list");
        let [ours] = extensions.as_slice() else { panic!("one extension: {card}") };
        assert_eq!(ours["uri"], URI);
        assert!(ours["description"].is_string());
        assert_eq!(ours["required"], expected["required"]);
        let params = json!({
            "ttl_seconds": expected["ttl"], "canonicalization": "jcs-rfc8785", "hash_algorithm": "sha-256",
            "max_cache_entries": expected["entries"],
        });
        assert_eq!(ours["params"], params);
        assert_eq!(card["capabilities"]["streaming"], true);
    }
}

#[tokio::test]
async fn a_card_that_has_not_changed_is_not_sent_again() {
    let agent = Agent::start(&[]);
    let card = agent.get(CARD).await;
    let tag = card.header("etag").expect("a tag");
    let again = |tag: String| {
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        client.get(format!("{}{CARD}", agent.url)).header("if-none-match", tag).send()
    };
    let same = again(tag.to_owned()).await.expect("an answer");
    assert_eq!(same.status(), StatusCode::NOT_MODIFIED);
    assert_eq!(same.bytes().await.expect("a body").len(), 0);
    assert_eq!(again("\"other\"".to_owned()).await.expect("an answer").status(), StatusCode::OK);
    let other = Agent::start(&["--ttl-seconds", "9"]);
    assert_ne!(other.get(CARD).await.header("etag"), Some(tag));
}

#[tokio::test]
async fn the_agent_is_healthy_and_knows_its_paths() {
    let agent = Agent::start(&[]);
    assert_eq!(agent.get("/healthz").await.status, 200);
    assert_eq!(agent.get("/nowhere").await.status, 404);
    assert_eq!(agent.get("/").await.status, 405);
}

#[tokio::test]
async fn metrics_count_what_became_of_each_request_and_name_nobody() {
    let agent = Agent::start(&[]);
    assert_eq!(agent.get("/metrics").await.status, 200);
    let id = fresh_id();
    let request = send(&id, "hello", json!({}));
    let headers: &[(&str, &str)] = &[("a2a-extensions", URI), ("authorization", "Bearer s3cret-principal")];
    for _ in 0..4 {
        agent.post(headers, request.to_string()).await;
    }
    agent.post(headers, send(&id, "other", json!({})).to_string()).await;
    agent.post(headers, send("x", "hello", json!({})).to_string()).await;
    agent.post(&[], request.to_string()).await;
    for (outcome, count) in [("executed", 1), ("replayed", 3), ("collision", 1), ("refused", 2), ("in_progress", 0)] {
        assert_eq!(agent.metric("message/send", outcome).await, count, "{outcome}");
    }
    let answer = agent.get("/metrics").await;
    assert!(answer.header("content-type").is_some_and(|value| value.starts_with("text/plain")));
    let text = answer.text();
    assert!(text.contains("# TYPE idempotent_requests_total counter\n"), "{text}");
    for secret in [id.as_str(), "s3cret", "hello"] {
        assert!(!text.contains(secret), "{text}");
    }
    let lines = text.lines().filter_map(|line| line.strip_prefix("idempotent_requests_total{"));
    let labels: BTreeSet<&str> = lines.filter_map(|line| line.split_once('}')).map(|(labels, _)| labels).collect();
    let outcomes = ["executed", "replayed", "collision", "in_progress", "refused"];
    let expected = outcomes.map(|outcome| format!("method=\"message/send\",outcome=\"{outcome}\""));
    assert_eq!(labels, expected.iter().map(String::as_str).collect());
}

#[tokio::test]
async fn tasks_list_counts_executions_and_nothing_else() {
    let agent = Agent::start(&[]);
    for round in 1..=3 {
        let request = send(&fresh_id(), "hello", json!({}));
        assert_executed(&agent.call(&request).await);
        agent.call(&request).await;
        agent.call(&send(&fresh_id(), "hello", json!({"http_status": 500}))).await;
        agent.call(&send(&fresh_id(), "hello", json!({"panic": true}))).await;
        agent.call(&send("x", "hello", json!({}))).await;
        assert_eq!(agent.executions().await, round);
    }
    assert_eq!(agent.count_rows("SELECT count(*) AS n FROM outbox"), 3);
    assert_eq!(agent.count_rows("SELECT count(*) AS n FROM tasks"), 3);
    let page = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/list", "params": {"pageSize": 2}});
    let page = agent.post(&[], page.to_string()).await.json();
    assert_eq!((page["result"]["tasks"].as_array().map(Vec::len), &page["result"]["totalSize"]), (Some(2), &json!(3)));
}

#[tokio::test]
async fn a_notification_of_a_method_that_only_reads_is_accepted_without_a_word() {
    let agent = Agent::start(&[]);
    let answer = agent.post(&[], json!({"jsonrpc": "2.0", "method": "tasks/list"}).to_string()).await;
    assert_eq!((answer.status.as_u16(), answer.body.len()), (204, 0));
}

#[tokio::test]
async fn the_curl_lines_it_prints_are_a_request_and_its_replay() {
    let agent = Agent::start(&[]);
    let lines = agent.printed(2);
    assert_eq!(lines[0], lines[1]);
    let curl = &lines[0];
    assert!(curl.starts_with("curl ") && curl.contains(&agent.url) && curl.contains(URI), "{curl}");
    let body = curl.split_once("-d '").expect("a body").1.trim_end_matches('\'');
    let request: Value = serde_json::from_str(body).expect("JSON");
    let (first, second) = (agent.call(&request).await, agent.call(&request).await);
    assert_executed(&first);
    crate::assert_replays(&second, &first);
}

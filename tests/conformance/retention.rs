//! How long, and how many: TTL and bound, from flags and from the spec's variables.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{
    assert_executed, assert_replays, eventually,
    support::{Agent, fresh_id, send},
};

fn hello() -> Value {
    send(&fresh_id(), "hello", json!({}))
}

#[tokio::test]
async fn an_entry_lives_for_more_than_its_ttl_and_not_much_longer() {
    let agent = Agent::start(&["--ttl-seconds", "2"]);
    let request = hello();
    let begun = Instant::now();
    let first = agent.call(&request).await;
    assert_executed(&first);
    let again = eventually(&agent, &request, |answer| !answer.is_replay()).await;
    assert_executed(&again);
    // `inserted_at + ttl < now` in whole seconds: between two and three of them.
    assert!(begun.elapsed() > Duration::from_secs(2), "{:?}", begun.elapsed());
    assert_eq!(agent.executions().await, 2);
}

#[tokio::test]
async fn an_entry_at_the_boundary_still_answers() {
    let agent = Agent::start(&["--ttl-seconds", "100"]);
    let (young, old) = (hello(), hello());
    let first = agent.call(&young).await;
    agent.call(&old).await;
    let aged = |request: &Value, seconds: i64| {
        let id = request["params"]["message"]["messageId"].as_str().expect("text").to_owned();
        agent.execute(&format!(
            "UPDATE idempotency_cache SET inserted_at = inserted_at - {seconds} WHERE message_id = '{id}'"
        ));
    };
    aged(&young, 90);
    aged(&old, 102);
    assert_replays(&agent.call(&young).await, &first);
    assert_executed(&agent.call(&old).await);
    assert_eq!(agent.executions().await, 3);
}

#[tokio::test]
async fn what_has_expired_is_swept_without_anybody_asking() {
    let agent = Agent::start(&["--ttl-seconds", "1"]);
    for _ in 0..5 {
        assert_executed(&agent.call(&hello()).await);
    }
    let deadline = Instant::now() + Duration::from_secs(30);
    while agent.count_rows("SELECT count(*) AS n FROM idempotency_cache") > 0 {
        assert!(Instant::now() < deadline, "entries stay");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(agent.executions().await, 5, "tasks are the agent's own");
}

#[tokio::test]
async fn the_least_recently_used_entry_goes_first_and_a_replay_is_a_use() {
    let agent = Agent::start(&["--max-entries", "3"]);
    let requests: Vec<Value> = (0..4).map(|_| hello()).collect();
    let mut answers = Vec::new();
    for request in &requests[..3] {
        answers.push(agent.call(request).await);
    }
    // The oldest is used again, so the second is the one to go.
    assert_replays(&agent.call(&requests[0]).await, &answers[0]);
    answers.push(agent.call(&requests[3]).await);
    let evicted = requests[1]["params"]["message"]["messageId"].as_str().expect("text");
    let left = format!("SELECT count(*) AS n FROM idempotency_cache WHERE message_id = '{evicted}'");
    let deadline = Instant::now() + Duration::from_secs(5);
    while agent.count_rows(&left) > 0 {
        assert!(Instant::now() < deadline, "nothing is evicted");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for kept in [0, 2, 3] {
        assert_replays(&agent.call(&requests[kept]).await, &answers[kept]);
    }
    assert_eq!(agent.count_rows("SELECT count(*) AS n FROM idempotency_cache"), 3);
    // An evicted key is a new one.
    let again = agent.call(&requests[1]).await;
    assert_executed(&again);
    assert_ne!(again.body, answers[1].body);
    assert_eq!(agent.executions().await, 5);
}

#[tokio::test]
async fn an_operation_that_runs_is_not_evicted() {
    let agent = Agent::start(&["--max-entries", "1"]);
    let slow = send(&fresh_id(), "slow", json!({"delay_ms": 4000}));
    let first = tokio::spawn(agent.request(&[("a2a-extensions", idempotent::extension::URI)], slow.to_string()).send());
    agent.until_claimed().await;
    for _ in 0..5 {
        assert_executed(&agent.call(&hello()).await);
    }
    let duplicate = agent.call(&slow).await;
    assert!(duplicate.is_replay(), "{}", duplicate.text());
    assert_eq!(first.await.expect("no panic").expect("an answer").bytes().await.expect("a body"), duplicate.body);
    assert_eq!(agent.executions().await, 6);
}

async fn declared(agent: &Agent) -> (Value, Value) {
    let card = agent.get("/.well-known/agent-card.json").await.json();
    let params = &card["capabilities"]["extensions"][0]["params"];
    (params["ttl_seconds"].clone(), params["max_cache_entries"].clone())
}

#[tokio::test]
async fn variables_are_read_flags_win_and_empty_is_unset() {
    const TTL: &str = "AIWG_IDEMPOTENCY_TTL";
    const ENTRIES: &str = "AIWG_IDEMPOTENCY_MAX_ENTRIES";
    type Case<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)], (u64, u64));
    let cases: &[Case<'_>] = &[
        (&[], &[], (86_400, 100_000)),
        (&[], &[(TTL, ""), (ENTRIES, "")], (86_400, 100_000)),
        (&[], &[(TTL, "60"), (ENTRIES, "7")], (60, 7)),
        (&["--ttl-seconds", "5"], &[(TTL, "60"), (ENTRIES, "7")], (5, 7)),
        (&["--max-entries", "6"], &[(TTL, "60"), (ENTRIES, "7")], (60, 6)),
        (&["--ttl-seconds", "5", "--max-entries", "6"], &[(TTL, "0"), (ENTRIES, "many")], (5, 6)),
    ];
    for (flags, env, (ttl, entries)) in cases {
        let agent = Agent::start_with(flags, env);
        assert_eq!(declared(&agent).await, (json!(ttl), json!(entries)), "{flags:?} {env:?}");
    }
}

#[tokio::test]
async fn variables_take_effect() {
    let agent = Agent::start_with(&[], &[("AIWG_IDEMPOTENCY_TTL", "1"), ("AIWG_IDEMPOTENCY_MAX_ENTRIES", "2")]);
    let request = hello();
    assert_executed(&agent.call(&request).await);
    let again = eventually(&agent, &request, |answer| !answer.is_replay()).await;
    assert_executed(&again);
}

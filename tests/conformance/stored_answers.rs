//! What the operation answered is what every retry gets: failures, panics, answers too large to keep, answers to come.

use serde_json::json;

use crate::{
    REUSED, assert_error, assert_executed, assert_replays, eventually,
    support::{Agent, Answer, URI, fresh_id, request, send},
};

const IN_PROGRESS: &str = "IDEMPOTENCY_REQUEST_IN_PROGRESS";
const NOT_RETAINED: &str = "IDEMPOTENCY_RESPONSE_NOT_RETAINED";

#[tokio::test]
async fn a_failed_operation_is_replayed_and_does_not_run_again() {
    let agent = Agent::start(&[]);
    let mut sent = Vec::new();
    for (status, rpc_code) in [(400, None), (401, Some(-32050)), (404, Some(-32001)), (409, None), (422, Some(-32422))]
        .into_iter()
        .chain([(429, None), (500, Some(-32603)), (502, None), (503, Some(-32503)), (504, None), (200, Some(7))])
    {
        for method in ["message/send", "message/stream"] {
            let mut demo = json!({"http_status": status});
            if let Some(code) = rpc_code {
                demo["rpc_code"] = json!(code);
            }
            let request = request(method, &fresh_id(), "hello", demo);
            let first = agent.call(&request).await;
            assert_error(&first, status, rpc_code.unwrap_or(-32000), "");
            assert_eq!(first.header("content-type"), Some("application/json"));
            assert_replays(&agent.call(&request).await, &first);
            sent.push((request, first));
        }
    }
    assert_eq!(agent.executions().await, 0, "a failure has no effects");
    assert_eq!(agent.metric("message/send", "executed").await, 11);
    assert_eq!(agent.metric("message/send", "replayed").await, 11);
    let mut agent = agent;
    agent.restart();
    for (request, first) in &sent {
        assert_replays(&agent.call(request).await, first);
    }
}

#[tokio::test]
async fn every_status_is_replayed_with_what_goes_out_under_it() {
    let agent = Agent::start(&[]);
    for status in [201, 202, 204, 303, 304, 418, 599] {
        let demo = json!({"http_status": status, "headers": [["location", "/tasks/1"]]});
        let request = send(&fresh_id(), "hello", demo).to_string();
        let activation = format!("A2A-Extensions: {URI}").into_bytes();
        let first = agent.post_raw(&[&activation], &request).await;
        assert!(first.status_line.starts_with(&format!("HTTP/1.1 {status}")), "{}", first.status_line);
        let replay = agent.post_raw(&[&activation], &request).await;
        assert_eq!(replay.all("idempotent-replayed"), [b"true"]);
        let own = ["date", "idempotent-replayed"];
        assert_eq!(replay.without(&own), first.without(&own));
    }
}

#[tokio::test]
async fn a_panic_is_an_answer() {
    let mut agent = Agent::start(&[]);
    let request = send(&fresh_id(), "hello", json!({"panic": true, "delay_ms": 10}));
    let first = agent.call(&request).await;
    assert_error(&first, 500, -32603, "");
    assert_eq!(first.json()["id"], 1);
    assert_eq!(first.header("a2a-extensions"), Some(URI));
    assert!(!first.text().contains("demo operation"), "a panic's text is for the log");
    assert_replays(&agent.call(&request).await, &first);
    agent.kill();
    agent.restart();
    assert_replays(&agent.call(&request).await, &first);
    assert_eq!(agent.executions().await, 0);
    assert_executed(&agent.call(&send(&fresh_id(), "hello", json!({}))).await);
}

#[tokio::test]
async fn a_stream_is_replayed_event_by_event() {
    let mut agent = Agent::start(&[]);
    for demo in [json!({"events": 3, "event_interval_ms": 5}), json!({"panic": true})] {
        let request = request("message/stream", &fresh_id(), "hello", demo);
        let first = agent.call(&request).await;
        assert_eq!(first.header("content-type"), Some("text/event-stream"));
        assert_replays(&agent.call(&request).await, &first);
        agent.kill();
        agent.restart();
        assert_replays(&agent.call(&request).await, &first);
    }
    assert_eq!(agent.executions().await, 1);
}

#[tokio::test]
async fn an_answer_that_is_too_large_leaves_a_tombstone() {
    let mut agent = Agent::start(&["--max-response-bytes", "2000"]);
    let succeeding = send(&fresh_id(), "hello", json!({"response_bytes": 3000}));
    let failing = send(&fresh_id(), "hello", json!({"http_status": 503, "headers": [["x-a", "1"]]}));
    let first = agent.call(&succeeding).await;
    assert_executed(&first);
    assert!(first.body.len() > 3000, "the first client gets all of it");
    let small = agent.call(&failing).await;
    assert_error(&small, 503, -32000, "");

    for round in 0..2 {
        let retry = agent.call(&succeeding).await;
        assert_error(&retry, 409, -32409, NOT_RETAINED);
        let data = json!({
            "code": NOT_RETAINED, "message_id": succeeding["params"]["message"]["messageId"],
            "response_status": 200, "response_bytes": first.body.len(),
        });
        assert_eq!(retry.json()["error"]["data"], data);
        assert_eq!(retry.header("a2a-extensions"), Some(URI));
        assert_replays(&agent.call(&failing).await, &small);
        let mut other = succeeding.clone();
        other["params"]["x"] = json!(1);
        assert_error(&agent.call(&other).await, 422, -32422, REUSED);
        if round == 0 {
            agent.kill();
            agent.restart();
        }
    }
    assert_eq!(agent.executions().await, 1);
    assert_eq!(agent.count_rows("SELECT count(*) AS n FROM outbox"), 1);
}

#[tokio::test]
async fn the_largest_answer_that_is_kept_is_as_large_as_promised() {
    let agent = Agent::start(&[]);
    let id = fresh_id();
    let length = agent.call(&send(&id, "x", json!({"response_bytes": 1000}))).await.body.len();
    for (limit, kept) in [(length, true), (length - 1, false)] {
        let agent = Agent::start(&["--max-response-bytes", &limit.to_string()]);
        let request = send(&id, "x", json!({"response_bytes": 1000}));
        let first = agent.call(&request).await;
        assert_eq!(first.body.len(), length);
        let retry = agent.call(&request).await;
        match kept {
            true => assert_replays(&retry, &first),
            false => assert_error(&retry, 409, -32409, NOT_RETAINED),
        }
    }
}

#[tokio::test]
async fn a_large_answer_is_replayed_whole() {
    let agent = Agent::start(&[]);
    let request = send(&fresh_id(), "hello", json!({"response_bytes": 5_000_000}));
    let first = agent.call(&request).await;
    assert_executed(&first);
    assert_replays(&agent.call(&request).await, &first);
}

#[tokio::test]
async fn a_duplicate_that_has_waited_long_enough_is_told_to_come_back() {
    let agent = Agent::start(&["--wait-ms", "50"]);
    let id = fresh_id();
    let request = send(&id, "slow", json!({"delay_ms": 3000}));
    let first = tokio::spawn(agent.request(&[("a2a-extensions", URI)], request.to_string()).send());
    agent.until_claimed().await;

    let duplicate = agent.call(&request).await;
    assert_error(&duplicate, 409, -32409, IN_PROGRESS);
    let data = duplicate.json()["error"]["data"].clone();
    let seconds = duplicate.header("retry-after").expect("a header").parse::<u64>().expect("seconds");
    assert_eq!(data, json!({"code": IN_PROGRESS, "message_id": id, "retry_after_seconds": seconds}));
    assert_eq!(duplicate.header("a2a-extensions"), Some(URI));
    let metric = agent.metric("message/send", "in_progress").await;
    assert_eq!(metric, 1);

    let first = Answer::read(first.await.expect("no panic").expect("an answer")).await.expect("a whole answer");
    assert_executed(&first);
    assert_replays(&agent.call(&request).await, &first);
    assert_eq!(agent.executions().await, 1);
}

#[tokio::test]
async fn a_duplicate_waits_for_the_first_and_another_payload_does_not() {
    let agent = Agent::start(&[]);
    let id = fresh_id();
    let request = send(&id, "slow", json!({"delay_ms": 3000}));
    let first = tokio::spawn(agent.request(&[("a2a-extensions", URI)], request.to_string()).send());
    agent.until_claimed().await;
    let mut other = request.clone();
    other["params"]["x"] = json!(1);
    let collision = agent.call(&other).await;
    assert_error(&collision, 422, -32422, REUSED);
    let mut stream = request.clone();
    stream["method"] = json!("message/stream");
    assert_error(&agent.call(&stream).await, 422, -32422, REUSED);
    assert_eq!(agent.count_rows("SELECT count(*) AS n FROM idempotency_claim"), 1, "the first still runs");

    let duplicate = agent.call(&request).await;
    let first = Answer::read(first.await.expect("no panic").expect("an answer")).await.expect("a whole answer");
    assert_replays(&duplicate, &first);
    assert_eq!(agent.executions().await, 1);
}

#[tokio::test]
async fn fifty_at_once_are_one_execution_and_forty_nine_replays() {
    let agent = Agent::start(&[]);
    let request = send(&fresh_id(), "hello", json!({"delay_ms": 100}));
    let answers = futures_util::future::join_all((0..50).map(|_| agent.call(&request))).await;
    let firsts: Vec<_> = answers.iter().filter(|answer| !answer.is_replay()).collect();
    let [first] = firsts.as_slice() else { panic!("{} say that they are the first", firsts.len()) };
    assert_executed(first);
    answers.iter().filter(|answer| answer.is_replay()).for_each(|replay| assert_replays(replay, first));
    assert_eq!(agent.executions().await, 1);
    assert_eq!(agent.metric("message/send", "executed").await, 1);
    assert_eq!(agent.metric("message/send", "replayed").await, 49);
}

#[tokio::test]
async fn a_client_that_goes_away_does_not_stop_its_operation() {
    let agent = Agent::start(&[]);
    let request = send(&fresh_id(), "slow", json!({"delay_ms": 300}));
    let gone = tokio::spawn(agent.request(&[("a2a-extensions", URI)], request.to_string()).send());
    agent.until_claimed().await;
    gone.abort();
    let answer = agent.call(&request).await;
    assert_eq!((answer.status.as_u16(), answer.is_replay()), (200, true));
    assert_eq!(agent.executions().await, 1);
}

#[tokio::test]
async fn a_crash_in_the_worst_place_is_run_again_after_its_lease() {
    let mut agent = Agent::start(&["--lease-ms", "300"]);
    let request = send(&fresh_id(), "hello", json!({"abort": true}));
    agent.try_call(&request).await.expect_err("the process ends before it answers");
    assert_eq!(agent.exit_code(std::time::Duration::from_secs(60)), None, "it was a signal");
    agent.restart();
    let first = agent.call(&request).await;
    assert_executed(&first);
    assert_replays(&agent.call(&request).await, &first);
    assert_eq!(agent.executions().await, 1);
    let other = send(request["params"]["message"]["messageId"].as_str().expect("text"), "other", json!({}));
    eventually(&agent, &other, |answer| answer.status == 422).await;
}

//! A stream is recorded while it is sent: whoever asks again, during or after it, sees the same bytes.

#[allow(unreachable_pub, reason = "a module of several programs")]
mod support;

#[path = "support/inspection.rs"]
mod inspection;
#[path = "support/wire.rs"]
mod wire;

use std::time::Duration;

use futures_util::future::join_all;
use inspection::{Rows, WriteLock, claims, number, running, until};
use serde_json::{Value, json};
use support::{Agent, Answer, URI, fresh_id, send, stream};
use tokio::time::timeout;
use wire::{Ended, Wire};

/// Much longer than anything here takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(90);

async fn answer(agent: &Agent, request: &Value) -> Answer {
    timeout(PATIENCE, agent.call(request)).await.expect("nothing waits for ever")
}

/// The JSON of each `data:` line.
fn events(answer: &Answer) -> Vec<Value> {
    let text = answer.text();
    let lines = text.lines().filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_str(line.strip_prefix("data: ").expect("a data line")).expect("JSON")).collect()
}

#[tokio::test]
async fn a_duplicate_attaches_to_a_running_stream_and_sees_it_from_its_first_byte_to_its_end() {
    let agent = Agent::start(&[]);
    let request = stream(&fresh_id(), "live", json!({"events": 60, "event_interval_ms": 50}));
    let mut first = Wire::send(&agent, &request).await;
    first.read_until("working").await;
    // At different moments; each of them reads what has been before any of them can read the end.
    let mut attached = Vec::new();
    for _ in 0..4 {
        let mut wire = Wire::send(&agent, &request).await;
        wire.read_until("working").await;
        assert!(wire.text().contains("submitted"), "from the first event on");
        attached.push(wire);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(claims(agent.database(), 1), 1, "the stream still runs");

    assert_eq!(timeout(PATIENCE, first.read_to_end()).await.expect("an end"), Ended::Whole);
    assert!(first.text().contains("completed") && !first.text().to_lowercase().contains("idempotent-replayed"));
    for mut wire in attached {
        assert_eq!(timeout(PATIENCE, wire.read_to_end()).await.expect("an end"), Ended::Whole);
        assert_eq!(wire.body(), first.body());
        assert!(wire.text().to_lowercase().contains("idempotent-replayed: true"), "marked as a replay");
    }
    let late = answer(&agent, &request).await;
    assert!(late.is_replay() && late.headers["content-type"] == "text/event-stream");
    assert_eq!((late.body.to_vec(), events(&late).len()), (first.body(), 62));
    assert_eq!(Rows::of_all_callers(agent.database()), Rows::of(1));
}

#[tokio::test]
async fn another_payload_or_operation_cannot_attach() {
    let agent = Agent::start(&[]);
    let id = fresh_id();
    let mut first = Wire::send(&agent, &stream(&id, "mine", json!({"delay_ms": 120_000}))).await;
    first.read_until("submitted").await;
    for other in [stream(&id, "yours", json!({"delay_ms": 120_000})), send(&id, "mine", json!({"delay_ms": 120_000}))] {
        let collision = answer(&agent, &other).await;
        assert_eq!(collision.status, 422);
        assert_eq!(collision.code(), "IDEMPOTENCY_KEY_REUSED_WITH_DIFFERENT_PAYLOAD");
        assert!(!collision.text().contains("mine"));
    }
    assert_eq!(claims(agent.database(), 1), 1, "the stream still runs");
}

#[tokio::test]
async fn in_another_process_a_duplicate_waits_for_the_end_and_is_replayed() {
    let owner = Agent::start(&[]);
    let other = Agent::start_on(owner.database(), &[]);
    let request =
        stream(&fresh_id(), "far", json!({"events": 20, "event_interval_ms": 50, "response_bytes": 3_000_000}));
    let (first, duplicates) = tokio::join!(answer(&owner, &request), async {
        running(&owner, 1).await;
        join_all((0..3).map(|_| answer(&other, &request))).await
    });
    for duplicate in duplicates {
        assert!(duplicate.is_replay());
        assert!(duplicate.without_mark() == first.without_mark());
    }
    assert_eq!(other.executions().await, 1);
}

#[tokio::test]
async fn the_end_of_a_stream_is_sent_after_its_commit() {
    let agent = Agent::start(&[]);
    let request = stream(&fresh_id(), "end", json!({"delay_ms": 800}));
    let mut live = Wire::send(&agent, &request).await;
    live.read_until("submitted").await;
    let lock = WriteLock::take(agent.database());
    live.read_until("completed").await;
    assert!(!live.read_for(Duration::from_millis(700)).await, "nobody can commit, so nobody may see the end");
    assert!(!live.text().ends_with("0\r\n\r\n"));
    drop(lock);
    assert_eq!(timeout(PATIENCE, live.read_to_end()).await.expect("an end"), Ended::Whole);
    assert_eq!(Rows::of_all_callers(agent.database()), Rows::of(1));
    assert_eq!(answer(&agent, &request).await.body, live.body());
}

#[tokio::test]
async fn an_answer_that_is_no_stream_is_sent_after_its_commit() {
    let agent = Agent::start(&[]);
    let request = send(&fresh_id(), "answer", json!({"delay_ms": 800}));
    let mut live = Wire::send(&agent, &request).await;
    running(&agent, 1).await;
    let lock = WriteLock::take(agent.database());
    assert!(!live.read_for(Duration::from_millis(1500)).await);
    assert_eq!(live.text(), "", "nobody can commit, so nobody may be answered");
    drop(lock);
    live.read_until("completed").await;
    assert_eq!(Rows::of_all_callers(agent.database()), Rows::of(1));
}

#[tokio::test]
async fn a_stream_that_fails_before_its_first_event_is_answered_and_stored_as_plain_json() {
    let agent = Agent::start(&[]);
    let request =
        stream(&fresh_id(), "fails", json!({"http_status": 503, "rpc_code": -32055, "headers": [["x-why", "demo"]]}));
    let first = answer(&agent, &request).await;
    assert_eq!((first.status.as_u16(), first.json()["error"]["code"].as_i64()), (503, Some(-32055)));
    assert_eq!(
        (&first.headers["content-type"], &first.headers["x-why"]),
        (&"application/json".parse().expect("a value"), &"demo".parse().expect("a value"))
    );
    let replay = answer(&agent, &request).await;
    assert!(replay.is_replay() && !first.is_replay());
    assert_eq!(replay.without_mark(), first.without_mark());
    assert_eq!(Rows::of_all_callers(agent.database()), Rows::of(0));
}

#[tokio::test]
async fn a_stream_that_panics_ends_with_an_error_and_is_replayed_so() {
    let agent = Agent::start(&[]);
    let request = stream(&fresh_id(), "panics", json!({"events": 3, "event_interval_ms": 20, "panic": true}));
    let both = join_all((0..2).map(|_| answer(&agent, &request))).await;
    let late = answer(&agent, &request).await;
    for answer in [&both[0], &both[1], &late] {
        let events = events(answer);
        assert_eq!((answer.status.as_u16(), events.len()), (200, 5));
        assert_eq!((&events[4]["error"]["code"], &events[4]["id"]), (&json!(-32603), &json!(1)));
        assert_eq!(answer.without_mark(), late.without_mark());
    }
    assert!(late.is_replay());
    assert_eq!(Rows::of_all_callers(agent.database()), Rows::of(0));
}

#[tokio::test]
async fn a_replay_can_carry_the_retrys_own_id_in_every_event() {
    let agent = Agent::start(&["--replay-id", "request"]);
    let mut request = stream(&fresh_id(), "id", json!({"events": 30, "event_interval_ms": 30}));
    let first = answer(&agent, &request);
    let attached = async {
        running(&agent, 1).await;
        let mut attached = request.clone();
        attached["id"] = json!("attached");
        answer(&agent, &attached).await
    };
    let (first, attached) = tokio::join!(first, attached);
    request["id"] = json!("late");
    let late = answer(&agent, &request).await;
    for (replay, id) in [(attached, "attached"), (late, "late")] {
        assert!(replay.is_replay());
        let expected =
            first.text().replace("\"jsonrpc\":\"2.0\",\"id\":1,", &format!("\"jsonrpc\":\"2.0\",\"id\":\"{id}\","));
        assert_eq!(replay.text(), expected);
        assert!(events(&replay).iter().all(|event| event["id"] == id));
    }
    assert_eq!(agent.executions().await, 1);
}

#[tokio::test]
async fn a_response_that_is_too_large_to_keep_is_sent_once_and_never_made_again() {
    let agent = Agent::start(&["--max-response-bytes", "100000"]);
    for (n, kind) in [send, stream, stream].into_iter().enumerate() {
        // The last one's events alone are too many.
        let demo = if n == 2 { json!({"events": 1000}) } else { json!({"response_bytes": 4_000_000, "delay_ms": 300}) };
        let request = kind(&fresh_id(), "large", demo);
        let before = agent.executions().await;
        let first = answer(&agent, &request).await;
        assert_eq!(first.status, 200);
        assert!(first.text().contains("completed") && first.body.len() > 100_000, "its client gets everything");
        for _ in 0..2 {
            let retry = answer(&agent, &request).await;
            assert_eq!((retry.status.as_u16(), retry.code().as_str()), (409, "IDEMPOTENCY_RESPONSE_NOT_RETAINED"));
            let data = &retry.json()["error"]["data"];
            assert_eq!((&data["response_bytes"], &data["response_status"]), (&json!(first.body.len()), &json!(200)));
        }
        assert_eq!(agent.executions().await, before + 1);
    }
    until("the chunks of what is not kept are swept or were never written", || {
        number(agent.database(), "SELECT coalesce(sum(length(bytes)), 0) FROM idempotency_chunk") == 0
    })
    .await;
}

#[tokio::test]
async fn a_slow_reader_of_a_response_that_is_not_kept_still_gets_everything() {
    let agent = Agent::start(&["--max-response-bytes", "1500000"]);
    let request = stream(&fresh_id(), "large", json!({"events": 20_000}));
    let mut slow = Wire::connect_narrow(&agent).await;
    slow.write(&wire::bytes_of(&request)).await;
    for _ in 0..50 {
        slow.read_some(2000).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(timeout(PATIENCE, slow.read_to_end()).await.expect("an end"), Ended::Whole);
    let body = String::from_utf8(slow.body()).expect("text");
    assert_eq!((body.matches("working").count(), body.matches("completed").count()), (20_000, 1));
    assert_eq!(answer(&agent, &request).await.code(), "IDEMPOTENCY_RESPONSE_NOT_RETAINED");
    assert_eq!(agent.executions().await, 1);
}

/// The most memory that a process has had in use, in KiB.
fn peak_memory(agent: &Agent) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", agent.pid())).expect("the process runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line");
    line.trim().trim_end_matches("kB").trim().parse().expect("a number")
}

/// Reads a response to its end, and says how long it was and what its bytes add up to, but keeps nothing.
async fn measure(agent: &Agent, request: &Value) -> (usize, u64, bool) {
    let mut response = agent.request(&[("a2a-extensions", URI)], request.to_string()).send().await.expect("an answer");
    let replayed = response.headers().contains_key("idempotent-replayed");
    let (mut length, mut sum) = (0, 0u64);
    while let Some(bytes) = response.chunk().await.expect("the response goes on") {
        length += bytes.len();
        for byte in bytes {
            sum = sum.wrapping_mul(31).wrapping_add(u64::from(byte));
        }
    }
    (length, sum, replayed)
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_is_bounded_however_long_a_stream_is() {
    for bound in [None, Some("2000000")] {
        let flags = bound.map_or(vec![], |bytes| vec!["--max-response-bytes", bytes]);
        let agent = Agent::start(&flags);
        let warm = stream(&fresh_id(), "warm", json!({"events": 100}));
        measure(&agent, &warm).await;
        let before = peak_memory(&agent);

        let request = stream(&fresh_id(), "long", json!({"events": 150_000}));
        let live = timeout(PATIENCE, measure(&agent, &request)).await.expect("an end");
        let (length, _, _) = live;
        assert!(length > 30_000_000, "{length}");
        let grown = peak_memory(&agent) - before;
        assert!(grown < 16 * 1024, "{grown} KiB more for a stream of {} KiB", length / 1024);

        let retries = timeout(PATIENCE, join_all((0..3).map(|_| measure(&agent, &request)))).await.expect("an end");
        let kept = bound.is_none();
        assert!(retries.iter().all(|retry| (*retry == (live.0, live.1, true)) == kept));
        let grown = peak_memory(&agent) - before;
        assert!(grown < 24 * 1024, "{grown} KiB more for three replays of {} KiB", length / 1024);
        assert_eq!(agent.executions().await, 2);
    }
}

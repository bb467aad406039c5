//! A connection may break at any byte, stall, or never be read: the operation does not notice, and nobody else does.

#[allow(unreachable_pub, reason = "a module of several programs")]
mod support;

#[path = "support/embedded.rs"]
mod embedded;
#[path = "support/inspection.rs"]
mod inspection;
#[path = "support/seed.rs"]
mod seed;
#[path = "support/wire.rs"]
mod wire;

use std::time::Duration;

use embedded::App;
use futures_util::{FutureExt as _, future::join_all};
use inspection::{Rows, claims, number, running, until};
use seed::random;
use serde_json::{Value, json};
use support::{Agent, Answer, fresh_id, send, stream};
use tokio::time::timeout;
use wire::{Ended, Wire, bytes_of};

/// Much longer than anything here takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until so many operations have been answered.
async fn stored(agent: &Agent, operations: i64) {
    let entries = || number(agent.database(), "SELECT count(*) FROM idempotency_cache");
    until("the operations complete by themselves", || entries() >= operations).await;
}

/// A retry's answer, which must be a replay.
async fn replay(agent: &Agent, request: &Value) -> Answer {
    let answer = timeout(PATIENCE, agent.call(request)).await.expect("a retry is answered");
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.is_replay(), "{}", answer.text());
    answer
}

#[tokio::test]
async fn a_request_that_is_cut_before_its_end_does_not_run_and_its_retry_does() {
    let agent = Agent::start(&[]);
    let mut random = random();
    let requests: Vec<_> = (0..30).map(|n| send(&fresh_id(), &format!("cut {n}"), json!({}))).collect();
    for request in &requests {
        let bytes = bytes_of(request);
        let mut wire = Wire::connect(&agent).await;
        wire.write(&bytes[..random.usize(..bytes.len())]).await;
        if random.bool() {
            wire.reset();
        }
    }
    // A request that is whole, sent after them, is answered.
    assert_eq!(agent.call(&send(&fresh_id(), "whole", json!({}))).await.status, 200);
    assert_eq!(agent.executions().await, 1);
    for request in &requests {
        let answer = agent.call(request).await;
        assert_eq!((answer.status.as_u16(), answer.is_replay()), (200, false));
    }
    assert_eq!(agent.executions().await, 31);
}

#[tokio::test]
async fn an_operation_whose_client_is_gone_completes_once_and_the_retry_replays() {
    let agent = Agent::start(&[]);
    let mut random = random();
    let requests: Vec<_> = (0..40)
        .map(|n| {
            let kind = if n % 2 == 0 { send } else { stream };
            kind(&fresh_id(), &format!("gone {n}"), json!({"delay_ms": random.u64(..300), "event_interval_ms": 10}))
        })
        .collect();
    let cuts = requests.iter().enumerate().map(|(n, request)| {
        let (agent, pause) = (&agent, Duration::from_millis(random.u64(..300)));
        async move {
            let mut wire = Wire::send(agent, request).await;
            running_or_done(agent, request).await;
            tokio::time::sleep(pause).await;
            match n % 4 {
                0 | 1 => drop(wire),
                2 => wire.reset(),
                _ => {
                    wire.close_half().await;
                    wire.read_for(pause).await;
                }
            }
        }
    });
    join_all(cuts).await;
    // Before any retry.
    stored(&agent, 40).await;
    assert_eq!(Rows::of_all_callers(agent.database()), Rows::of(40));
    for request in &requests {
        replay(&agent, request).await;
    }
    assert_eq!(agent.executions().await, 40);
}

#[tokio::test]
async fn a_request_whose_future_is_dropped_at_any_moment_runs_once() {
    let app = App::open().await;
    for n in 0..60 {
        let request = send(&fresh_id(), "dropped", json!({}));
        let mut answered = None;
        {
            // First before its key was looked up, then later and later, and at last after it was answered.
            let mut call = std::pin::pin!(app.call(&request));
            for looks in 0..=n {
                if answered.is_none() {
                    answered = (&mut call).now_or_never();
                }
                if answered.is_none() && looks < n {
                    tokio::time::sleep(Duration::from_micros(100 * looks)).await;
                }
            }
        }
        app.until_runs(n + 1).await;
        let replay = app.call(&request).await;
        assert!(answered.is_none_or(|answer| answer == replay));
        assert_eq!(app.runs().await, n + 1);
    }
}

/// Waits until an operation has been claimed.
async fn running_or_done(agent: &Agent, request: &Value) {
    let id = request["params"]["message"]["messageId"].as_str().expect("an id");
    let select = format!(
        "SELECT (SELECT count(*) FROM idempotency_claim WHERE message_id = '{id}') \
         + (SELECT count(*) FROM idempotency_cache WHERE message_id = '{id}')"
    );
    until("the request has come", || number(agent.database(), &select) > 0).await;
}

#[tokio::test]
async fn a_retry_that_comes_while_the_operation_runs_on_waits_for_it() {
    let agent = Agent::start(&[]);
    let request = send(&fresh_id(), "left", json!({"delay_ms": 1500}));
    let wire = Wire::send(&agent, &request).await;
    running(&agent, 1).await;
    drop(wire);
    // The retry's client goes too, and so on.
    for _ in 0..5 {
        drop(Wire::send(&agent, &request).await);
    }
    replay(&agent, &request).await;
    assert_eq!(agent.executions().await, 1);
}

#[tokio::test]
async fn a_response_that_is_cut_at_any_byte_is_replayed_from_its_first() {
    let agent = Agent::start(&[]);
    let mut random = random();
    for n in 0..12 {
        let size = random.usize(1..400_000);
        let request = if n % 2 == 0 {
            send(&fresh_id(), "cut", json!({"response_bytes": size}))
        } else {
            stream(
                &fresh_id(),
                "cut",
                json!({"response_bytes": size / 2, "events": size / 2000, "event_interval_ms": 1}),
            )
        };
        let mut wire = Wire::send(&agent, &request).await;
        let stop = random.usize(1..=size);
        while wire.text().len() < stop && wire.read_some(random.usize(1..20_000)).await > 0 {}
        let (text, seen) = (wire.text(), if n % 2 == 0 { unchunked(&wire) } else { wire.body() });
        if random.bool() {
            wire.reset();
        } else {
            drop(wire);
        }
        let answer = replay(&agent, &request).await;
        assert!(text.starts_with("HTTP/1.1 200"), "{text}");
        assert!(answer.body.starts_with(&seen), "{} bytes are no part of the replay", seen.len());
        assert_eq!(agent.executions().await, n + 1);
    }
}

/// The part of a body of known length that has come.
fn unchunked(wire: &Wire) -> Vec<u8> {
    wire.text().split_once("\r\n\r\n").map(|(_, body)| body.as_bytes().to_vec()).unwrap_or_default()
}

#[tokio::test]
async fn a_client_that_never_reads_slows_nobody() {
    let agent = Agent::start(&[]);
    // Larger than what the kernel holds for a connection.
    let request = stream(&fresh_id(), "big", json!({"response_bytes": 12_000_000, "events": 2000}));
    let mut owner = Wire::connect_narrow(&agent).await;
    owner.write(&bytes_of(&request)).await;
    running_or_done(&agent, &request).await;
    let mut stalled = Wire::connect_narrow(&agent).await;
    stalled.write(&bytes_of(&request)).await;

    let live = timeout(PATIENCE, agent.call(&request)).await.expect("the operation goes on");
    assert!(live.is_replay() && live.body.len() > 12_000_000);
    assert_eq!(
        timeout(PATIENCE, agent.call(&send(&fresh_id(), "other", json!({})))).await.expect("at once").status,
        200
    );
    assert_eq!(agent.executions().await, 2);

    // When they read at last, they get everything.
    for mut wire in [owner, stalled] {
        assert_eq!(timeout(PATIENCE, wire.read_to_end()).await.expect("it is all there"), Ended::Whole);
        assert!(wire.body() == live.body);
    }
}

#[tokio::test]
async fn a_slow_reader_gets_everything_and_holds_up_no_completion() {
    let agent = Agent::start(&[]);
    let request = stream(&fresh_id(), "slow", json!({"response_bytes": 3_000_000, "events": 500}));
    let mut slow = Wire::connect_narrow(&agent).await;
    slow.write(&bytes_of(&request)).await;
    slow.read_until("data: ").await;
    stored(&agent, 1).await;
    assert_eq!(agent.executions().await, 1);
    for _ in 0..100 {
        slow.read_some(1000).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(slow.read_to_end().await, Ended::Whole);
    assert!(slow.body() == replay(&agent, &request).await.body);
}

#[tokio::test]
async fn connections_that_stay_half_way_through_a_request_slow_nobody() {
    let agent = Agent::start(&[]);
    let mut random = random();
    let mut stalled = Vec::new();
    for _ in 0..200 {
        let request = send(&fresh_id(), "half", json!({}));
        let bytes = bytes_of(&request);
        let cut = random.usize(..bytes.len());
        let mut wire = Wire::connect(&agent).await;
        wire.write(&bytes[..cut]).await;
        stalled.push((wire, bytes, cut));
    }
    for n in 1..=10 {
        let answer = timeout(PATIENCE, agent.call(&send(&fresh_id(), "other", json!({})))).await.expect("at once");
        assert_eq!((answer.status.as_u16(), agent.executions().await), (200, n));
    }
    // They may take as long as they like.
    for (wire, bytes, cut) in &mut stalled {
        wire.write(&bytes[*cut..]).await;
    }
    for (wire, ..) in &mut stalled {
        wire.read_until("\"kind\":\"task\"").await;
    }
    assert_eq!(agent.executions().await, 210);
}

#[tokio::test]
async fn a_client_that_gives_up_by_itself_is_no_cancellation() {
    let agent = Agent::start(&[]);
    let request = send(&fresh_id(), "impatient", json!({"delay_ms": 1000}));
    let impatient = agent.request(&[("a2a-extensions", support::URI)], request.to_string());
    let given_up = async {
        running(&agent, 1).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    // Dropping the future closes its connection.
    tokio::select! {
        answer = impatient.send() => drop(answer.expect("an answer")),
        () = given_up => {}
    }
    stored(&agent, 1).await;
    assert_eq!(claims(agent.database(), 1), 0);
    assert_eq!(replay(&agent, &request).await.json()["result"]["kind"], "task");
    assert_eq!(agent.executions().await, 1);
}

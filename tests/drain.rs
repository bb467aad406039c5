//! A process that is told to end finishes what runs, answers it, lets nothing new begin, and keeps what it has answered.

#[allow(unreachable_pub, reason = "a module of several programs")]
mod support;

#[path = "support/inspection.rs"]
mod inspection;
#[path = "support/wire.rs"]
mod wire;

use std::time::Duration;

use futures_util::future::join_all;
use inspection::{Rows, claims, number, running};
use serde_json::{Value, json};
use support::{Agent, fresh_id, send, stream};
use wire::{Wire, bytes_of};

/// Much longer than anything here takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Operations that take a while, of both kinds.
fn operations(count: usize) -> Vec<Value> {
    let operation = |n: usize| {
        let text = format!("drained {n}");
        if n % 2 == 0 {
            send(&fresh_id(), &text, json!({"delay_ms": 2000}))
        } else {
            stream(&fresh_id(), &text, json!({"events": 10, "event_interval_ms": 200}))
        }
    };
    (0..count).map(operation).collect()
}

#[tokio::test]
async fn what_runs_at_sigterm_or_sigint_is_finished_answered_and_replayable_after_a_restart() {
    for signal in ["TERM", "INT"] {
        let mut agent = Agent::start(&[]);
        let operations = operations(6);
        // A duplicate of each waits or has attached.
        let calls = join_all(operations.iter().chain(&operations).map(|operation| agent.call(operation)));
        let (answers, ()) = tokio::join!(calls, async {
            running(&agent, 6).await;
            agent.signal(signal);
        });
        assert_eq!(agent.exit_code(PATIENCE), Some(0));
        for (first, duplicate) in answers[..6].iter().zip(&answers[6..]) {
            assert_eq!(first.status, 200, "{}", first.text());
            assert!(first.text().contains("completed"));
            assert_ne!(first.is_replay(), duplicate.is_replay());
            assert_eq!(first.without_mark(), duplicate.without_mark());
        }

        agent.restart();
        assert_eq!(Rows::of_all_callers(agent.database()), Rows::of(6));
        assert_eq!(number(agent.database(), "SELECT count(*) FROM idempotency_claim"), 0);
        for (operation, answer) in operations.iter().zip(&answers) {
            let replay = agent.call(operation).await;
            assert!(replay.is_replay());
            assert_eq!(replay.without_mark(), answer.without_mark());
        }
        assert_eq!(agent.executions().await, 6);
    }
}

#[tokio::test]
async fn an_operation_whose_client_has_left_is_finished_too() {
    let mut agent = Agent::start(&[]);
    let operations = operations(4);
    let wires = join_all(operations.iter().map(|operation| Wire::send(&agent, operation))).await;
    running(&agent, 4).await;
    drop(wires);
    assert_eq!(agent.terminate(), Some(0));
    agent.restart();
    assert_eq!(Rows::of_all_callers(agent.database()), Rows::of(4));
    for operation in &operations {
        assert!(agent.call(operation).await.is_replay());
    }
}

#[tokio::test]
async fn while_it_drains_nothing_new_begins() {
    let mut agent = Agent::start(&[]);
    let running_operation = send(&fresh_id(), "runs", json!({"delay_ms": 2500}));
    let late: Vec<_> = (0..20).map(|n| send(&fresh_id(), &format!("late {n}"), json!({}))).collect();
    // Connections that are half way through a request when the signal comes.
    let mut half = Vec::new();
    for request in &late[..10] {
        let bytes = bytes_of(request);
        let mut wire = Wire::connect(&agent).await;
        wire.write(&bytes[..bytes.len() - 10]).await;
        half.push((wire, bytes));
    }
    let (first, ()) = tokio::join!(agent.call(&running_operation), async {
        running(&agent, 1).await;
        agent.signal("TERM");
        tokio::time::sleep(Duration::from_millis(300)).await;
        for (wire, bytes) in &mut half {
            wire.write(&bytes[bytes.len() - 10..]).await;
        }
        for (wire, _) in &mut half {
            wire.read_to_end().await;
            let refused =
                wire.text().starts_with("HTTP/1.1 503") && wire.text().contains("IDEMPOTENCY_STORE_UNAVAILABLE");
            assert!(refused || wire.text().is_empty(), "{}", wire.text());
        }
        for request in &late[10..] {
            let answer = agent.try_call(request).await;
            assert!(answer.is_err() || answer.is_ok_and(|answer| answer.status == 503));
        }
        assert_eq!(claims(agent.database(), 1), 1, "the first one still runs");
    });
    assert_eq!(first.status, 200);
    assert_eq!(agent.exit_code(PATIENCE), Some(0));

    agent.restart();
    assert_eq!(agent.executions().await, 1);
    // What was refused was not stored: it runs when it is sent again.
    for request in &late {
        let answer = agent.call(request).await;
        assert_eq!((answer.status.as_u16(), answer.is_replay()), (200, false));
    }
    assert_eq!(agent.executions().await, 21);
}

#[tokio::test]
async fn connections_that_are_idle_stalled_or_never_read_do_not_keep_it_alive() {
    let mut agent = Agent::start(&[]);
    let large = stream(&fresh_id(), "never read", json!({"response_bytes": 12_000_000}));
    let mut never_read = Wire::connect_narrow(&agent).await;
    never_read.write(&bytes_of(&large)).await;
    let mut idle = Vec::new();
    for n in 0..20 {
        let mut wire = Wire::connect(&agent).await;
        wire.write(&bytes_of(&send(&fresh_id(), "half", json!({})))[..n * 10]).await;
        idle.push(wire);
    }
    assert_eq!(agent.call(&large).await.status, 200);
    assert_eq!(agent.terminate(), Some(0));
    agent.restart();
    assert!(agent.call(&large).await.is_replay());
    assert_eq!(agent.executions().await, 1);
}

#[tokio::test]
async fn a_claim_of_another_process_does_not_keep_it_alive_and_is_left_alone() {
    let owner = Agent::start(&[]);
    let mut other = Agent::start_on(owner.database(), &[]);
    let request = stream(&fresh_id(), "elsewhere", json!({"delay_ms": 3000}));
    let (first, waiter, ()) = tokio::join!(
        owner.call(&request),
        async {
            running(&owner, 1).await;
            other.try_call(&request).await
        },
        async {
            running(&owner, 1).await;
            tokio::time::sleep(Duration::from_millis(300)).await;
            other.signal("TERM");
        }
    );
    // It is answered within the drain, since the owner is soon done.
    assert_eq!(waiter.expect("an answer").without_mark(), first.without_mark());
    assert_eq!(other.exit_code(PATIENCE), Some(0));
    assert_eq!(owner.executions().await, 1);
    assert_eq!(owner.call(&request).await.without_mark(), first.without_mark());
}

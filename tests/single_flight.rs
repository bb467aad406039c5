//! However many requests carry one key at once, one of them runs, and the others wait for its answer or are told why not.

#[allow(unreachable_pub, reason = "a module of several programs")]
mod support;

#[path = "support/embedded.rs"]
mod embedded;
#[path = "support/inspection.rs"]
mod inspection;

use std::time::Duration;

use embedded::App;
use futures_util::future::join_all;
use inspection::{claims, number, running, until};
use serde_json::json;
use support::{Agent, Answer, URI, fresh_id, send, stream};
use tokio::time::{Instant, timeout};

/// Longer than any test: what takes so long still runs when others have been answered.
const LONG: u64 = 120_000;

/// Long enough for a loaded machine, and much shorter than [`LONG`].
const AT_ONCE: Duration = Duration::from_secs(30);

fn assert_one_answer(answers: &[Answer]) {
    let first = answers[0].without_mark();
    for answer in answers {
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.without_mark(), first);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_thousand_duplicates_one_runs_and_all_get_its_answer() {
    let agent = Agent::start(&[]);
    let request = send(&fresh_id(), "storm", json!({"delay_ms": 100}));
    let answers = join_all((0..1000).map(|_| agent.call(&request))).await;
    assert_one_answer(&answers);
    assert_eq!(answers.iter().filter(|answer| !answer.is_replay()).count(), 1);
    assert_eq!(agent.executions().await, 1);
    assert_eq!(agent.metric("message/send", "executed").await, 1);
    assert_eq!(agent.metric("message/send", "replayed").await, 999);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_that_is_spread_over_two_processes_runs_once() {
    let one = Agent::start(&[]);
    let other = Agent::start_on(one.database(), &[]);
    for delay in [0, 100, 700] {
        let before = one.executions().await;
        let request = send(&fresh_id(), "storm", json!({"delay_ms": delay}));
        let agents = [&one, &other];
        let answers = join_all((0..200).map(|n| agents[n % 2].call(&request))).await;
        assert_one_answer(&answers);
        assert_eq!(answers.iter().filter(|answer| !answer.is_replay()).count(), 1);
        assert_eq!(one.executions().await, before + 1);
    }
    let counts = [one.metric("message/send", "executed").await, other.metric("message/send", "executed").await];
    assert_eq!(counts.iter().sum::<u64>(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_storms_at_once_over_two_processes_run_once_each() {
    let one = Agent::start(&[]);
    let other = Agent::start_on(one.database(), &[]);
    let agents = [&one, &other];
    let requests: Vec<_> =
        (0..20).map(|n| send(&fresh_id(), &format!("storm {n}"), json!({"delay_ms": 10 * n}))).collect();
    let storms = requests.iter().map(|request| join_all((0..20).map(|n| agents[n % 2].call(request))));
    for answers in join_all(storms).await {
        assert_one_answer(&answers);
        assert_eq!(answers.iter().filter(|answer| !answer.is_replay()).count(), 1);
    }
    assert_eq!(other.executions().await, 20);
}

#[tokio::test]
async fn another_payload_or_operation_is_told_at_once_while_the_first_runs_here_or_elsewhere() {
    let owner = Agent::start(&[]);
    let other = Agent::start_on(owner.database(), &[]);
    let id = fresh_id();
    let first = send(&id, "first", json!({"delay_ms": LONG}));
    let collisions = async {
        running(&owner, 1).await;
        for agent in [&owner, &other] {
            for colliding in
                [send(&id, "second", json!({"delay_ms": LONG})), stream(&id, "first", json!({"delay_ms": LONG}))]
            {
                let answer = timeout(AT_ONCE, agent.call(&colliding)).await.expect("at once");
                assert_eq!(answer.status, 422, "{}", answer.text());
                assert_eq!(answer.code(), "IDEMPOTENCY_KEY_REUSED_WITH_DIFFERENT_PAYLOAD");
            }
        }
    };
    tokio::select! {
        _ = owner.try_call(&first) => panic!("it runs for {LONG} ms"),
        () = collisions => {}
    }
    assert_eq!(claims(owner.database(), 1), 1, "the first still runs");
}

#[tokio::test]
async fn a_duplicate_that_waits_elsewhere_does_not_keep_a_collision_waiting() {
    let owner = Agent::start(&[]);
    let other = Agent::start_on(owner.database(), &[]);
    let id = fresh_id();
    let first = send(&id, "first", json!({"delay_ms": LONG}));
    let collision = async {
        running(&owner, 1).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        let colliding = send(&id, "second", json!({}));
        timeout(AT_ONCE, other.call(&colliding)).await.expect("at once")
    };
    tokio::select! {
        _ = owner.try_call(&first) => panic!("it runs for {LONG} ms"),
        _ = async { running(&owner, 1).await; other.try_call(&first).await } => panic!("it waits for as long"),
        answer = collision => assert_eq!(answer.status, 422, "{}", answer.text()),
    }
}

#[tokio::test]
async fn different_keys_do_not_wait_for_each_other() {
    let agent = Agent::start(&[]);
    let long = send(&fresh_id(), "long", json!({"delay_ms": LONG}));
    let others = async {
        running(&agent, 1).await;
        let calls = (0..50).map(|n| {
            let request = send(&fresh_id(), &format!("{n}"), json!({}));
            let agent = &agent;
            async move { agent.call(&request).await }
        });
        timeout(AT_ONCE, join_all(calls)).await.expect("at once")
    };
    tokio::select! {
        _ = join_all((0..50).map(|_| agent.try_call(&long))) => panic!("they wait for {LONG} ms"),
        answers = others => assert!(answers.iter().all(|answer| answer.status == 200)),
    }
    assert_eq!(agent.executions().await, 50);
}

#[tokio::test]
async fn the_same_id_in_another_scope_is_another_key() {
    let agent = Agent::start(&[]);
    let request = send(&fresh_id(), "mine", json!({"delay_ms": 200})).to_string();
    let call =
        async |token: &str| agent.post(&[("a2a-extensions", URI), ("authorization", token)], request.clone()).await;
    let (alice, bob) = tokio::join!(call("Bearer alice"), call("Bearer bob"));
    assert!(!alice.is_replay() && !bob.is_replay());
    assert_eq!(number(agent.database(), "SELECT count(*) FROM tasks"), 2);
    assert_ne!(alice.body, bob.body);
}

#[tokio::test]
async fn a_duplicate_waits_no_longer_than_its_budget() {
    let owner = Agent::start(&["--wait-ms", "400"]);
    let other = Agent::start_on(owner.database(), &["--wait-ms", "400"]);
    let request = send(&fresh_id(), "slow", json!({"delay_ms": LONG}));
    let waiting = async {
        running(&owner, 1).await;
        for agent in [&owner, &other] {
            let since = Instant::now();
            let answer = timeout(AT_ONCE, agent.call(&request)).await.expect("nothing waits for ever");
            assert!(since.elapsed() >= Duration::from_millis(400), "{:?}", since.elapsed());
            assert_in_progress(&answer);
        }
        assert_eq!(owner.metric("message/send", "in_progress").await, 1);
    };
    tokio::select! {
        _ = owner.try_call(&request) => panic!("it runs for {LONG} ms"),
        () = waiting => {}
    }
}

fn assert_in_progress(answer: &Answer) {
    assert_eq!(answer.status, 409, "{}", answer.text());
    assert_eq!(answer.code(), "IDEMPOTENCY_REQUEST_IN_PROGRESS");
    let seconds: u64 = answer.headers["retry-after"].to_str().expect("text").parse().expect("seconds");
    assert!(seconds >= 1);
    assert_eq!(answer.json()["error"]["data"]["retry_after_seconds"], seconds);
}

#[tokio::test]
async fn without_a_budget_a_duplicate_is_told_and_later_answered() {
    let owner = Agent::start(&["--wait-ms", "0"]);
    let other = Agent::start_on(owner.database(), &["--wait-ms", "0"]);
    let request = send(&fresh_id(), "slow", json!({"delay_ms": 3000}));
    let (first, ()) = tokio::join!(owner.call(&request), async {
        running(&owner, 1).await;
        for agent in [&owner, &other] {
            let answer = agent.call(&request).await;
            // On a machine so slow that it is over by now.
            if !answer.is_replay() {
                assert_in_progress(&answer);
            }
        }
    });
    assert_eq!(first.status, 200, "one's own execution is not waited for: {}", first.text());
    for agent in [&owner, &other] {
        let replay = agent.call(&request).await;
        assert!(replay.is_replay());
        assert_eq!(replay.without_mark(), first.without_mark());
    }
    assert_eq!(owner.executions().await, 1);
}

#[tokio::test]
async fn a_waiter_in_another_process_soon_notices_completion() {
    let owner = Agent::start(&[]);
    let other = Agent::start_on(owner.database(), &[]);
    let lag = async |n: u64| {
        // Completed at different moments, after waits as long as the slowest look allows.
        let request = send(&fresh_id(), "watched", json!({"delay_ms": 1500 + 37 * n}));
        let timed = async |agent: &Agent| (agent.call(&request).await, Instant::now());
        let ((first, answered), (second, noticed)) = tokio::join!(timed(&owner), async {
            until("the owner has it", || number(owner.database(), "SELECT count(*) FROM idempotency_claim") > 0).await;
            timed(&other).await
        });
        assert_eq!(first.without_mark(), second.without_mark());
        noticed.saturating_duration_since(answered)
    };
    let mut lags = join_all((0..7).map(lag)).await;
    lags.sort();
    // The median: a loaded machine may hold up some of them.
    assert!(lags[3] < Duration::from_millis(300), "{lags:?}");
}

#[tokio::test]
async fn a_storm_costs_as_few_writes_as_one_request() {
    let app = App::open().await;
    for duplicates in [1, 1000] {
        let before = app.store.stats().operations;
        let request = send(&fresh_id(), "storm", json!({}));
        let answers = join_all((0..duplicates).map(|_| app.call(&request))).await;
        assert!(answers.iter().all(|answer| *answer == answers[0]));
        assert_eq!(app.store.stats().operations - before, 2, "one claim, one completion");
    }
    assert_eq!(app.runs().await, 2);
}

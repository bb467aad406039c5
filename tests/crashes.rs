//! A process may die or freeze at any moment: what was answered stays answered, and what was not runs once more.

#[allow(unreachable_pub, reason = "a module of several programs")]
mod support;

#[path = "support/inspection.rs"]
mod inspection;
#[path = "support/seed.rs"]
mod seed;
#[path = "support/wire.rs"]
mod wire;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use fastrand::Rng;
use futures_util::future::join_all;
use inspection::{Rows, claims, number, running, until};
use seed::random;
use serde_json::{Value, json};
use support::{Agent, Answer, fresh_id, send, stream};
use tokio::time::timeout;
use wire::{Ended, Wire};

/// Much longer than anything here takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

async fn answer(agent: &Agent, request: &Value) -> Answer {
    let answer = timeout(PATIENCE, agent.call(request)).await.expect("nothing waits for ever");
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer
}

#[tokio::test]
async fn an_operation_that_crashed_before_its_answer_was_whole_runs_again_after_its_lease() {
    for kind in [send, stream] {
        let mut agent = Agent::start(&["--lease-ms", "1500"]);
        let request = kind(&fresh_id(), "crash", json!({"abort": true, "delay_ms": 50}));
        assert!(agent.try_call(&request).await.is_err(), "the connection breaks");
        assert_eq!(agent.exit_code(PATIENCE), None, "it ended by a signal");

        agent.restart();
        assert_eq!(Rows::of_all_callers(agent.database()), Rows::of(0));
        assert_eq!(claims(agent.database(), 1), 1, "its claim outlives it");
        // On its second attempt it does not crash. Duplicates wait for that, too.
        let answers = join_all((0..5).map(|_| answer(&agent, &request))).await;
        assert_eq!(answers.iter().filter(|answer| !answer.is_replay()).count(), 1);
        assert!(answers.iter().all(|answer| answer.without_mark() == answers[0].without_mark()));
        assert_eq!(Rows::of_all_callers(agent.database()), Rows::of(1));
        assert_eq!(number(agent.database(), "SELECT count(*) FROM idempotency_claim"), 0);

        agent.restart();
        assert_eq!(answer(&agent, &request).await.without_mark(), answers[0].without_mark());
        assert_eq!(agent.executions().await, 1);
    }
}

#[tokio::test]
async fn what_a_client_has_seen_survives_a_crash_right_after() {
    let mut agent = Agent::start(&["--lease-ms", "500"]);
    for n in 1..=6 {
        let kind = if n % 2 == 0 { send } else { stream };
        let request = kind(&fresh_id(), "seen", json!({"response_bytes": 2000 * n}));
        let seen = answer(&agent, &request).await;
        agent.kill();
        agent.restart();
        let replay = answer(&agent, &request).await;
        assert!(replay.is_replay());
        assert_eq!(replay.without_mark(), seen.without_mark());
        assert_eq!(Rows::of_all_callers(agent.database()), Rows::of(n));
    }
}

/// Operations that clients insist on, while their agent is killed again and again.
#[derive(Default)]
struct Clients {
    /// Sent, and not answered yet.
    pending: Vec<Value>,
    /// Sent, and what a client saw, by `messageId`.
    answered: BTreeMap<String, (Value, Answer)>,
    /// How many of the answered operations failed: these leave no rows.
    failed: usize,
}

impl Clients {
    fn invent(&mut self, random: &mut Rng) {
        let mut demo = json!({"delay_ms": random.u64(..120)});
        match random.u32(..10) {
            0 => demo["http_status"] = json!(503),
            1 => demo["panic"] = json!(true),
            2 => demo["response_bytes"] = json!(random.u32(..3_000_000)),
            3..=5 => demo = json!({"events": random.u32(..8), "event_interval_ms": random.u64(..20)}),
            _ => {}
        }
        let kind = if random.bool() { send } else { stream };
        self.pending.push(kind(&fresh_id(), "insist", demo));
    }

    /// Sends everything that is pending, and some of what has been answered, once; whoever is answered is content.
    async fn try_all(&mut self, agent: &Agent, random: &mut Rng) {
        let again: Vec<_> = self.answered.values().filter(|_| random.u32(..10) == 0).cloned().collect();
        let calls = self.pending.iter().chain(again.iter().map(|(request, _)| request));
        let answers = join_all(calls.map(|request| agent.try_call(request))).await;
        let requests: Vec<_> = self.pending.drain(..).collect();
        let mut answers = answers.into_iter();
        for (request, answer) in requests.into_iter().zip(&mut answers) {
            match answer {
                Ok(answer) => self.note(request, answer),
                Err(_) => self.pending.push(request),
            }
        }
        for ((_, seen), answer) in again.iter().zip(answers) {
            if let Ok(answer) = answer {
                assert!(answer.is_replay());
                assert_eq!(answer.without_mark(), seen.without_mark());
            }
        }
    }

    fn note(&mut self, request: Value, answer: Answer) {
        let text = answer.text();
        let code = text.contains("IDEMPOTENCY_");
        assert!(!code, "no client is refused: {text}");
        self.failed += usize::from(text.contains("\"error\":"));
        let id = request["params"]["message"]["messageId"].as_str().expect("an id").to_owned();
        assert!(self.answered.insert(id, (request, answer)).is_none());
    }

    /// The judge: nothing is lost, nothing was done twice, everything is as it was seen.
    async fn judge(&mut self, agent: &Agent, random: &mut Rng) {
        while !self.pending.is_empty() {
            self.try_all(agent, random).await;
        }
        let successes = self.answered.len() - self.failed;
        assert_eq!(agent.executions().await, successes as u64);
        assert_eq!(Rows::of_all_callers(agent.database()), Rows::of(successes));
        for (request, seen) in self.answered.values() {
            let replay = timeout(PATIENCE, agent.call(request)).await.expect("a replay");
            assert!(replay.is_replay());
            assert_eq!(replay.without_mark(), seen.without_mark());
        }
        assert_eq!(agent.executions().await, successes as u64);
    }
}

/// Kills an agent that works, so many times, each time at a random moment.
async fn kill_again_and_again(cycles: u32) -> Clients {
    let mut random = random();
    let mut agent = Agent::start(&["--lease-ms", "400"]);
    let mut clients = Clients::default();
    for _ in 0..cycles {
        for _ in 0..random.u32(1..8) {
            clients.invent(&mut random);
        }
        let pid = agent.pid().to_string();
        let moment = Duration::from_millis(random.u64(1..500));
        let killer = tokio::spawn(async move {
            tokio::time::sleep(moment).await;
            let killed = tokio::process::Command::new("kill").args(["-9", &pid]).status().await;
            assert!(killed.expect("kill runs").success());
        });
        // Until everything is answered or broken; then there may be time for more.
        clients.try_all(&agent, &mut random).await;
        while !killer.is_finished() {
            clients.invent(&mut random);
            clients.try_all(&agent, &mut random).await;
        }
        killer.await.expect("the agent is killed");
        agent.restart();
    }
    timeout(5 * PATIENCE, clients.judge(&agent, &mut random)).await.expect("everything is answered");
    clients
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_any_number_of_kills_every_operation_was_done_once_and_is_replayed() {
    let clients = kill_again_and_again(15).await;
    assert!(clients.answered.len() > 15);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "soak: some hundred kills take minutes"]
async fn soak_after_hundreds_of_kills_every_operation_was_done_once_and_is_replayed() {
    let clients = kill_again_and_again(400).await;
    assert!(clients.answered.len() > 400);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_an_owner_dies_waiters_elsewhere_take_over_as_soon_as_its_lease_ends() {
    let lease = Duration::from_millis(1500);
    let flags = ["--lease-ms", "1500"];
    let mut owner = Agent::start(&flags);
    let other = Agent::start_on(owner.database(), &flags);
    let requests: Vec<_> =
        (0..3).map(|n| send(&fresh_id(), &format!("orphan {n}"), json!({"delay_ms": 2000}))).collect();
    let waiting = async |request: &Value| {
        let answers = join_all((0..3).map(|_| answer(&other, request))).await;
        assert_eq!(answers.iter().filter(|answer| !answer.is_replay()).count(), 1);
        assert!(answers.iter().all(|answer| answer.without_mark() == answers[0].without_mark()));
    };
    // These clients wait in vain.
    let _waiting_in_vain = join_all(requests.iter().map(|request| Wire::send(&owner, request))).await;
    running(&owner, 3).await;
    let dying = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(claims(owner.database(), 2), 0, "nobody takes over from the living");
        let database = owner.database().to_owned();
        owner.kill();
        let dead = Instant::now();
        until("somebody has taken over", || claims(&database, 2) > 0).await;
        let noticed = dead.elapsed();
        // Generous, since the machine may be loaded; a wait of a second lease would be noticed.
        assert!(noticed < lease + Duration::from_millis(1400), "{noticed:?}");
    };
    tokio::join!(dying, join_all(requests.iter().map(waiting)));
    assert_eq!(Rows::of_all_callers(other.database()), Rows::of(3));
}

#[tokio::test]
async fn an_owner_that_works_longer_than_its_lease_is_not_taken_over() {
    let owner = Agent::start(&["--lease-ms", "1500"]);
    let other = Agent::start_on(owner.database(), &["--lease-ms", "1500"]);
    for kind in [send, stream] {
        let request = kind(&fresh_id(), "long", json!({"delay_ms": 4000}));
        let (first, duplicate) = tokio::join!(answer(&owner, &request), async {
            running(&owner, 1).await;
            answer(&other, &request).await
        });
        assert!(!first.is_replay() && duplicate.is_replay());
        assert_eq!(first.without_mark(), duplicate.without_mark());
    }
    assert_eq!(owner.executions().await, 2);
    assert_eq!(other.metric("message/send", "executed").await, 0);
}

/// Two agents on one file, the first of which will freeze.
fn two() -> (Agent, Agent) {
    let flags = ["--lease-ms", "1000"];
    let owner = Agent::start(&flags);
    let other = Agent::start_on(owner.database(), &flags);
    (owner, other)
}

#[tokio::test]
async fn a_stale_owner_that_wakes_after_the_winner_has_answered_changes_nothing() {
    let (owner, other) = two();
    let request = send(&fresh_id(), "stale", json!({"delay_ms": 1500}));
    let (stale, winner) = tokio::join!(answer(&owner, &request), async {
        running(&owner, 1).await;
        owner.signal("STOP");
        let winner = answer(&other, &request).await;
        owner.signal("CONT");
        winner
    });
    assert!(!winner.is_replay(), "the other one ran it");
    assert!(stale.is_replay(), "its client gets the winner's answer");
    assert_eq!(stale.without_mark(), winner.without_mark());
    assert_eq!(Rows::of_all_callers(other.database()), Rows::of(1));
    assert_eq!(answer(&owner, &request).await.without_mark(), winner.without_mark());
}

#[tokio::test]
async fn a_stale_owner_that_wakes_while_the_winner_runs_waits_for_its_answer() {
    let (owner, other) = two();
    let request = send(&fresh_id(), "stale", json!({"delay_ms": 2500}));
    let (stale, winner, ()) = tokio::join!(
        answer(&owner, &request),
        async {
            running(&owner, 1).await;
            answer(&other, &request).await
        },
        async {
            running(&owner, 1).await;
            owner.signal("STOP");
            until("the other has taken over", || claims(owner.database(), 2) == 1).await;
            owner.signal("CONT");
        }
    );
    assert!(!winner.is_replay() && stale.is_replay());
    assert_eq!(stale.without_mark(), winner.without_mark());
    assert_eq!(Rows::of_all_callers(other.database()), Rows::of(1));
}

#[tokio::test]
async fn a_stale_stream_is_cut_without_an_end() {
    let (owner, other) = two();
    let request = stream(&fresh_id(), "stale", json!({"delay_ms": 500, "events": 4, "event_interval_ms": 400}));
    let mut first = Wire::send(&owner, &request).await;
    first.read_until("submitted").await;
    // One that has attached is no better off.
    let mut attached = Wire::send(&owner, &request).await;
    attached.read_until("submitted").await;
    owner.signal("STOP");
    let winner = answer(&other, &request).await;
    assert!(!winner.is_replay());
    owner.signal("CONT");
    for wire in [&mut first, &mut attached] {
        assert_eq!(timeout(PATIENCE, wire.read_to_end()).await.expect("it is cut"), Ended::Cut);
        assert!(!wire.text().contains("completed"), "{}", wire.text());
    }
    assert_eq!(Rows::of_all_callers(other.database()), Rows::of(1));
    let replay = answer(&owner, &request).await;
    assert!(replay.is_replay());
    assert_eq!(replay.without_mark(), winner.without_mark());
}

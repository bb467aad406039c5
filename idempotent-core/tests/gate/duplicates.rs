//! Duplicates wait and are answered as replays; other payloads get their 422 at once; nobody waits longer than the budget.

use std::time::Duration;

use futures_util::future::join_all;
use idempotent_core::testing::{Fault, StoreCall};
use tokio::time::{Instant, sleep};

use crate::world::*;

const COLLISION: &str = "IDEMPOTENCY_KEY_REUSED_WITH_DIFFERENT_PAYLOAD";
const IN_PROGRESS: &str = "IDEMPOTENCY_REQUEST_IN_PROGRESS";

#[tokio::test(start_paused = true)]
async fn a_storm_of_duplicates_is_one_execution_and_one_claim() {
    let world = World::new();
    let agent = world.process();
    let ask = Ask::send(1, Act::succeed(100));
    let answers = join_all((0..1_000).map(|_| agent.ask(&ask))).await;
    let (first, replays): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| !answer.is_replay());
    assert_eq!((first.len(), replays.len(), world.runs().len()), (1, 999, 1));
    replays.iter().for_each(|replay| replay.assert_replays(first[0]));
    assert_eq!((agent.faults.calls(StoreCall::Claim), agent.faults.calls(StoreCall::Complete)), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_storm_over_two_processes_is_one_execution() {
    let world = World::new();
    let agents = [world.process(), world.process()];
    let ask = Ask::send(1, Act::succeed(100));
    let answers = join_all((0..200).map(|number| agents[number % 2].ask(&ask))).await;
    let first: Vec<_> = answers.iter().filter(|answer| !answer.is_replay()).collect();
    assert_eq!((first.len(), world.runs().len()), (1, 1));
    answers.iter().filter(|answer| answer.is_replay()).for_each(|replay| replay.assert_replays(first[0]));
}

#[tokio::test(start_paused = true)]
async fn a_storm_of_refused_duplicates_asks_the_store_a_few_times_each() {
    let world = World::new();
    let agent = world.process();
    for call in 0..5_000 {
        agent.faults.at(call, Fault::Delay(Duration::from_millis(1)));
    }
    let ask = Ask::send(1, Act::AT_ONCE).with_header("x-refuse", "1");
    let answers = join_all((0..200).map(|_| agent.ask(&ask))).await;
    assert!(answers.iter().all(|answer| answer.status == 429));
    assert_eq!((world.runs().len(), world.store.claims(), world.store.entries()), (0, 0, 0));
    let calls = agent.faults.calls(StoreCall::Inspect) + agent.faults.calls(StoreCall::Claim);
    assert!(calls <= 410, "{calls} calls for 200 requests");
}

#[tokio::test(start_paused = true)]
async fn followers_of_a_refused_request_run_themselves() {
    let world = World::new();
    let agent = world.process();
    let ask = Ask::send(1, Act::succeed(100));
    let refused = agent.spawn(&ask.with_header("x-refuse", "1000"));
    sleep(Duration::from_millis(10)).await;
    let followers = join_all((0..3).map(|_| agent.ask(&ask))).await;
    assert_eq!(refused.await.expect("no panic").status, 429);
    let (first, replays): (Vec<_>, Vec<_>) = followers.iter().partition(|answer| !answer.is_replay());
    assert_eq!((first.len(), replays.len(), world.runs().len()), (1, 2, 1));
    first[0].assert_first();
    replays.iter().for_each(|replay| replay.assert_replays(first[0]));
}

#[tokio::test(start_paused = true)]
async fn nobody_is_judged_by_a_request_that_is_still_claiming() {
    let world = World::new();
    let (agent, other) = (world.process(), world.process());
    let ask = Ask::send(1, Act::AT_ONCE);
    agent.faults.next(StoreCall::Claim, Fault::Delay(seconds(2)));
    let wrong = agent.spawn(&ask.with_payload("other"));
    sleep(seconds(1)).await;
    let first = other.ask(&ask).await;
    let right = agent.spawn(&ask);
    right.await.expect("no panic").assert_replays(&first);
    wrong.await.expect("no panic").assert_refused(COLLISION);
    assert_eq!(world.runs().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn another_payload_or_operation_gets_its_422_at_once_while_the_first_runs_and_after() {
    let world = World::new();
    let (agent, other) = (world.process(), world.process());
    let ask = Ask::send(1, Act::succeed(5_000));
    let own = agent.spawn(&ask);
    sleep(seconds(1)).await;
    for round in 0..2 {
        let asked = Instant::now();
        for process in [&agent, &other] {
            process.ask(&ask.with_payload("other")).await.assert_refused(COLLISION);
            let mut elsewhere = ask.clone();
            elsewhere.method = STREAM;
            let answer = process.ask(&elsewhere).await;
            answer.assert_refused(COLLISION);
            assert!(answer.body.contains(r#""original_method":"message/send","submitted_method":"message/stream""#));
        }
        assert_eq!(asked.elapsed(), Duration::ZERO, "round {round}");
        sleep(seconds(10)).await;
    }
    own.await.expect("no panic").assert_first();
}

#[tokio::test(start_paused = true)]
async fn the_other_name_of_a_method_is_the_same_operation() {
    let world = World::new();
    let agent = world.process();
    let ask = Ask::send(1, Act::AT_ONCE);
    let first = agent.ask(&ask).await;
    let mut renamed = ask.clone();
    renamed.method = "SendMessage";
    agent.ask(&renamed).await.assert_replays(&first);
}

#[tokio::test(start_paused = true)]
async fn other_keys_and_scopes_do_not_wait() {
    let world = World::new();
    let agent = world.process();
    let ask = Ask::send(1, Act::succeed(5_000));
    let own = agent.spawn(&ask);
    sleep(seconds(1)).await;
    let asked = Instant::now();
    agent.ask(&Ask::send(2, Act::AT_ONCE)).await.assert_first();
    agent.ask(&Ask::send(1, Act::AT_ONCE).with_header("x-tenant", "alice")).await.assert_first();
    agent.ask(&Ask::send(1, Act::AT_ONCE).with_header("x-tenant", "bob")).await.assert_first();
    assert_eq!(asked.elapsed(), Duration::ZERO);
    own.await.expect("no panic").assert_first();
    assert_eq!(world.runs().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_waits_as_long_as_its_budget_here_and_elsewhere() {
    for wait in [WAIT, Duration::ZERO] {
        let world = World::new();
        let (agent, other) = (world.process_with(config().wait(wait)), world.process_with(config().wait(wait)));
        let ask = Ask::send(1, Act::succeed(100_000));
        let own = agent.spawn(&ask);
        sleep(seconds(1)).await;
        for process in [&agent, &other] {
            let asked = Instant::now();
            let answer = process.ask(&ask).await;
            answer.assert_refused(IN_PROGRESS);
            assert_eq!(answer.headers["retry-after"], "1");
            assert!(asked.elapsed() >= wait && asked.elapsed() <= wait + seconds(1), "{:?}", asked.elapsed());
        }
        let first = own.await.expect("no panic");
        first.assert_first();
        agent.ask(&ask).await.assert_replays(&first);
        other.ask(&ask).await.assert_replays(&first);
        assert_eq!(world.runs().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_budget_without_end_is_one() {
    let world = World::new();
    let agent = world.process_with(config().wait(Duration::MAX));
    let ask = Ask::send(1, Act::succeed(1_000_000));
    let (own, follower) = (agent.spawn(&ask), agent.spawn(&ask));
    follower.await.expect("no panic").assert_replays(&own.await.expect("no panic"));
}

#[tokio::test(start_paused = true)]
async fn a_waiter_on_another_process_notices_the_end_promptly() {
    let world = World::new();
    let (agent, other) = (world.process(), world.process());
    let ask = Ask::send(1, Act::succeed(5_000));
    let own = agent.spawn(&ask);
    sleep(seconds(1)).await;
    let asked = Instant::now();
    let replay = other.ask(&ask).await;
    assert!(asked.elapsed() <= Duration::from_millis(4_100), "{:?}", asked.elapsed());
    replay.assert_replays(&own.await.expect("no panic"));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waited_for_a_refused_one_elsewhere_runs() {
    let world = World::new();
    let (agent, other) = (world.process(), world.process());
    let ask = Ask::send(1, Act::AT_ONCE);
    let refused = agent.spawn(&ask.with_header("x-refuse", "2000"));
    sleep(seconds(1)).await;
    other.ask(&ask).await.assert_first();
    assert_eq!(refused.await.expect("no panic").status, 429);
    assert_eq!(world.runs().len(), 1);
}

//! Shutdown: what runs is finished and stored, nothing new begins, and answers that exist still go out.

use std::time::Duration;

use idempotent_core::testing::{Fault, StoreCall};
use tokio::time::{Instant, sleep};

use crate::world::*;

const UNAVAILABLE: &str = "IDEMPOTENCY_STORE_UNAVAILABLE";

#[tokio::test(start_paused = true)]
async fn what_runs_is_finished_and_replays_after_a_restart() {
    for ask in [Ask::send(1, Act::succeed(5_000)), Ask::stream(1, Act::stream(5, 10, 1_000))] {
        let world = World::new();
        let agent = world.process();
        let own = agent.spawn(&ask);
        sleep(seconds(1)).await;
        assert_eq!(agent.idempotency.drain(seconds(60)).await, 0);
        assert!(world.is_stored(&ask));
        let first = own.await.expect("no panic");
        first.assert_first();
        world.process().ask(&ask).await.assert_replays(&first);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_has_left_is_no_reason_not_to_finish() {
    let world = World::new();
    let agent = world.process();
    let ask = Ask::send(1, Act::succeed(5_000));
    let own = agent.spawn(&ask);
    sleep(seconds(1)).await;
    own.abort();
    assert_eq!(agent.idempotency.drain(seconds(60)).await, 0);
    assert!(world.process().ask(&ask).await.is_replay());
    assert_eq!(world.runs().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_ends_the_wait_and_tells_how_many_are_left() {
    let world = World::new();
    let agent = world.process();
    let _running = [agent.spawn(&Ask::send(1, Act::succeed(60_000))), agent.spawn(&Ask::send(2, Act::succeed(60_000)))];
    sleep(seconds(1)).await;
    let asked = Instant::now();
    assert_eq!(agent.idempotency.drain(seconds(5)).await, 2);
    assert_eq!(asked.elapsed(), seconds(5));
}

#[tokio::test(start_paused = true)]
async fn nothing_begins_and_replays_go_on() {
    let world = World::new();
    let (agent, other) = (world.process(), world.process());
    let (done, running) = (Ask::send(1, Act::AT_ONCE), Ask::send(2, Act::succeed(5_000)));
    let first = agent.ask(&done).await;
    let own = agent.spawn(&running);
    let elsewhere = Ask::send(3, Act::succeed(5_000));
    let _owner = other.spawn(&elsewhere);
    sleep(seconds(1)).await;
    let drained = tokio::spawn({
        let agent = agent.clone();
        async move { agent.idempotency.drain(seconds(60)).await }
    });
    sleep(Duration::from_millis(1)).await;
    agent.ask(&done).await.assert_replays(&first);
    agent.ask(&Ask::send(4, Act::AT_ONCE)).await.assert_refused(UNAVAILABLE);
    agent.ask(&elsewhere).await.assert_refused(UNAVAILABLE);
    let follower = agent.ask(&running).await;
    follower.assert_replays(&own.await.expect("no panic"));
    assert_eq!(drained.await.expect("no panic"), 0);
    assert_eq!(world.runs().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_under_way_when_the_drain_begins_is_finished_or_given_up() {
    for delay_ms in [0, 500, 1_500] {
        let world = World::new();
        let agent = world.process();
        let ask = Ask::send(1, Act::succeed(1_000));
        agent.faults.next(StoreCall::Inspect, Fault::DelayAnswer(seconds(1)));
        agent.faults.next(StoreCall::Claim, Fault::Delay(seconds(1)));
        let own = agent.spawn(&ask);
        sleep(Duration::from_millis(delay_ms)).await;
        assert_eq!(agent.idempotency.drain(seconds(60)).await, 0);
        let runs = world.runs();
        assert!(runs.iter().all(|run| run.finished), "nothing begins after the drain has ended");
        let answer = own.await.expect("no panic");
        match runs.len() {
            0 => answer.assert_refused(UNAVAILABLE),
            _ => answer.assert_first(),
        }
        assert_eq!(world.store.claims(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_won_too_late_during_a_drain_is_given_back() {
    for method in [SEND, CAREFUL] {
        let world = World::new();
        let agent = world.process();
        let ask = Ask::new(method, 1, &Act::AT_ONCE);
        agent.faults.next(StoreCall::Claim, Fault::DelayAnswer(LEASE));
        let own = agent.spawn(&ask);
        sleep(seconds(1)).await;
        assert_eq!(agent.idempotency.drain(seconds(60)).await, 0);
        own.await.expect("no panic").assert_refused(UNAVAILABLE);
        assert_eq!(world.store.claims(), 0);
        world.process().ask(&ask).await.assert_first();
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waits_for_another_process_gives_up_when_it_would_have_to_begin() {
    let world = World::new();
    let (agent, other) = (world.process(), world.process());
    let ask = Ask::send(1, Act::succeed(5_000));
    let _lost = other.spawn(&ask);
    sleep(seconds(1)).await;
    let waiting = agent.spawn(&ask);
    sleep(seconds(1)).await;
    other.faults.kill();
    assert_eq!(agent.idempotency.drain(seconds(60)).await, 0);
    waiting.await.expect("no panic").assert_refused(UNAVAILABLE);
    assert_eq!(world.runs().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_waits_to_be_stored_is_waited_for() {
    let world = World::new();
    let agent = world.process();
    let ask = Ask::send(1, Act::AT_ONCE);
    agent.faults.next(StoreCall::Complete, Fault::FailBefore);
    let first = agent.ask(&ask).await;
    assert!(!world.is_stored(&ask));
    assert_eq!(agent.idempotency.drain(seconds(60)).await, 0);
    world.process().ask(&ask).await.assert_replays(&first);
}

//! What is answered is stored, with its effects, once, and by the current owner only.

use idempotent_core::testing::{Fault, StoreCall};
use tokio::time::{Instant, sleep, timeout};

use crate::world::*;

#[tokio::test(start_paused = true)]
async fn nobody_is_answered_before_the_answer_is_durable() {
    for fault in [Fault::Delay(seconds(3)), Fault::DelayAnswer(seconds(3))] {
        let world = World::new();
        let agent = world.process();
        let ask = Ask::send(1, Act::AT_ONCE);
        agent.faults.next(StoreCall::Complete, fault);
        let (own, follower) = (agent.spawn(&ask), agent.spawn(&ask));
        sleep(seconds(2)).await;
        assert!(!own.is_finished() && !follower.is_finished(), "{fault:?}");
        let first = own.await.expect("no panic");
        first.assert_first();
        assert!(world.is_stored(&ask));
        follower.await.expect("no panic").assert_replays(&first);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_could_not_be_stored_goes_out_replays_and_is_stored_later_with_its_effects() {
    for fault in [Fault::FailBefore, Fault::PanicBefore, Fault::Hang] {
        let world = World::new();
        let agent = world.process();
        let ask = Ask::send(1, Act::AT_ONCE);
        agent.faults.next(StoreCall::Complete, fault).next(StoreCall::Complete, Fault::FailBefore);
        let asked = Instant::now();
        let first = agent.ask(&ask).await;
        first.assert_first();
        assert!(asked.elapsed() <= seconds(15));
        assert!(!world.is_stored(&ask) && world.store.rows().is_empty());
        agent.ask(&ask).await.assert_replays(&first);
        agent.ask(&ask.with_payload("other")).await.assert_refused("IDEMPOTENCY_KEY_REUSED_WITH_DIFFERENT_PAYLOAD");
        sleep(seconds(2)).await;
        assert!(world.is_stored(&ask));
        assert_eq!(world.store.rows(), ["Some(1)"]);
        assert_eq!(agent.idempotency.metrics().store_failures(), 2);
        world.process().ask(&ask).await.assert_replays(&first);
        agent.ask(&ask).await.assert_replays(&first);
        assert_eq!((world.runs().len(), agent.idempotency.drain(seconds(1)).await), (1, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_completion_that_is_acknowledged_twice_or_not_at_all_writes_its_effects_once() {
    for fault in [Fault::Twice, Fault::FailAfter, Fault::HangAfter, Fault::PanicAfter] {
        let world = World::new();
        let agent = world.process();
        let ask = Ask::send(1, Act::AT_ONCE);
        agent.faults.next(StoreCall::Complete, fault);
        let first = agent.ask(&ask).await;
        first.assert_first();
        sleep(seconds(2)).await;
        assert_eq!(world.store.rows(), ["Some(1)"], "{fault:?}");
        world.process().ask(&ask).await.assert_replays(&first);
        assert_eq!(agent.idempotency.drain(seconds(1)).await, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn the_claim_of_an_answer_that_waits_to_be_stored_is_kept_alive() {
    let world = World::new();
    let (agent, other) = (world.process(), world.process());
    let ask = Ask::send(1, Act::AT_ONCE);
    // The last tries are five seconds apart: the twelfth succeeds after more than three leases.
    for _ in 0..12 {
        agent.faults.next(StoreCall::Complete, Fault::FailBefore);
    }
    let first = agent.ask(&ask).await;
    sleep(LEASE + seconds(5)).await;
    other.ask(&ask).await.assert_refused("IDEMPOTENCY_REQUEST_IN_PROGRESS");
    other.ask(&ask).await.assert_replays(&first);
    assert_eq!(world.runs().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_memory_does_not_outlive_its_ttl() {
    let world = World::new();
    let agent = world.process_with(config().ttl_seconds(60).expect("a TTL"));
    let ask = Ask::send(1, Act::AT_ONCE);
    agent.faults.next(StoreCall::Complete, Fault::FailBefore);
    let first = agent.ask(&ask).await;
    agent.faults.freeze();
    agent.ask(&ask).await.assert_replays(&first);
    sleep(seconds(90)).await;
    agent.ask(&ask).await.assert_refused("IDEMPOTENCY_STORE_UNAVAILABLE");
    assert_eq!(agent.idempotency.drain(seconds(1)).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_stale_owner_stores_nothing_and_its_client_gets_the_winners_answer() {
    let world = World::new();
    let (stale, winner) = (world.process(), world.process());
    let ask = Ask::send(1, Act::succeed(2_000));
    let own = stale.spawn(&ask);
    sleep(seconds(1)).await;
    stale.faults.freeze();
    sleep(LEASE).await;
    let won = winner.ask(&ask).await;
    won.assert_first();
    stale.faults.thaw();
    own.await.expect("no panic").assert_replays(&won);
    assert_eq!(world.store.rows(), ["Some(2)"]);
    assert_eq!(world.runs().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_lost_heartbeat_answers_everybody_before_the_stale_operation_ends() {
    let world = World::new();
    let (stale, winner) = (world.process(), world.process());
    let ask = Ask::send(1, Act::succeed(100_000));
    let (own, follower) = (stale.spawn(&ask), stale.spawn(&ask));
    sleep(seconds(1)).await;
    stale.faults.freeze();
    sleep(LEASE).await;
    // The winner is slow too: the stale owner's client waits for it, within its budget.
    let won = winner.spawn(&ask);
    sleep(seconds(1)).await;
    stale.faults.thaw();
    let asked = Instant::now();
    own.await.expect("no panic").assert_refused("IDEMPOTENCY_REQUEST_IN_PROGRESS");
    follower.await.expect("no panic").assert_refused("IDEMPOTENCY_REQUEST_IN_PROGRESS");
    assert!(asked.elapsed() <= WAIT + LEASE, "{:?}", asked.elapsed());
    let won = won.await.expect("no panic");
    won.assert_first();
    stale.ask(&ask).await.assert_replays(&won);
    assert_eq!(world.store.rows(), ["Some(2)"]);
    assert_eq!(stale.idempotency.drain(seconds(1)).await, 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_kept_in_memory_yields_to_another_owners() {
    let world = World::new();
    let (stale, winner) = (world.process(), world.process());
    let ask = Ask::send(1, Act::AT_ONCE);
    stale.faults.next(StoreCall::Complete, Fault::FailBefore);
    stale.ask(&ask).await.assert_first();
    stale.faults.freeze();
    sleep(LEASE + seconds(1)).await;
    let won = winner.ask(&ask).await;
    won.assert_first();
    stale.faults.thaw();
    sleep(seconds(30)).await;
    stale.ask(&ask).await.assert_replays(&won);
    assert_eq!(world.store.rows(), ["Some(2)"]);
    assert_eq!(stale.idempotency.drain(seconds(1)).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_failed_operation_is_stored_without_its_effects() {
    for (act, status) in [
        (Act::Fail { after_ms: 10 }, 409),
        (Act::Panic { after_ms: 0 }, 500),
        (Act::Panic { after_ms: 10 }, 500),
        (Act::FailEffect, 500),
        (Act::PanicEffect, 500),
    ] {
        let world = World::new();
        let agent = world.process();
        let ask = Ask::send(1, act.clone());
        let first = agent.ask(&ask).await;
        first.assert_first();
        assert_eq!(first.status, status, "{act:?}");
        assert!(world.is_stored(&ask) && world.store.rows().is_empty(), "{act:?}");
        agent.ask(&ask).await.assert_replays(&first);
        world.process().ask(&ask).await.assert_replays(&first);
        assert_eq!(world.runs().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_key_effects_commit_and_nothing_else_is_kept() {
    let world = World::new();
    let agent = world.process_with(config().required(false));
    let ask = Ask::send(1, Act::AT_ONCE).without_activation();
    for _ in 0..2 {
        let answer = agent.ask(&ask).await;
        answer.assert_first();
        assert_eq!(answer.status, 200);
    }
    assert_eq!(world.store.rows().len(), 2);
    agent.faults.next(StoreCall::Commit, Fault::FailBefore);
    assert_eq!(agent.ask(&ask).await.status, 500);
    for act in [Act::FailEffect, Act::PanicEffect] {
        assert_eq!(agent.ask(&Ask::send(1, act).without_activation()).await.status, 500);
    }
    assert_eq!((world.store.rows().len(), world.store.claims(), world.store.entries()), (2, 0, 0));
    let streamed = agent.ask(&Ask::stream(2, Act::stream(3, 10, 5)).without_activation()).await;
    assert_eq!((streamed.body.matches("data:").count(), streamed.whole), (3, true));
    assert_eq!(world.store.rows().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn without_a_key_a_client_that_leaves_does_not_stop_the_operation() {
    let world = World::new();
    let agent = world.process_with(config().required(false));
    let ask = Ask::send(1, Act::succeed(5_000)).without_activation();
    assert!(timeout(seconds(1), agent.ask(&ask)).await.is_err());
    sleep(seconds(5)).await;
    assert_eq!(world.store.rows().len(), 1);
}

//! Who may run: claims, leases, takeovers, and what a store's failure means before an operation has begun.

use idempotent_core::testing::{Fault, StoreCall};
use tokio::time::{Instant, sleep};

use crate::world::*;

#[tokio::test(start_paused = true)]
async fn a_claim_whose_acknowledgement_was_lost_is_given_back() {
    let world = World::new();
    let agent = world.process();
    let ask = Ask::send(1, Act::AT_ONCE);
    agent.faults.next(StoreCall::Claim, Fault::FailAfter);
    agent.ask(&ask).await.assert_refused("IDEMPOTENCY_STORE_UNAVAILABLE");
    assert_eq!((world.store.claims(), world.runs().len()), (1, 0));
    sleep(seconds(1)).await;
    assert_eq!(world.store.claims(), 0);
    agent.ask(&ask).await.assert_first();
    assert_eq!(world.runs().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_careful_operation_that_never_began_is_not_of_unknown_outcome_after_a_long_outage() {
    for (call, header) in [(StoreCall::Claim, "x-none"), (StoreCall::Release, "x-refuse")] {
        let world = World::new();
        let agent = world.process();
        let ask = Ask::new(CAREFUL, 1, &Act::AT_ONCE);
        let fault = if call == StoreCall::Claim { Fault::FailAfter } else { Fault::FailBefore };
        agent.faults.next(call, fault);
        agent.ask(&ask.with_header(header, "0")).await;
        assert_eq!((world.store.claims(), world.runs().len()), (1, 0));
        agent.faults.down();
        sleep(LEASE * 5).await;
        agent.faults.up();
        sleep(seconds(10)).await;
        agent.ask(&ask).await.assert_first();
        assert_eq!(world.runs().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_after_the_claim_leaves_nothing_even_when_its_release_fails() {
    for fault in [None, Some(Fault::FailBefore), Some(Fault::FailAfter), Some(Fault::Twice), Some(Fault::PanicBefore)] {
        let world = World::new();
        let agent = world.process();
        let ask = Ask::send(1, Act::AT_ONCE);
        if let Some(fault) = fault {
            agent.faults.next(StoreCall::Release, fault);
        }
        assert_eq!(agent.ask(&ask.with_header("x-refuse", "0")).await.status, 429);
        sleep(seconds(1)).await;
        assert_eq!((world.store.claims(), world.store.entries()), (0, 0), "{fault:?}");
        agent.ask(&ask).await.assert_first();
    }
}

#[tokio::test(start_paused = true)]
async fn an_extractor_that_panics_is_no_execution() {
    let world = World::new();
    let agent = world.process();
    let ask = Ask::send(1, Act::AT_ONCE);
    let broken = agent.ask(&ask.with_header("x-break", "1")).await;
    assert_eq!(broken.status, 500);
    assert_eq!((world.store.claims(), world.store.entries()), (0, 0));
    agent.ask(&ask).await.assert_first();
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_took_longer_than_its_lease_runs_nothing_once_another_has_taken_over() {
    let world = World::new();
    let (slow, other) = (world.process(), world.process());
    let ask = Ask::send(1, Act::succeed(1_000));
    slow.faults.next(StoreCall::Claim, Fault::DelayAnswer(LEASE + seconds(4)));
    let late = slow.spawn(&ask);
    sleep(LEASE + seconds(1)).await;
    let first = other.ask(&ask).await;
    first.assert_first();
    late.await.expect("no panic").assert_replays(&first);
    assert_eq!(world.runs().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_took_longer_than_its_lease_runs_when_nobody_else_has_come() {
    let world = World::new();
    let agent = world.process();
    agent.faults.next(StoreCall::Claim, Fault::DelayAnswer(LEASE + seconds(4)));
    agent.ask(&Ask::send(1, Act::AT_ONCE)).await.assert_first();
    assert_eq!(world.runs().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_was_told_422_never_runs() {
    let world = World::new();
    let (here, elsewhere) = (world.process(), world.process());
    let ask = Ask::send(1, Act::succeed(5_000));
    here.faults.next(StoreCall::Claim, Fault::Delay(seconds(1)));
    let loser = here.spawn(&ask.with_payload("other"));
    sleep(seconds(1) / 2).await;
    let _lost = elsewhere.spawn(&ask);
    sleep(seconds(1) / 4).await;
    let follower = here.spawn(&ask);
    loser.await.expect("no panic").assert_refused("IDEMPOTENCY_KEY_REUSED_WITH_DIFFERENT_PAYLOAD");
    elsewhere.faults.kill();
    let answer = follower.await.expect("no panic");
    answer.assert_first();
    assert!(answer.body.contains("\"attempt\":2"), "{answer:?}");
    here.ask(&ask).await.assert_replays(&answer);
}

#[tokio::test(start_paused = true)]
async fn one_hung_renewal_does_not_lose_the_lease() {
    let world = World::new();
    let (owner, other) = (world.process(), world.process());
    let ask = Ask::send(1, Act::succeed(15_000));
    owner.faults.next(StoreCall::Renew, Fault::Hang);
    let own = owner.spawn(&ask);
    sleep(seconds(1)).await;
    let waiting = other.ask(&ask).await;
    let first = own.await.expect("no panic");
    first.assert_first();
    waiting.assert_replays(&first);
    assert_eq!(world.runs().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn renewals_that_fail_for_less_than_a_lease_change_nothing() {
    let world = World::new();
    let (owner, other) = (world.process(), world.process());
    let ask = Ask::send(1, Act::succeed(15_000));
    owner.faults.next(StoreCall::Renew, Fault::FailBefore).next(StoreCall::Renew, Fault::PanicBefore);
    let own = owner.spawn(&ask);
    sleep(seconds(1)).await;
    let waiting = other.ask(&ask).await;
    waiting.assert_replays(&own.await.expect("no panic"));
    assert_eq!(world.runs().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_operation_whose_owner_died_runs_again_when_the_lease_ends() {
    for fault in [Fault::DieBefore, Fault::DieAfter] {
        let world = World::new();
        let (owner, other) = (world.process(), world.process());
        let ask = Ask::send(1, Act::succeed(5_000));
        let _lost = owner.spawn(&ask);
        owner.faults.next(StoreCall::Renew, fault);
        sleep(seconds(4)).await;
        assert!(owner.faults.is_dead());
        other.ask(&ask.with_payload("other")).await.assert_refused("IDEMPOTENCY_KEY_REUSED_WITH_DIFFERENT_PAYLOAD");
        let asked = Instant::now();
        let answer = other.ask(&ask).await;
        answer.assert_first();
        assert!(answer.body.contains("\"attempt\":2"), "{answer:?}");
        assert!(asked.elapsed() < LEASE + seconds(6), "{:?}", asked.elapsed());
        assert_eq!(world.store.rows(), ["Some(2)"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_careful_operation_whose_owner_died_is_of_unknown_outcome() {
    let world = World::new();
    let (owner, other) = (world.process(), world.process());
    let ask = Ask::new(CAREFUL, 1, &Act::succeed(5_000));
    let _lost = owner.spawn(&ask);
    sleep(seconds(1)).await;
    owner.faults.kill();
    let waiting = other.ask(&ask).await;
    waiting.assert_refused("IDEMPOTENCY_OUTCOME_UNKNOWN");
    other.ask(&ask).await.assert_refused("IDEMPOTENCY_OUTCOME_UNKNOWN");
    other.ask(&ask.with_payload("other")).await.assert_refused("IDEMPOTENCY_KEY_REUSED_WITH_DIFFERENT_PAYLOAD");
    assert_eq!(world.runs().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_careful_owner_that_was_only_stopped_still_stores_its_answer() {
    let world = World::new();
    let (owner, other) = (world.process(), world.process());
    let ask = Ask::new(CAREFUL, 1, &Act::succeed(5_000));
    let own = owner.spawn(&ask);
    sleep(seconds(1)).await;
    owner.faults.freeze();
    sleep(LEASE * 2).await;
    other.ask(&ask).await.assert_refused("IDEMPOTENCY_OUTCOME_UNKNOWN");
    owner.faults.thaw();
    let first = own.await.expect("no panic");
    first.assert_first();
    other.ask(&ask).await.assert_replays(&first);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_hangs_panics_or_cannot_read_is_never_a_miss() {
    for (fault, code) in [
        (Fault::FailBefore, "IDEMPOTENCY_STORE_UNAVAILABLE"),
        (Fault::FailAfter, "IDEMPOTENCY_STORE_UNAVAILABLE"),
        (Fault::Hang, "IDEMPOTENCY_STORE_UNAVAILABLE"),
        (Fault::HangAfter, "IDEMPOTENCY_STORE_UNAVAILABLE"),
        (Fault::PanicBefore, "IDEMPOTENCY_STORE_UNAVAILABLE"),
        (Fault::PanicAfter, "IDEMPOTENCY_STORE_UNAVAILABLE"),
        (Fault::Corrupt, "IDEMPOTENCY_STORE_CORRUPT"),
    ] {
        for call in [StoreCall::Inspect, StoreCall::Claim] {
            let world = World::new();
            let agent = world.process();
            let ask = Ask::send(1, Act::AT_ONCE);
            agent.faults.next(call, fault);
            let asked = Instant::now();
            agent.ask(&ask).await.assert_refused(code);
            assert!(asked.elapsed() <= seconds(20), "{fault:?} {call:?}");
            assert_eq!(world.runs().len(), 0);
            sleep(seconds(1)).await;
            let first = agent.ask(&ask).await;
            first.assert_first();
            agent.faults.next(StoreCall::Inspect, fault);
            agent.ask(&ask).await.assert_refused(code);
            agent.ask(&ask).await.assert_replays(&first);
            assert_eq!(world.runs().len(), 1);
        }
    }
}

//! The client's connection does not own the execution: whenever its future is dropped, the operation runs to its end, once.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::StreamExt as _;
use idempotent_core::testing::{Fault, MemoryStore, StoreCall};
use tokio::time::{sleep, timeout};

use crate::world::*;

/// A future that is dropped by its owner after so many polls.
pub(crate) struct Impatient<F> {
    future: Pin<Box<F>>,
    polls_left: usize,
}

impl<F: Future> Future for Impatient<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.polls_left == 0 {
            return Poll::Ready(None);
        }
        self.polls_left -= 1;
        match self.future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            // Whoever has used up its last poll leaves at once, not at the next wake-up.
            Poll::Pending if self.polls_left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}

pub(crate) fn impatient<F: Future>(future: F, polls: usize) -> Impatient<F> {
    Impatient { future: Box::pin(future), polls_left: polls }
}

/// A process whose every call of the store takes time, before it and after it: there is an await wherever one can be.
fn slow(world: &World) -> Process {
    let agent = world.process();
    for call in 0..40 {
        let pause = Duration::from_millis(7);
        agent.faults.at(call, if call % 2 == 0 { Fault::Delay(pause) } else { Fault::DelayAnswer(pause) });
    }
    agent
}

#[tokio::test(start_paused = true)]
async fn a_request_may_be_dropped_at_every_await() {
    let acts = [Act::AT_ONCE, Act::succeed(30), Act::Fail { after_ms: 30 }, Act::Panic { after_ms: 30 }];
    let mut awaits = 0;
    for act in acts {
        for polls in 0.. {
            let world = World::new();
            let agent = slow(&world);
            let ask = Ask::send(1, act.clone());
            let answered = impatient(agent.ask(&ask), polls).await;
            sleep(seconds(1)).await;
            let ran_for_nobody = world.runs().len();
            assert!(ran_for_nobody <= 1);
            let retry = agent.ask(&ask).await;
            assert_eq!((retry.is_replay(), world.runs().len()), (ran_for_nobody == 1, 1), "{act:?} {polls}");
            assert!(world.is_stored(&ask) && world.store.claims() == 0);
            assert_eq!(agent.idempotency.drain(seconds(1)).await, 0);
            if let Some(first) = answered {
                first.assert_first();
                retry.assert_replays(&first);
                break;
            }
            awaits += 1;
        }
    }
    assert!(awaits > 10, "{awaits}");
}

#[tokio::test(start_paused = true)]
async fn a_stream_may_be_dropped_at_every_await() {
    for polls in 0.. {
        let world = World::new();
        let agent = slow(&world);
        let ask = Ask::stream(1, Act::stream(4, 20, 10));
        let answered = impatient(agent.ask(&ask), polls).await;
        sleep(seconds(1)).await;
        let ran_for_nobody = world.runs().len();
        let retry = agent.ask(&ask).await;
        assert_eq!((retry.is_replay(), world.runs().len()), (ran_for_nobody == 1, 1), "{polls}");
        assert_eq!((retry.body.matches("data:").count(), retry.whole), (4, true));
        assert_eq!(agent.idempotency.drain(seconds(1)).await, 0);
        if let Some(first) = answered {
            retry.assert_replays(&first);
            break;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_may_be_dropped_at_every_await_and_disturbs_nobody() {
    for elsewhere in [false, true] {
        for polls in 0.. {
            let world = World::new();
            let (agent, other) = (world.process(), slow(&world));
            let follower = if elsewhere { &other } else { &agent };
            let ask = Ask::send(1, Act::succeed(200));
            let own = agent.spawn(&ask);
            sleep(Duration::from_millis(1)).await;
            let answered = impatient(follower.ask(&ask), polls).await;
            let first = own.await.expect("no panic");
            first.assert_first();
            sleep(seconds(1)).await;
            assert_eq!(follower.idempotency.drain(seconds(0)).await, 0, "nobody is left waiting");
            assert_eq!(world.runs().len(), 1);
            if let Some(replay) = answered {
                replay.assert_replays(&first);
                break;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_request_that_is_dropped_at_any_await_leaves_nothing() {
    for polls in 0.. {
        let world = World::new();
        let agent = slow(&world);
        let ask = Ask::send(1, Act::AT_ONCE);
        let answered = impatient(agent.ask(&ask.with_header("x-refuse", "20")), polls).await;
        sleep(seconds(1)).await;
        assert_eq!((world.runs().len(), world.store.claims(), world.store.entries()), (0, 0, 0));
        agent.ask(&ask).await.assert_first();
        if answered.is_some() {
            break;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_time_out_around_the_agent_does_not_stop_the_operation() {
    let world = World::new();
    let agent = world.process();
    let ask = Ask::send(1, Act::succeed(5_000));
    assert!(timeout(seconds(1), agent.ask(&ask)).await.is_err());
    let waiting = agent.ask(&ask).await;
    assert!(waiting.is_replay());
    assert_eq!(world.runs().len(), 1);
    assert_eq!(world.store.rows(), ["Some(1)"]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_whose_reader_leaves_after_any_frame_is_recorded_to_its_end() {
    for frames in 0..=5 {
        let world = World::new();
        let agent = world.process_with(config().recording_memory_bytes(1_024).expect("enough"));
        let ask = Ask::stream(1, Act::stream(5, 400, 10));
        let mut body = agent.head(&ask).await.into_body().into_data_stream();
        for _ in 0..frames {
            body.next().await.expect("a frame").expect("no cut");
        }
        drop(body);
        sleep(seconds(1)).await;
        assert!(world.is_stored(&ask));
        let replay = agent.ask(&ask).await;
        assert_eq!((replay.is_replay(), replay.body.matches("data:").count(), replay.whole), (true, 5, true));
        assert_eq!(world.runs().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_nobody_waits_for_any_more_does_not_begin_when_another_process_lets_go() {
    let world = World::new();
    let (agent, other) = (world.process(), world.process());
    let ask = Ask::send(1, Act::succeed(5_000));
    let _lost = agent.spawn(&ask);
    sleep(seconds(1)).await;
    assert!(timeout(seconds(1), other.ask(&ask)).await.is_err());
    agent.faults.kill();
    sleep(LEASE * 2).await;
    assert_eq!(world.runs().len(), 1);
    assert_eq!(other.idempotency.drain(seconds(0)).await, 0);
}

#[test]
fn an_engine_outlives_a_runtime_that_ends_at_any_point() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    for polls in 0..8 {
        let lease = Duration::from_millis(20);
        let world = World::on(MemoryStore::default());
        let agent = world.process_with(config().lease(lease).expect("a lease"));
        let ask = Ask::send(1, Act::succeed(5));
        agent.faults.next(StoreCall::Inspect, Fault::Delay(Duration::from_millis(1)));
        runtime().block_on(impatient(agent.ask(&ask), polls));
        let answer = runtime().block_on(agent.ask(&ask));
        assert!(answer.refusal().is_none(), "{polls}: {answer:?}");
    }
}

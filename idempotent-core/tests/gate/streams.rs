//! Streams are recorded while they are sent: duplicates attach or replay, and nobody sees an end that is not durable.

use std::time::Duration;

use futures_util::StreamExt as _;
use idempotent_core::{
    Config,
    testing::{Fault, StoreCall},
};
use tokio::time::{Instant, sleep};

use crate::world::*;

const NOT_RETAINED: &str = "IDEMPOTENCY_RESPONSE_NOT_RETAINED";

fn small_memory() -> Config {
    config().recording_memory_bytes(1_024).expect("enough")
}

fn download(number: u16, events: u32, bytes: usize, gap_ms: u64, end: StreamEnd) -> Ask {
    Ask::new(DOWNLOAD, number, &Act::Stream { events, bytes, gap_ms, end })
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_attaches_from_the_first_byte_to_the_same_end() {
    for config in [config(), small_memory()] {
        let world = World::new();
        let agent = world.process_with(config);
        let ask = Ask::stream(1, Act::stream(20, 300, 100));
        let own = agent.spawn(&ask);
        sleep(Duration::from_millis(1_050)).await;
        let attached = agent.head(&ask).await;
        assert_eq!(attached.headers()["idempotent-replayed"], "true");
        let mut frames = attached.into_body().into_data_stream();
        let asked = Instant::now();
        let mut so_far = frames.next().await.expect("a frame").expect("no cut").len();
        while so_far < 3_000 {
            so_far += frames.next().await.expect("a frame").expect("no cut").len();
        }
        assert_eq!(asked.elapsed(), Duration::ZERO, "what was sent so far comes at once");
        drop(frames);
        let attached = agent.ask(&ask).await;
        let first = own.await.expect("no panic");
        first.assert_first();
        assert_eq!((first.body.matches("data:").count(), first.whole), (20, true));
        attached.assert_replays(&first);
        agent.ask(&ask).await.assert_replays(&first);
        world.process().ask(&ask).await.assert_replays(&first);
        assert_eq!(world.store.rows(), ["Some(1)"]);
        assert_eq!(world.runs().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_before_its_client_looks_is_still_the_first_answer() {
    for events in [0, 1, 20] {
        for ask in [Ask::stream(1, Act::stream(events, 300, 0)), download(1, events, 300, 0, StreamEnd::Complete)] {
            let world = World::new();
            let agent = world.process();
            let first = agent.ask(&ask).await;
            first.assert_first();
            agent.ask(&ask).await.assert_replays(&first);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_over_the_bound_reaches_its_reader_whole_and_leaves_a_tombstone() {
    for (bytes, gap_ms) in [(20, 0), (20, 10), (500, 0), (500, 10), (5_000, 0)] {
        for number in [1, 2] {
            let world = World::new();
            let agent = world.process_with(small_memory().max_response_bytes(100));
            let ask = match number {
                1 => Ask::stream(1, Act::stream(20, bytes, gap_ms)),
                _ => download(2, 20, bytes, gap_ms, StreamEnd::Complete),
            };
            let first = agent.ask(&ask).await;
            first.assert_first();
            assert!(first.whole);
            assert_eq!(first.body.matches("x").count(), 20 * bytes + first.body.matches("text").count());
            let later = agent.ask(&ask).await;
            later.assert_refused(NOT_RETAINED);
            assert!(later.body.contains(&format!("\"response_bytes\":{}", first.body.len())), "{later:?}");
            world.process().ask(&ask).await.assert_refused(NOT_RETAINED);
            agent.ask(&ask.with_payload("o")).await.assert_refused("IDEMPOTENCY_KEY_REUSED_WITH_DIFFERENT_PAYLOAD");
            assert_eq!((world.runs().len(), world.store.rows().len()), (1, 1));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_stream_is_only_seen_once_it_is_durable() {
    for fault in [Fault::Delay(seconds(3)), Fault::DelayAnswer(seconds(3))] {
        let world = World::new();
        let agent = world.process();
        let ask = Ask::stream(1, Act::stream(3, 10, 10));
        agent.faults.next(StoreCall::Complete, fault);
        let own = agent.spawn(&ask);
        sleep(Duration::from_millis(5)).await;
        let attached = agent.spawn(&ask);
        sleep(seconds(2)).await;
        assert!(!own.is_finished() && !attached.is_finished());
        let first = own.await.expect("no panic");
        assert!(world.is_stored(&ask));
        attached.await.expect("no panic").assert_replays(&first);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_whose_end_could_not_be_stored_ends_replays_and_is_stored_later_with_its_effects() {
    for fault in [Fault::FailBefore, Fault::FailAfter, Fault::PanicBefore, Fault::PanicAfter, Fault::Hang] {
        for config in [config(), small_memory()] {
            let world = World::new();
            let agent = world.process_with(config);
            let ask = Ask::stream(1, Act::stream(10, 300, 10));
            agent.faults.next(StoreCall::Complete, fault);
            let first = agent.ask(&ask).await;
            first.assert_first();
            assert!(first.whole, "{fault:?}");
            agent.ask(&ask).await.assert_replays(&first);
            sleep(seconds(2)).await;
            assert_eq!(world.store.rows(), ["Some(1)"]);
            agent.ask(&ask).await.assert_replays(&first);
            world.process().ask(&ask).await.assert_replays(&first);
            assert_eq!(agent.idempotency.drain(seconds(1)).await, 0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_chunk_that_cannot_be_stored_costs_the_replay_and_not_the_live_reader() {
    for fault in [Fault::FailBefore, Fault::FailAfter, Fault::PanicBefore, Fault::Hang] {
        let world = World::new();
        let agent = world.process_with(small_memory());
        let ask = Ask::stream(1, Act::stream(20, 300, 10));
        agent.faults.next(StoreCall::AppendChunk, Fault::Twice).next(StoreCall::AppendChunk, fault);
        let first = agent.ask(&ask).await;
        first.assert_first();
        assert_eq!((first.body.matches("data:").count(), first.whole), (20, true), "{fault:?}");
        agent.ask(&ask).await.assert_refused(NOT_RETAINED);
        assert_eq!((world.runs().len(), world.store.rows().len()), (1, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_fails_midway_ends_with_its_error_and_commits_no_effects() {
    for end in [StreamEnd::Error, StreamEnd::Panic, StreamEnd::FailEffect] {
        for gap_ms in [0, 10] {
            let world = World::new();
            let agent = world.process();
            let ask = Ask::stream(1, Act::Stream { events: 3, bytes: 10, gap_ms, end });
            let first = agent.ask(&ask).await;
            first.assert_first();
            assert_eq!((first.status.as_u16(), first.whole), (200, true));
            let last = first.body.trim_end().lines().last().expect("a line");
            let code = if end == StreamEnd::Error { -32000 } else { -32603 };
            assert!(last.starts_with("data:") && last.contains(&format!("\"code\":{code}")), "{first:?}");
            agent.ask(&ask).await.assert_replays(&first);
            world.process().ask(&ask).await.assert_replays(&first);
            assert_eq!((world.runs().len(), world.store.rows().len()), (1, 0));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_without_events_that_breaks_off_is_cut_and_leaves_a_tombstone() {
    for end in [StreamEnd::Error, StreamEnd::Panic, StreamEnd::FailEffect] {
        for gap_ms in [0, 10] {
            let world = World::new();
            let agent = world.process();
            let ask = download(1, 3, 10, gap_ms, end);
            let first = agent.ask(&ask).await;
            first.assert_first();
            assert!(!first.whole, "{first:?}");
            agent.ask(&ask).await.assert_refused(NOT_RETAINED);
            assert_eq!((world.runs().len(), world.store.rows().len()), (1, 0));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_before_the_first_event_is_plain_json_and_replays() {
    let world = World::new();
    let agent = world.process();
    let ask = Ask::stream(1, Act::Stream { events: 0, bytes: 0, gap_ms: 5, end: StreamEnd::Error });
    let first = agent.ask(&ask).await;
    first.assert_first();
    assert_eq!(first.headers["content-type"], "application/json");
    agent.ask(&ask).await.assert_replays(&first);
    assert!(world.store.rows().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_stale_stream_is_cut_without_an_end() {
    for config in [config(), small_memory()] {
        let world = World::new();
        let (stale, winner) = (world.process_with(config), world.process());
        let ask = Ask::stream(1, Act::stream(10, 300, 500));
        let (own, attached) = (stale.spawn(&ask), stale.spawn(&ask));
        sleep(seconds(2)).await;
        stale.faults.freeze();
        sleep(LEASE).await;
        let won = winner.ask(&ask).await;
        won.assert_first();
        assert!(won.whole);
        stale.faults.thaw();
        assert!(!own.await.expect("no panic").whole);
        assert!(!attached.await.expect("no panic").whole);
        sleep(seconds(10)).await;
        stale.ask(&ask).await.assert_replays(&won);
        assert_eq!(world.store.rows(), ["Some(2)"]);
        assert_eq!(stale.idempotency.drain(seconds(1)).await, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_takes_nothing_slows_nobody_as_long_as_the_body_is_kept() {
    let world = World::new();
    let agent = world.process_with(small_memory());
    let ask = Ask::stream(1, Act::stream(50, 300, 10));
    let own = agent.head(&ask).await;
    let idle = agent.head(&ask).await;
    let asked = Instant::now();
    let attached = agent.ask(&ask).await;
    assert!(asked.elapsed() <= seconds(1), "{:?}", asked.elapsed());
    let own = Answer::read(own).await;
    own.assert_first();
    attached.assert_replays(&own);
    Answer::read(idle).await.assert_replays(&own);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_takes_nothing_of_a_body_that_is_not_kept_is_cut_and_the_operation_ends() {
    let world = World::new();
    let agent = world.process_with(small_memory().max_response_bytes(100));
    let ask = Ask::stream(1, Act::stream(50, 300, 10));
    let idle = agent.head(&ask).await;
    sleep(seconds(120)).await;
    assert!(world.is_stored(&ask));
    assert!(!Answer::read(idle).await.whole);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_on_another_process_gets_the_stream_at_its_end() {
    let world = World::new();
    let (agent, other) = (world.process(), world.process());
    let ask = Ask::stream(1, Act::stream(10, 30, 100));
    let own = agent.spawn(&ask);
    sleep(Duration::from_millis(500)).await;
    let replay = other.ask(&ask).await;
    replay.assert_replays(&own.await.expect("no panic"));
}

#[tokio::test(start_paused = true)]
async fn an_attached_reader_has_no_wait_budget() {
    let world = World::new();
    let agent = world.process();
    let ask = Ask::stream(1, Act::stream(10, 30, 10_000));
    let own = agent.spawn(&ask);
    sleep(seconds(15)).await;
    let attached = agent.ask(&ask).await;
    attached.assert_replays(&own.await.expect("no panic"));
}

#[tokio::test(start_paused = true)]
async fn a_replay_whose_chunks_are_gone_breaks_off() {
    let world = World::new();
    let agent = world.process_with(small_memory());
    let ask = Ask::stream(1, Act::stream(20, 300, 10));
    agent.ask(&ask).await.assert_first();
    agent.faults.next(StoreCall::ReadChunk, Fault::FailBefore);
    let broken = agent.ask(&ask).await;
    assert!(broken.is_replay() && !broken.whole);
    agent.faults.next(StoreCall::ReadChunk, Fault::Hang);
    assert!(!agent.ask(&ask).await.whole);
}

#[tokio::test(start_paused = true)]
async fn a_body_of_known_length_is_collected_only_when_it_can_be_kept() {
    let world = World::new();
    let agent = world.process_with(small_memory().max_response_bytes(10_000));
    for (events, kept) in [(10, true), (11, false)] {
        let ask = Ask::new(SIZED, events as u16, &Act::Sized { events, bytes: 1_000, gap_ms: 100 });
        let asked = Instant::now();
        let head = agent.head(&ask).await;
        assert_eq!(asked.elapsed() > seconds(1), kept, "whole answers wait for their end, {events}");
        let first = Answer::read(head).await;
        first.assert_first();
        assert_eq!((first.body.len(), first.whole), (events as usize * 1_000, true));
        match kept {
            true => agent.ask(&ask).await.assert_replays(&first),
            false => agent.ask(&ask).await.assert_refused(NOT_RETAINED),
        }
    }
}

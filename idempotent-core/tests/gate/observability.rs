//! What operators and handlers get to know: spans, warnings, counts, headers.

use std::{
    io,
    sync::{Arc, Mutex},
};

use idempotent_core::{
    Outcome, ReplayedHeader,
    testing::{Fault, StoreCall},
};
use tracing::Instrument as _;
use tracing_subscriber::fmt::MakeWriter;

use crate::world::*;

/// Everything that is logged in this thread, as text.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl Logged {
    fn capture() -> (Self, tracing::subscriber::DefaultGuard) {
        let logged = Self::default();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(logged.clone()).finish();
        (logged, tracing::subscriber::set_default(subscriber))
    }

    fn lines_with(&self, text: &str) -> Vec<String> {
        let bytes = self.0.lock().expect("not poisoned").clone();
        let all = String::from_utf8(bytes).expect("text");
        all.lines().filter(|line| line.contains(text)).map(str::to_owned).collect()
    }
}

impl io::Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("not poisoned").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Logged {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test(start_paused = true)]
async fn the_requests_span_goes_with_its_operation_and_with_what_is_left_to_do_after_it() {
    let (logged, _guard) = Logged::capture();
    let world = World::new();
    let agent = world.process();
    let ask = Ask::send(1, Act::Panic { after_ms: 10 });
    agent.faults.next(StoreCall::Complete, Fault::FailBefore).next(StoreCall::Complete, Fault::FailBefore);
    let span = tracing::info_span!("request", number = 7);
    agent.ask(&ask).instrument(span).await.assert_first();
    tokio::time::sleep(seconds(1)).await;
    for told in ["the handler runs", "a handler panicked", "an answer could not be stored"] {
        let lines = logged.lines_with(told);
        assert!(!lines.is_empty(), "{told}");
        assert!(lines.iter().all(|line| line.contains("request{number=7}")), "{lines:?}");
    }
    assert_eq!(logged.lines_with("an answer could not be stored").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn credentials_without_a_scope_are_warned_of_once_per_method() {
    let (logged, _guard) = Logged::capture();
    let world = World::new();
    let agent = world.process();
    let warnings = || logged.lines_with("has no scope").len();
    agent.ask(&Ask::send(1, Act::AT_ONCE)).await;
    agent.ask(&Ask::send(2, Act::AT_ONCE).with_header("x-tenant", "alice").with_header("cookie", "a=b")).await;
    assert_eq!(warnings(), 0);
    for number in 3..6 {
        agent.ask(&Ask::send(number, Act::AT_ONCE).with_header("authorization", "Bearer x")).await;
    }
    assert_eq!(warnings(), 1);
    agent.ask(&Ask::new(CAREFUL, 6, &Act::AT_ONCE).with_header("cookie", "a=b")).await;
    assert_eq!(warnings(), 2);
}

#[tokio::test(start_paused = true)]
async fn callers_without_a_scope_are_not_told_of_replays_where_that_is_withheld() {
    let world = World::new();
    let agent = world.process_with(config().replayed_header(ReplayedHeader::ScopedCallers));
    let ask = Ask::send(1, Act::AT_ONCE);
    assert_eq!(agent.ask(&ask).await, agent.ask(&ask).await);
    let scoped = ask.with_header("x-tenant", "alice");
    let first = agent.ask(&scoped).await;
    agent.ask(&scoped).await.assert_replays(&first);
}

#[tokio::test(start_paused = true)]
async fn requests_are_counted_by_what_became_of_them() {
    let world = World::new();
    let agent = world.process();
    let ask = Ask::send(1, Act::succeed(60_000));
    let own = agent.spawn(&ask);
    tokio::task::yield_now().await;
    agent.ask(&ask).await.assert_refused("IDEMPOTENCY_REQUEST_IN_PROGRESS");
    agent.ask(&ask.with_payload("other")).await;
    own.await.expect("no panic").assert_first();
    agent.ask(&ask).await;
    agent.ask(&ask).await;
    agent.ask(&Ask::send(2, Act::AT_ONCE).with_header("x-deny", "1")).await;
    agent.ask(&Ask::send(2, Act::AT_ONCE).with_header("x-refuse", "1")).await;
    agent.faults.next(StoreCall::Claim, Fault::FailBefore);
    agent.ask(&Ask::send(3, Act::AT_ONCE)).await;
    let counted = |outcome| agent.idempotency.metrics().requests(SEND, outcome);
    assert_eq!(
        [Outcome::Executed, Outcome::Replayed, Outcome::Collision, Outcome::InProgress, Outcome::Refused].map(counted),
        [1, 2, 1, 1, 3]
    );
}

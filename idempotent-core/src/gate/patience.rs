//! How long the gate waits for its store, and how often it tries again.

use std::{panic::AssertUnwindSafe, time::Duration};

use futures_core::future::BoxFuture;
use futures_util::FutureExt as _;
use tokio::time::{Instant, sleep, timeout};

use crate::{
    message_id::Key,
    store::{Store, StoreError, StoreResult},
};

/// How long the gate waits for one call of the store.
const STORE_PATIENCE: Duration = Duration::from_secs(15);

/// Pauses between looks at a key that another process holds.
pub(super) const FIRST_LOOK: Duration = Duration::from_millis(10);
const LAST_LOOK: Duration = Duration::from_millis(100);

/// The shortest pause between two looks.
const MOMENT: Duration = Duration::from_millis(1);

/// Pauses between tries of a call that must succeed in the end.
const FIRST_RETRY: Duration = Duration::from_millis(100);
const LAST_RETRY: Duration = Duration::from_secs(5);

/// What stands for "for ever" where a moment is needed; `Duration::MAX` from now is beyond what `Instant` can hold.
const FAR_FUTURE: Duration = Duration::from_secs(30 * 365 * 86_400);

fn longer(pause: Duration, at_most: Duration) -> Duration {
    (pause * 2).min(at_most)
}

pub(super) fn next_look(pause: Duration) -> Duration {
    longer(pause, LAST_LOOK)
}

/// The moment when `wait` will have passed.
pub(super) fn from_now(wait: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(wait).unwrap_or(now + FAR_FUTURE)
}

/// Calls the store, but not for ever.
pub(crate) async fn patiently<T>(call: BoxFuture<'_, StoreResult<T>>) -> StoreResult<T> {
    within(STORE_PATIENCE, call).await
}

/// Calls the store. When it takes longer than `patience`, or panics, it is unavailable.
pub(super) async fn within<T>(patience: Duration, call: BoxFuture<'_, StoreResult<T>>) -> StoreResult<T> {
    match timeout(patience, AssertUnwindSafe(call).catch_unwind()).await {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err(StoreError::unavailable("the store panicked")),
        Err(elapsed) => Err(StoreError::unavailable(elapsed)),
    }
}

/// Waits until the key may have changed, and no longer than `at_most`, whatever the store does.
///
/// And not shorter than a moment: a store that says at once that a key has changed, each time that it is asked (such as of a key
/// that nobody holds), is not looked at in a tight loop.
pub(super) async fn changed<C: 'static>(store: &dyn Store<Connection = C>, key: &Key, at_most: Duration) {
    let told = timeout(at_most, AssertUnwindSafe(store.changed(key, at_most)).catch_unwind());
    if let (Ok(Err(_)), ()) = tokio::join!(told, sleep(MOMENT)) {
        sleep(at_most).await;
    }
}

/// Growing pauses between tries, until it is time to give up.
pub(super) struct Retries {
    pause: Duration,
    until: Instant,
}

impl Retries {
    pub(super) fn for_as_long_as(give_up: Duration) -> Self {
        Self { pause: FIRST_RETRY, until: from_now(give_up) }
    }

    /// Waits before the next try. `false` when it is time to give up.
    pub(super) async fn again(&mut self) -> bool {
        if Instant::now() >= self.until {
            return false;
        }
        sleep(self.pause).await;
        self.pause = longer(self.pause, LAST_RETRY);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        clock::ManualClock,
        message_id::{MessageId, Scope},
        testing::MemoryStore,
    };

    #[tokio::test(start_paused = true)]
    async fn a_store_that_says_at_once_that_a_key_has_changed_is_not_asked_in_a_tight_loop() {
        let store = MemoryStore::new(ManualClock::at_seconds(1));
        let vacant = Key { scope: Scope::global(), message_id: MessageId::generate() };
        let before = Instant::now();
        changed(&store, &vacant, FIRST_LOOK).await;
        assert!((MOMENT..=FIRST_LOOK).contains(&before.elapsed()));
    }
}

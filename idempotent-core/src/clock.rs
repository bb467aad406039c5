//! What time it is: the wall clock, or in tests one that is set by hand.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// A source of wall-clock time for stores that judge expiry themselves.
///
/// A store that several machines share asks its database instead.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Milliseconds since the Unix epoch.
    fn now_millis(&self) -> u64;

    /// Whole seconds since the Unix epoch, rounded down.
    fn now_seconds(&self) -> u64 {
        self.now_millis() / 1000
    }
}

/// The operating system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_millis(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

/// A clock that stands still until it is moved: for tests of expiry and leases.
///
/// ```
/// use std::time::Duration;
/// use idempotent_core::{Clock, ManualClock};
///
/// let clock = ManualClock::at_seconds(1_000);
/// clock.advance(Duration::from_millis(1_500));
/// assert_eq!(clock.now_seconds(), 1_001);
/// ```
#[derive(Debug, Clone, Default)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    /// A clock that shows `seconds` after the Unix epoch.
    pub fn at_seconds(seconds: u64) -> Self {
        Self(Arc::new(AtomicU64::new(seconds * 1000)))
    }

    /// Moves the clock, and every clone of it, forward.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(u64::try_from(by.as_millis()).unwrap_or(u64::MAX), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_millis(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

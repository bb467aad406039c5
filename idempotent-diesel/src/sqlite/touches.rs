//! Replays noted in memory until the writer has time for them: the eviction order is not worth a write per replay.

use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use idempotent_core::Key;

/// How many replays wait at most. Beyond that new keys are forgotten: their entries look older than they are.
const CAPACITY: usize = 65_536;

#[derive(Debug, Default)]
pub(crate) struct Touches {
    pending: Mutex<HashMap<Key, i64>>,
    /// Microseconds since the Unix epoch, pushed forward where the clock does not move: so the order is total in one process,
    /// and good enough among several.
    last_used: AtomicU64,
}

impl Touches {
    /// Lets every mark to come be younger than this one, which the file already has.
    pub(crate) fn start_after(&self, last_used: i64) {
        self.last_used.fetch_max(u64::try_from(last_used).unwrap_or(0), Ordering::Relaxed);
    }

    /// A mark younger than all before it.
    pub(crate) fn mark(&self, now_millis: u64) -> i64 {
        let now = now_millis.saturating_mul(1000);
        let next = |last: u64| Some(now.max(last.saturating_add(1)));
        let last = self.last_used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        i64::try_from(now.max(last.unwrap_or(0).saturating_add(1))).unwrap_or(i64::MAX)
    }

    pub(crate) fn note(&self, key: &Key, now_millis: u64) {
        let mut pending = self.pending();
        // Marked under the lock, so that a later replay never has the smaller mark.
        let mark = self.mark(now_millis);
        if let Some(earlier) = pending.get_mut(key) {
            *earlier = mark;
        } else if pending.len() < CAPACITY {
            pending.insert(key.clone(), mark);
        }
    }

    pub(crate) fn take(&self, at_most: usize) -> Vec<(Key, i64)> {
        let mut pending = self.pending();
        if pending.len() <= at_most {
            return pending.drain().collect();
        }
        let keys: Vec<Key> = pending.keys().take(at_most).cloned().collect();
        keys.into_iter().filter_map(|key| pending.remove_entry(&key)).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.pending().len()
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<Key, i64>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

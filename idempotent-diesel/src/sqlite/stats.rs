//! Counts of what the writer did.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a [`SqliteStore`](super::SqliteStore)'s writer has done since it was opened.
///
/// `operations / commits` is how many operations shared a transaction; only `durable_commits` waited for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SqliteStats {
    /// Operations carried out, failed ones included.
    pub operations: u64,
    /// Transactions committed.
    pub commits: u64,
    /// Those of them that were on the disk before anybody was answered (`synchronous = FULL`).
    pub durable_commits: u64,
    /// Transactions rolled back and done again, since one of their operations had failed in a way that concerned others.
    pub redone: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    operations: AtomicU64,
    commits: AtomicU64,
    durable_commits: AtomicU64,
    redone: AtomicU64,
}

impl Counters {
    pub(crate) fn operations(&self, number: usize) {
        self.operations.fetch_add(number as u64, Ordering::Relaxed);
    }

    pub(crate) fn commit(&self, durable: bool) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.durable_commits.fetch_add(u64::from(durable), Ordering::Relaxed);
    }

    pub(crate) fn redone(&self) {
        self.redone.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> SqliteStats {
        SqliteStats {
            operations: self.operations.load(Ordering::Relaxed),
            commits: self.commits.load(Ordering::Relaxed),
            durable_commits: self.durable_commits.load(Ordering::Relaxed),
            redone: self.redone.load(Ordering::Relaxed),
        }
    }
}

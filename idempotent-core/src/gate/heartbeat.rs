//! Keeps a claim alive while its operation runs.

use std::{sync::Arc, time::Duration};

use tokio::{
    task::JoinHandle,
    time::{Instant, MissedTickBehavior},
};
use tokio_util::sync::CancellationToken;

use super::patience::within;
use crate::store::{Claim, Store};

/// Renews a claim three times per lease, in a task of its own, until it is dropped.
pub(crate) struct Heartbeat {
    task: JoinHandle<()>,
    lost: CancellationToken,
}

impl Heartbeat {
    pub(crate) fn start<C: 'static>(store: Arc<dyn Store<Connection = C>>, claim: Claim, lease: Duration) -> Self {
        let lost = CancellationToken::new();
        let told = lost.clone();
        let task = tokio::spawn(async move {
            let beat = (lease / 3).max(Duration::from_millis(1));
            let mut beats = tokio::time::interval_at(Instant::now() + beat, beat);
            beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                beats.tick().await;
                // Not longer than a beat: a call that hangs leaves time for another one within the lease.
                match within(beat, store.renew(&claim, lease)).await {
                    Ok(true) => {}
                    Ok(false) => {
                        tracing::warn!(attempt = claim.attempt, "another owner has taken an operation over");
                        told.cancel();
                        return;
                    }
                    // The store may come back before the lease has ended; and the claim is fenced in any case.
                    Err(error) => tracing::warn!(%error, "a claim could not be renewed"),
                }
            }
        });
        Self { task, lost }
    }

    /// Told when the claim is not the current one any more.
    pub(crate) fn lost(&self) -> CancellationToken {
        self.lost.clone()
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.task.abort();
    }
}

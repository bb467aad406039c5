//! Keeps a claim alive while its operation runs.

use std::{sync::Arc, time::Duration};

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

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
            loop {
                tokio::time::sleep(beat).await;
                match tokio::time::timeout(lease, store.renew(&claim, lease)).await {
                    Ok(Ok(true)) => {}
                    Ok(Ok(false)) => {
                        tracing::warn!(attempt = claim.attempt, "another owner has taken an operation over");
                        told.cancel();
                        return;
                    }
                    // The store may come back before the lease has ended; and the claim is fenced in any case.
                    Ok(Err(error)) => tracing::warn!(%error, "a claim could not be renewed"),
                    Err(_) => tracing::warn!("renewing a claim took longer than its lease"),
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

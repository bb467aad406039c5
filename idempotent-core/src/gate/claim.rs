//! Gets a flight its claim, and gives back one that nothing was run under.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use uuid::Uuid;

use super::{
    Ask,
    flight::{Landing, Phase, Settled},
    patience::{FIRST_LOOK, Retries, changed, next_look, patiently},
};
use crate::{
    engine::Engine,
    store::{Claim, ClaimOutcome, ClaimRequest, Occupant, OnTakeover, StoreError},
};

impl From<&StoreError> for Settled {
    fn from(error: &StoreError) -> Self {
        match error {
            StoreError::Unavailable(_) => Self::Unavailable,
            StoreError::Corrupt(_) => Self::Corrupt,
        }
    }
}

/// Waits until the key is ours. `None` when it never will be; the flight is settled then.
pub(super) async fn claim<C: 'static>(landing: &Landing<C>, ask: &Ask) -> Option<Claim> {
    let Landing { engine, flight } = landing;
    let lease = engine.config.lease;
    let request = ClaimRequest {
        key: ask.key.clone(),
        request_hash: ask.request_hash,
        operation: ask.operation.into(),
        lease,
        on_takeover: ask.on_takeover,
        nonce: Uuid::now_v7(),
    };
    let mut pause = FIRST_LOOK;
    // Won, but not in time.
    let mut late = None;
    loop {
        // Drain waits for this task, so whatever begins before drain does is finished.
        if engine.is_draining() {
            landing.settle(Settled::Unavailable);
            if let Some(claim) = late {
                release(engine, &claim, ask.on_takeover).await;
            }
            return None;
        }
        let asked = Instant::now();
        let answer = match patiently(engine.store.claim(request.clone())).await {
            // The lease may have ended while the answer was on its way: it is renewed, then asked for again by its nonce.
            Ok(ClaimOutcome::Won(claim)) if asked.elapsed() >= lease => {
                match patiently(engine.store.renew(&claim, lease)).await {
                    Ok(_) => {
                        late = Some(claim);
                        continue;
                    }
                    Err(error) => Err(error),
                }
            }
            answer => answer,
        };
        let mut occupant = match answer {
            Ok(ClaimOutcome::Won(claim)) => return Some(claim),
            Ok(ClaimOutcome::Occupied(occupant)) => occupant,
            Err(error) => {
                tracing::error!(%error, "a claim failed");
                landing.settle((&error).into());
                engine.spawn(give_back(Arc::clone(engine), request));
                return None;
            }
        };
        loop {
            match occupant {
                Occupant::InFlight { request_hash, operation, .. } if ask.is_for(request_hash, &operation) => {
                    flight.enter(Phase::Elsewhere);
                }
                // Another request's claim counts as settled too: this flight's own is turned down by it, and must not run later.
                settled => {
                    landing.settle(Settled::Occupied(Box::new(settled)));
                    return None;
                }
            }
            changed(&*engine.store, &ask.key, pause).await;
            pause = next_look(pause);
            if engine.flights.remove_unfollowed(flight) {
                return None;
            }
            match patiently(engine.store.inspect(&ask.key)).await {
                Ok(Some(still)) => occupant = still,
                Ok(None) => break,
                Err(error) => {
                    tracing::error!(%error, "a key that another process holds could not be looked up");
                    landing.settle((&error).into());
                    return None;
                }
            }
        }
    }
}

/// For how long the claim of an operation that has not begun stands in the way of its retries.
fn in_the_way<C: 'static>(engine: &Engine<C>, on_takeover: OnTakeover) -> Duration {
    match on_takeover {
        OnTakeover::Run => engine.config.lease,
        // After the lease it says that the outcome is unknown.
        OnTakeover::Refuse => Duration::from_secs(engine.config.retention.ttl_seconds),
    }
}

/// A claim that failed may have been made all the same: nobody should have to wait for its end.
async fn give_back<C: 'static>(engine: Arc<Engine<C>>, request: ClaimRequest) {
    let mut retries = Retries::for_as_long_as(in_the_way(&engine, request.on_takeover));
    while retries.again().await {
        match patiently(engine.store.claim(request.clone())).await {
            Ok(ClaimOutcome::Won(claim)) => {
                if patiently(engine.store.release(&claim)).await.is_ok() {
                    return;
                }
            }
            Ok(ClaimOutcome::Occupied(_)) => return,
            Err(_) => {}
        }
    }
}

/// Removes the claim of an operation that has not begun; in the background when the store fails.
pub(super) async fn release<C: 'static>(engine: &Arc<Engine<C>>, claim: &Claim, on_takeover: OnTakeover) {
    if patiently(engine.store.release(claim)).await.is_ok() {
        return;
    }
    let mut retries = Retries::for_as_long_as(in_the_way(engine, on_takeover));
    let (engine_, claim) = (Arc::clone(engine), claim.clone());
    engine.spawn(async move {
        while retries.again().await {
            if patiently(engine_.store.release(&claim)).await.is_ok() {
                return;
            }
        }
    });
}

//! A flight: what happens to one key in this process, told to every request that asks for it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::response::Response;
use bytes::Bytes;
use tokio::sync::{oneshot, watch};

use crate::{
    engine::Engine, message_id::Key, recording::Recording, request_hash::RequestHash, response::Head, store::Occupant,
};

/// One key's way from claim to answer.
pub(crate) struct Flight {
    pub(crate) key: Key,
    /// What the request that began it asked for.
    pub(crate) request_hash: RequestHash,
    pub(crate) operation: &'static str,
    phase: watch::Sender<Phase>,
}

/// How far a flight has come.
#[derive(Clone)]
pub(crate) enum Phase {
    /// The store has not yet said whom the key belongs to; nobody can be judged by this flight.
    Claiming,
    /// The same request is in flight in another process.
    Elsewhere,
    /// The key is ours and the operation runs.
    Running,
    /// The operation answers with a stream, which can be followed.
    Streaming(Arc<Recording>),
    /// The flight is over.
    Settled(Settled),
}

/// How a flight ended.
#[derive(Clone)]
pub(crate) enum Settled {
    /// The operation answered.
    Answered(Arc<Kept>),
    /// The key was taken, by an answer or by another request; everybody judges by this.
    Occupied(Box<Occupant>),
    /// The request was turned down by an extractor; nobody else's is, by this.
    Refused,
    /// Another process has taken over, or nothing is known: look again.
    Superseded,
    /// The store failed before the operation began.
    Unavailable,
    /// The store holds a row that cannot be read.
    Corrupt,
}

/// A whole answer in memory.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) head: Head,
    pub(crate) body: Bytes,
    /// Whether it may be replayed, or was too large.
    pub(crate) retained: bool,
}

impl Flight {
    pub(crate) fn new(key: Key, request_hash: RequestHash, operation: &'static str) -> Arc<Self> {
        Arc::new(Self { key, request_hash, operation, phase: watch::Sender::new(Phase::Claiming) })
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.send_replace(phase);
    }

    pub(crate) fn is_settled(&self) -> bool {
        matches!(*self.phase.borrow(), Phase::Settled(_))
    }

    pub(crate) fn was_refused(&self) -> bool {
        matches!(*self.phase.borrow(), Phase::Settled(Settled::Refused))
    }

    pub(crate) fn follow(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }
}

/// A request's place at a flight.
pub(crate) struct Seat {
    pub(crate) flight: Arc<Flight>,
    pub(crate) phase: watch::Receiver<Phase>,
    /// There for the request that began the flight: its own answer, sent before the phase that tells of it.
    pub(crate) own: Option<oneshot::Receiver<Response>>,
}

/// The flights of this process, at most one for each key.
#[derive(Default)]
pub(crate) struct Flights(Mutex<HashMap<Key, Arc<Flight>>>);

impl Flights {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Arc<Flight>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A seat at the key's flight, if there is one.
    pub(crate) fn join(&self, key: &Key) -> Option<Seat> {
        let flights = self.lock();
        let flight = flights.get(key)?;
        Some(Seat { flight: Arc::clone(flight), phase: flight.follow(), own: None })
    }

    /// A seat at the key's flight; the new one that `begin` makes where there is none.
    pub(crate) fn join_or_begin(
        &self,
        key: &Key,
        begin: impl FnOnce() -> (Arc<Flight>, oneshot::Receiver<Response>),
    ) -> Seat {
        let mut flights = self.lock();
        if let Some(flight) = flights.get(key) {
            return Seat { flight: Arc::clone(flight), phase: flight.follow(), own: None };
        }
        let (flight, own) = begin();
        flights.insert(key.clone(), Arc::clone(&flight));
        Seat { phase: flight.follow(), flight, own: Some(own) }
    }

    /// Takes a flight off the board.
    pub(crate) fn remove(&self, flight: &Arc<Flight>) {
        let mut flights = self.lock();
        if flights.get(&flight.key).is_some_and(|current| Arc::ptr_eq(current, flight)) {
            flights.remove(&flight.key);
        }
    }

    /// Takes a flight off the board if no request follows it any more, and says whether it did.
    pub(crate) fn remove_unfollowed(&self, flight: &Arc<Flight>) -> bool {
        let mut flights = self.lock();
        if flight.phase.receiver_count() > 0 {
            return false;
        }
        if flights.get(&flight.key).is_some_and(|current| Arc::ptr_eq(current, flight)) {
            flights.remove(&flight.key);
        }
        true
    }
}

/// Settles a flight, at the latest when its task ends, however it ends, even if it never began.
pub(crate) struct Landing<C: 'static> {
    pub(crate) engine: Arc<Engine<C>>,
    pub(crate) flight: Arc<Flight>,
}

impl<C: 'static> Landing<C> {
    /// Takes the flight off the board, then tells its followers: whoever comes in between asks the store.
    pub(crate) fn settle(&self, settled: Settled) {
        self.engine.flights.remove(&self.flight);
        self.flight.enter(Phase::Settled(settled));
    }
}

impl<C: 'static> Drop for Landing<C> {
    fn drop(&mut self) {
        self.engine.flights.remove(&self.flight);
        if !self.flight.is_settled() {
            self.flight.enter(Phase::Settled(Settled::Superseded));
        }
    }
}

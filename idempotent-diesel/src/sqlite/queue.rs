//! A queue from async tasks to threads: pushing never waits, popping blocks.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

#[derive(Debug)]
pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    ready: Condvar,
}

#[derive(Debug)]
struct State<T> {
    items: VecDeque<T>,
    closed: bool,
    /// How many threads wait for an item: waking nobody costs a system call, too.
    sleeping: usize,
}

/// What a popper finds.
#[derive(Debug)]
pub(crate) enum Popped<T> {
    Items(Vec<T>),
    TimedOut,
    /// No item will come any more.
    Closed,
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::new(State { items: VecDeque::new(), closed: false, sleeping: 0 }), ready: Condvar::new() }
    }

    /// Appends an item, or gives it back when the queue is closed.
    pub(crate) fn push(&self, item: T) -> Result<(), T> {
        let mut state = self.state();
        if state.closed {
            return Err(item);
        }
        state.items.push_back(item);
        let sleeping = state.sleeping > 0;
        drop(state);
        if sleeping {
            self.ready.notify_one();
        }
        Ok(())
    }

    /// Lets no more items in. Those that are there are still popped.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.ready.notify_all();
    }

    /// Takes the first item and as many that follow as `admit` admits, which is asked about each once.
    pub(crate) fn pop_batch(&self, at_most: Duration, mut admit: impl FnMut(&T) -> bool) -> Popped<T> {
        let mut state = self.state();
        if state.items.is_empty() && !state.closed && !at_most.is_zero() {
            state.sleeping += 1;
            let waiting = |state: &mut State<T>| state.items.is_empty() && !state.closed;
            let wait = self.ready.wait_timeout_while(state, at_most, waiting);
            state = wait.unwrap_or_else(PoisonError::into_inner).0;
            state.sleeping -= 1;
        }
        let Some(first) = state.items.pop_front() else {
            return if state.closed { Popped::Closed } else { Popped::TimedOut };
        };
        admit(&first);
        let mut items = vec![first];
        while state.items.front().is_some_and(&mut admit) {
            items.extend(state.items.pop_front());
        }
        Popped::Items(items)
    }

    /// Takes one item; `None` when no item will come any more.
    pub(crate) fn pop(&self) -> Option<T> {
        let mut state = self.state();
        state.sleeping += 1;
        let waiting = |state: &mut State<T>| state.items.is_empty() && !state.closed;
        let mut state = self.ready.wait_while(state, waiting).unwrap_or_else(PoisonError::into_inner);
        state.sleeping -= 1;
        state.items.pop_front()
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        // Nothing that can panic half-way runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

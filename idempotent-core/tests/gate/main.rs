//! The gate's promises, proved on its state machine: a store that fails as planned, clients that leave, processes that die,
//! on a clock that only moves when everybody waits.

mod claims;
mod completion;
mod disconnects;
mod drain;
mod duplicates;
mod observability;
mod schedules;
mod streams;
mod world;

//! The gate of idempotent: request hash, JSON-RPC, single flight, leases and replay over any store.

mod clock;
mod message_id;
pub mod request_hash;
pub mod store;

pub use clock::{Clock, ManualClock, SystemClock};
pub use message_id::{Key, MalformedMessageId, MessageId, Scope, ToScope};
pub use request_hash::RequestHash;

//! The gate of idempotent: request hash, JSON-RPC, single flight, leases and replay over any store.

mod annotated;
pub mod card;
mod clock;
pub mod json;
mod message_id;
pub mod request_hash;
pub mod store;

pub use clock::{Clock, ManualClock, SystemClock};
pub use message_id::{Key, MalformedMessageId, MessageId, Scope, ToScope};
pub use request_hash::RequestHash;

/// What generated code names; no part of the API.
#[doc(hidden)]
pub mod __private {
    pub use crate::annotated::{AnnotatedBy, MethodKey};
    pub use crate::card::{Card, CardMethod, Places as CardPlaces};
}

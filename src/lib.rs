//! Makes an A2A agent safe to retry.

mod agent_card;

pub use idempotent_core::card::{self, Card, CardMethod, RuntimeParams};
pub use idempotent_macros::idempotent;

/// What generated code names; no part of the API.
#[doc(hidden)]
pub mod __private {
    pub use idempotent_core::__private::*;
    pub use idempotent_macros::agent_card;
}

//! What the facade gives to card and handlers, without the engine.

pub use attribute_alone::idempotent;
pub use idempotent_core::card::{self, Card, CardMethod, RuntimeParams};

#[doc(hidden)]
pub mod __private {
    pub use idempotent_core::__private::*;
    pub use idempotent_macros::agent_card;
}

#[path = "../../../../src/agent_card.rs"]
mod agent_card;

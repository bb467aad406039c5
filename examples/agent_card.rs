//! Prints the example agent's card as the build made it: the file for a registry, or for signing.
//!
//! ```text
//! cargo run --example agent_card > agent-card.json
//! ```

use std::io::{self, Write};

fn main() -> io::Result<()> {
    io::stdout().write_all(idempotent::agent_card!().build_json().as_bytes())
}

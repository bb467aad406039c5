#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send")]
const HANDLER: u8 = 1;

fn main() {}

#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send")]
mod handlers {}

fn main() {}

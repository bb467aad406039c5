#[path = "../support/agent.rs"]
mod agent;

use agent::*;

struct Handler;

#[idempotent(method = "message/send")]
impl Handler {}

fn main() {}

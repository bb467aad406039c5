#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send")]
const fn send_message(Params(_): Params<SendMessage>) -> Result<Task, RpcError> {
    loop {}
}

fn main() {}

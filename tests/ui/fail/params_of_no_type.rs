#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send", state = App)]
async fn send_message(Params(_): Params<NoExtractor>) -> Result<Task, RpcError> {
    Ok(Task { id: String::new() })
}

fn main() {}

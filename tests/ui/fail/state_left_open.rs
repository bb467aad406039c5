#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send", state = _)]
async fn send_message(Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: send.text })
}

fn main() {}

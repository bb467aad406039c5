#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send")]
async fn send_message(Params(send): Params<SendMessage>, _: ...) -> Result<Task, RpcError> {
    Ok(Task { id: send.text })
}

fn main() {}

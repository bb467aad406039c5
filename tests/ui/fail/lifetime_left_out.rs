#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send")]
async fn send_message(name: std::borrow::Cow<'_, str>, Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: send.text + &name })
}

fn main() {}

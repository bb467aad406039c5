#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send", state = App)]
async fn send_message(_: NoExtractor, Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: send.text })
}

fn main() {}

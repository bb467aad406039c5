#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send")]
async fn send_message(Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    send.text
}

fn main() {}

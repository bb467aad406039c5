#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send", scope = send.text)]
async fn send_message(_: AuthUser, Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: send.text })
}

fn main() {}

#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send", scope = user.tenat)]
async fn send_message(user: AuthUser, Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: user.tenant + &send.text })
}

fn main() {}

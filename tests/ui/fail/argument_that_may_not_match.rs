#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send", scope = user.tenant)]
async fn send_message(Ok(user): Result<AuthUser, StatusCode>, Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: send.text + &user.tenant })
}

fn main() {}

#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send", scope = user.tenant)]
async fn send_message(Params(send): Params<SendMessage>, user: AuthUser) -> Result<Task, RpcError> {
    Ok(Task { id: send.text + &user.tenant })
}

fn main() {}

#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "mesage/send", scop = user.tenant, on_takeover = "wait", state = "App")]
fn send_message(user: &AuthUser, Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: send.text + &user.tenant })
}

fn main() {}

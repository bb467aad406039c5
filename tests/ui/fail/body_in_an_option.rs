#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send", scope = user.tenant)]
async fn send_message(body: Option<Json<SendMessage>>, user: AuthUser) -> Result<Task, RpcError> {
    Ok(Task { id: format!("{body:?}{user:?}") })
}

fn main() {}

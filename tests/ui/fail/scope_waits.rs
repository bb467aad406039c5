#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send", scope = tenant_of(&user).await)]
async fn send_message(user: AuthUser, Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: user.tenant + &send.text })
}

async fn tenant_of(user: &AuthUser) -> String {
    user.tenant.clone()
}

fn main() {}

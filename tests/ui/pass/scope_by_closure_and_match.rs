#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(
    method = "message/send",
    scope = match &user.name {
        Some(name) => name.chars().map(|letter| letter.to_ascii_lowercase()).collect::<String>(),
        None => user.tenant.clone(),
    },
)]
async fn send_message(user: AuthUser, Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: user.tenant + &send.text })
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message]);
}

fn main() {}

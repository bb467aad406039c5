#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send", scope = user.tenant)]
async fn send_message(user: AuthUser, body: axum::body::Bytes) -> Result<Task, RpcError> {
    Ok(Task { id: format!("{user:?}{body:?}") })
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message]);
}

fn main() {}

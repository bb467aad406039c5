#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send", scope = user.tenant)]
async fn send_message(headers: HeaderMap, user: AuthUser) -> Result<Task, RpcError> {
    Ok(Task { id: format!("{headers:?}{user:?}") })
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message]);
}

fn main() {}

#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send")]
async fn send_message(
    user: Result<AuthUser, StatusCode>,
    Params(send): Params<SendMessage>,
) -> Result<Task, RpcError> {
    Ok(Task { id: format!("{user:?}{}", send.text) })
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message]);
}

fn main() {}

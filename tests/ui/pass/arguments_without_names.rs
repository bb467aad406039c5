#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send")]
async fn send_message(_: AuthUser, _: HeaderMap, _: Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: String::new() })
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message]);
}

fn main() {}

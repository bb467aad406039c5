#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send", scope = format!("{}/{region:?}", user.tenant))]
async fn send_message(
    user: AuthUser,
    region: HeaderMap,
    Params(send): Params<SendMessage>,
) -> Result<Task, RpcError> {
    Ok(Task { id: format!("{user:?}{region:?}{}", send.text) })
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message]);
}

fn main() {}

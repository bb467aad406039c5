#![deny(warnings)]

#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send", scope = tenant)]
async fn send_message(
    AuthUser { tenant, mut name }: AuthUser,
    State(Agent { tenant: ref owner }): State<Agent>,
    Params(SendMessage { text }): Params<SendMessage>,
) -> Result<Task, RpcError> {
    name.get_or_insert_default().push('!');
    Ok(Task { id: format!("{tenant}{name:?}{owner}{text}") })
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message]);
}

fn main() {}

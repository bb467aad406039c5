#![deny(warnings)]

#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send", scope = tenant)]
async fn send_message(ref user @ AuthUser { ref tenant, .. }: AuthUser) -> Result<Task, RpcError> {
    Ok(Task { id: format!("{user:?}{tenant}") })
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message]);
}

fn main() {}

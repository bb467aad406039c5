#![deny(warnings)]

#[path = "../support/agent.rs"]
mod agent;

use agent::*;
use axum::Extension;

#[idempotent(method = "message/send", scope = realm)]
async fn send_message(
    Extension((&realm, &shard)): Extension<(&'static &'static str, &'static u8)>,
) -> Result<Task, RpcError> {
    Ok(Task { id: format!("{realm}{shard}") })
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message]);
}

fn main() {}

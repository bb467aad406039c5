#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send")]
async fn send_message(Params(send): Params<serde_json::Value>) -> Result<serde_json::Value, RpcError> {
    Ok(send)
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message]);
}

fn main() {}

#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send", on_takeover = "run")]
async fn send_message(Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: send.text })
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message]);
}

fn main() {}

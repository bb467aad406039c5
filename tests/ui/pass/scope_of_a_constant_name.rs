#[path = "../support/agent.rs"]
mod agent;

use agent::*;

const KEY_SPACE: &str = "billing";

#[idempotent(method = "message/send", scope = KEY_SPACE)]
async fn send_message(Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: send.text })
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message]);
}

fn main() {}

#[path = "../support/agent.rs"]
mod agent;

use agent::*;

extern crate idempotent as retry_safe;

#[retry_safe::idempotent(method = "message/send", crate = retry_safe)]
async fn send_message(retry_safe::Params(send): retry_safe::Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: send.text })
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message]);
}

fn main() {}

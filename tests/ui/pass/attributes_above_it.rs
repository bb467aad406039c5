#![deny(warnings)]

#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[allow(unused_variables)]
/// Sends.
#[idempotent(method = "message/send")]
async fn send_message(#[allow(unused)] user: AuthUser, Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    let unused = 1;
    Ok(Task { id: send.text })
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message]);
}

fn main() {}

#![deny(warnings)]

#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send", scope = user.tenant)]
async fn send_message(mut user: AuthUser, Params(mut send): Params<SendMessage>) -> Result<Task, RpcError> {
    user.tenant.push('!');
    send.text.push('!');
    Ok(Task { id: user.tenant + &send.text })
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message]);
}

fn main() {}

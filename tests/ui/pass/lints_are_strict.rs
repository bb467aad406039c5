#![deny(warnings, missing_docs, missing_debug_implementations, unreachable_pub, unused_qualifications, unused)]
#![forbid(unsafe_code, non_camel_case_types, non_snake_case)]
//! Documentation is demanded here.

#[path = "../support/agent.rs"]
mod agent;

use agent::*;

/// Sends.
#[idempotent(method = "message/send", scope = user.tenant)]
async fn send_message(user: AuthUser, Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: user.tenant + &send.text })
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message]);
}

fn main() {}

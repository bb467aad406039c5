#![deny(warnings)]

#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send")]
async fn send_message() -> Result<Task, RpcError> {
    Ok(Task { id: String::new() })
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message]);
    let _: Router<App> = Router::new().route("/", post(send_message));
}

fn main() {}

#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send")]
async fn send_message(Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: send.text })
}

fn router() -> JsonRpcRouter<App> {
    mount(rpc_methods!["message/send" => send_message])
}

fn main() {}

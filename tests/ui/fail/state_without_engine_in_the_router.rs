#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send")]
async fn send_message(Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: send.text })
}

fn methods() -> [RpcMethod<Agent>; 1] {
    rpc_methods![send_message]
}

fn main() {}

#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "SendMessage")]
async fn send_message(Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: send.text })
}

#[idempotent(method = "SendStreamingMessage")]
async fn send_streaming_message(Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: send.text })
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message, send_streaming_message,]);
}

fn main() {}

#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/stream")]
async fn stream_message(Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: send.text })
}

#[idempotent(method = "SendStreamingMessage")]
async fn send_streaming_message(Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: send.text })
}

fn main() {}

#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "CancelTask", extension = "https://example.com/billing/v1")]
async fn cancel_task(Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: send.text })
}

fn main() {}

#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "billing/charge", extension = "https://example.com/billing/v1", key = "order/id")]
async fn charge(Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: send.text })
}

fn main() {}

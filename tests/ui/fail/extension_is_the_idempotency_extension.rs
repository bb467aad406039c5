#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "billing/charge", extension = "https://agentic-sandbox.aiwg.io/extensions/idempotency/v1")]
async fn charge(Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: send.text })
}

fn main() {}

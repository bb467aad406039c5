#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "tasks/resubscribe")]
async fn resubscribe(Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: send.text })
}

fn main() {}

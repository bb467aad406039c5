#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "ListTasks")]
async fn list_tasks(Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: send.text })
}

fn main() {}

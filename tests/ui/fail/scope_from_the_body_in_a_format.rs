#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send", scope = format!("{body:?}"))]
async fn send_message(body: Json<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: body.0.text })
}

fn main() {}

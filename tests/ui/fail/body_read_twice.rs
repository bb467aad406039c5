#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send")]
async fn send_message(Json(raw): Json<SendMessage>, Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: send.text + &raw.text })
}

fn main() {}

#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send")]
async fn send_message(State(user): State<impl Into<String>>, Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: send.text + &user.into() })
}

fn main() {}

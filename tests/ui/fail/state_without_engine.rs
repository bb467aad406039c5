#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send")]
async fn send_message(Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: send.text })
}

fn router() -> Router {
    Router::new().route("/", post(send_message)).with_state(())
}

fn main() {}

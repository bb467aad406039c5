#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send")]
async fn send_message(user: impl Into<String>, Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: send.text + &user.into() })
}

fn router() -> Router<App> {
    Router::new().route("/", post(send_message))
}

fn main() {}

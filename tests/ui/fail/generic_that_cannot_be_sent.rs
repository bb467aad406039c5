#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send")]
async fn send_message<D: Clone + Into<String> + 'static>(State(name): State<D>, Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    std::future::ready(()).await;
    Ok(Task { id: send.text + &name.into() })
}

fn main() {}

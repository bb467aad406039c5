#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send")]
async fn send_message(Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    let text = std::rc::Rc::new(send.text);
    std::future::ready(()).await;
    Ok(Task { id: text.to_string() })
}

fn main() {}

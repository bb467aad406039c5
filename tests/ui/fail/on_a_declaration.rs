#[path = "../support/agent.rs"]
mod agent;

use agent::*;

trait Handlers {
    #[idempotent(method = "message/send")]
    async fn send_message(send: Params<SendMessage>) -> Result<Task, RpcError>;
}

fn main() {}

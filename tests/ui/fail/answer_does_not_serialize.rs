#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send")]
async fn send_message(Params(_): Params<SendMessage>) -> Result<NoExtractor, RpcError> {
    Ok(NoExtractor)
}

fn main() {}

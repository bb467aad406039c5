#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send")]
fn send_message(Params(send): Params<SendMessage>) -> impl Future<Output = Result<Task, RpcError>> {
    async { Ok(Task { id: send.text }) }
}

fn main() {}

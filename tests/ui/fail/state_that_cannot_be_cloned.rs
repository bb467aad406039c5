#[path = "../support/agent.rs"]
mod agent;

use agent::*;

struct Fixed(Idempotency);

impl FromRef<Fixed> for Idempotency {
    fn from_ref(fixed: &Fixed) -> Self {
        fixed.0.clone()
    }
}

#[idempotent(method = "message/send", state = Fixed)]
async fn send_message(Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: send.text })
}

fn main() {}

#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[derive(Clone)]
struct Other {
    idempotency: Idempotency,
}

impl FromRef<Other> for Idempotency {
    fn from_ref(other: &Other) -> Self {
        other.idempotency.clone()
    }
}

#[idempotent(method = "message/send", state = Other)]
async fn send_message(State(agent): State<Agent>, Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: agent.tenant + &send.text })
}

fn main() {}

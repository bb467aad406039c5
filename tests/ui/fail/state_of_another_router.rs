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
async fn send_message(Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: send.text })
}

fn router() -> JsonRpcRouter<App> {
    mount(rpc_methods![send_message])
}

fn main() {}

#[path = "../support/agent.rs"]
mod agent;

use agent::*;

mod first {
    use super::*;

    #[idempotent(method = "billing/charge", extension = "https://example.com/billing/v1")]
    pub async fn charge(Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
        Ok(Task { id: send.text })
    }
}

mod second {
    use super::*;

    #[idempotent(method = "billing/charge", extension = "https://example.com/billing/v1")]
    pub async fn charge(Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
        Ok(Task { id: send.text })
    }
}

fn main() {}

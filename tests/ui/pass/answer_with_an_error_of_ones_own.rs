#[path = "../support/agent.rs"]
mod agent;

use agent::*;

enum Failure {
    Overdrawn,
}

impl From<Failure> for RpcError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Overdrawn => RpcError::new(-32050, "overdrawn"),
        }
    }
}

#[idempotent(method = "message/send")]
async fn send_message(Params(send): Params<SendMessage>) -> Result<Task, Failure> {
    if send.text.is_empty() { Err(Failure::Overdrawn) } else { Ok(Task { id: send.text }) }
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message]);
}

fn main() {}

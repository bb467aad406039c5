#[path = "../support/agent.rs"]
mod agent;

use agent::*;

mod send_message {
    use super::agent::*;

    #[idempotent(method = "message/send")]
    pub async fn send_message(Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
        Ok(Task { id: send.text })
    }
}

use send_message::send_message;

fn _mounted() {
    let _ = mount(rpc_methods![send_message]);
}

fn main() {}

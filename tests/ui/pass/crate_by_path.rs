#[path = "../support/agent.rs"]
mod agent;

use agent::*;

mod retry {
    pub mod safe {
        pub use idempotent;
    }
}

#[idempotent(method = "message/send", crate = crate::retry::safe::idempotent)]
async fn send_message(Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: send.text })
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message]);
}

fn main() {}

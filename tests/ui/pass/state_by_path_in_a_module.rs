#[path = "../support/agent.rs"]
mod agent;

use agent::*;

mod handlers {
    use super::agent::{AuthUser, Params, RpcError, SendMessage, Task, idempotent};

    #[idempotent(method = "message/send", scope = user.tenant, state = crate::agent::App)]
    pub(super) async fn send_message(user: AuthUser, Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
        Ok(Task { id: user.tenant + &send.text })
    }
}

fn _mounted() {
    let _ = mount(rpc_methods![handlers::send_message]);
}

fn main() {}

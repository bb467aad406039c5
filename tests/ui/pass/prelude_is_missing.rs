#[path = "../support/agent.rs"]
mod agent;

use agent::*;

mod handlers {
    #![no_implicit_prelude]

    use super::agent::{AuthUser, Params, RpcError, SendMessage, Task};

    #[::idempotent::idempotent(method = "message/send", scope = user.tenant, state = crate::agent::App)]
    pub async fn send_message(
        user: AuthUser,
        Params(send): Params<SendMessage>,
    ) -> ::std::result::Result<Task, RpcError> {
        ::std::result::Result::Ok(Task { id: user.tenant + &send.text })
    }
}

fn _mounted() {
    let _ = mount(rpc_methods![handlers::send_message]);
}

fn main() {}

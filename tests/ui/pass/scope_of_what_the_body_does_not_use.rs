#![deny(warnings)]

#[path = "../support/agent.rs"]
mod agent;

mod handlers {
    #![forbid(unused_variables)]

    use crate::agent::*;

    #[idempotent(method = "message/send", scope = format!("{}/{}", user.tenant, agent.tenant))]
    pub async fn send_message(
        user: AuthUser,
        State(agent): State<Agent>,
        Params(send): Params<SendMessage>,
    ) -> Result<Task, RpcError> {
        #![allow(unused_mut)]
        #![allow(clippy::let_and_return)]
        let mut task = Task { id: send.text };
        Ok(task)
    }
}

fn _mounted() {
    let _ = agent::mount(idempotent::rpc_methods![handlers::send_message]);
}

fn main() {}

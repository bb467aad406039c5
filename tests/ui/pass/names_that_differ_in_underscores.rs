#![deny(warnings)]

#[path = "../support/agent.rs"]
mod agent;

mod handlers {
    #![forbid(non_camel_case_types, non_snake_case)]

    use crate::agent::*;

    #[idempotent(method = "message/send")]
    pub async fn send_message(Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
        Ok(Task { id: send.text })
    }

    #[idempotent(method = "message/stream")]
    pub async fn _send_message(Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
        Ok(Task { id: send.text })
    }
}

fn _mounted() {
    let _ = agent::mount(idempotent::rpc_methods![handlers::send_message, handlers::_send_message]);
}

fn main() {}

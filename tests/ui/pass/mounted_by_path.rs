#![deny(warnings)]

#[path = "../support/agent.rs"]
mod agent;

mod handlers {
    use crate::agent::*;

    #[idempotent(method = "message/send")]
    pub async fn send_message(Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
        Ok(Task { id: send.text })
    }

    #[idempotent(method = "message/stream")]
    pub async fn stream_message<T: Default + Into<String> + Send + 'static>() -> Result<Task, RpcError> {
        Ok(Task { id: T::default().into() })
    }
}

mod mounted {
    #![no_implicit_prelude]

    pub fn methods() -> ::idempotent::JsonRpcRouter<crate::agent::App> {
        ::idempotent::JsonRpcRouter::new()
            .methods(::idempotent::rpc_methods![])
            .methods(::idempotent::rpc_methods![super::handlers::send_message,])
            .methods(::idempotent::rpc_methods![crate::handlers::stream_message::<&'static str, _, _>])
    }
}

fn main() {
    let _ = mounted::methods();
}

#[path = "../support/agent.rs"]
mod agent;

use agent::*;

mod handlers {
    use super::agent::*;

    #[idempotent(method = "message/send")]
    pub async fn send_message(_: NoExtractor, Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
        Ok(Task { id: send.text })
    }
}

macro_rules! mounted {
    ($($handler:path),*) => {
        mount(rpc_methods![$($handler),*])
    };
}

fn router() -> JsonRpcRouter<App> {
    mounted!(handlers::send_message)
}

fn main() {}

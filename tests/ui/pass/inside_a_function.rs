#[path = "../support/agent.rs"]
mod agent;

use agent::*;

fn methods() -> [RpcMethod<App>; 1] {
    #[idempotent(method = "message/send")]
    async fn send_message(Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
        Ok(Task { id: send.text })
    }

    rpc_methods![send_message]
}

fn _mounted() {
    let _ = mount(methods());
}

fn main() {}

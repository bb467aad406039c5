#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send")]
#[cfg(any())]
async fn send_message(user: NoSuchType) -> NoSuchType {
    no_such_function(user)
}

#[idempotent(method = "message/send")]
#[cfg(not(any()))]
async fn send_message(Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: send.text })
}

#[cfg(any())]
#[idempotent(method = "message/stream")]
async fn stream_message(user: NoSuchType) -> NoSuchType {
    no_such_function(user)
}

#[idempotent(method = "message/stream")]
#[cfg_attr(all(), cfg(all()))]
async fn stream_message(Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: send.text })
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message, stream_message]);
}

fn main() {}

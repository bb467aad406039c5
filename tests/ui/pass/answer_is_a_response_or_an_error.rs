#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send")]
async fn send_message(Params(send): Params<SendMessage>) -> Result<Response, RpcError> {
    Ok((StatusCode::ACCEPTED, send.text).into_response())
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message]);
}

fn main() {}

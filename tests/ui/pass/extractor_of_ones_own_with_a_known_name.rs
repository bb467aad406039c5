#[path = "../support/agent.rs"]
mod agent;

use agent::*;

mod paging {
    pub struct Params(pub usize);
}

impl<S: Send + Sync> FromRequestParts<S> for paging::Params {
    type Rejection = StatusCode;

    async fn from_request_parts(_: &mut Parts, _: &S) -> Result<Self, StatusCode> {
        Ok(Self(1))
    }
}

#[idempotent(method = "message/send")]
async fn send_message(page: paging::Params, Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: format!("{}{}", page.0, send.text) })
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message]);
}

fn main() {}

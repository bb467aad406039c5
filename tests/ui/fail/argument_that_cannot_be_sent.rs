#[path = "../support/agent.rs"]
mod agent;

use agent::*;

struct Local(std::rc::Rc<str>);

impl<S: Sync> FromRequestParts<S> for Local {
    type Rejection = StatusCode;

    async fn from_request_parts(_: &mut Parts, _: &S) -> Result<Self, StatusCode> {
        Ok(Self("here".into()))
    }
}

#[idempotent(method = "message/send")]
async fn send_message(local: Local, Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: send.text + &local.0 })
}

fn main() {}

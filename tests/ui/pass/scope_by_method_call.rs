#[path = "../support/agent.rs"]
mod agent;

use agent::*;

impl AuthUser {
    fn tenant(&self) -> &str {
        &self.tenant
    }
}

#[idempotent(method = "message/send", scope = user.tenant())]
async fn send_message(user: AuthUser, Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: user.tenant + &send.text })
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message]);
}

fn main() {}

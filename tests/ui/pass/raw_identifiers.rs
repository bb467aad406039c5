#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send", scope = r#type.tenant)]
async fn r#move(r#type: AuthUser, Params(r#in): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: r#type.tenant + &r#in.text })
}

fn _mounted() {
    let _ = mount(rpc_methods![r#move]);
}

fn main() {}

#[path = "../support/agent.rs"]
mod agent;

use agent::*;

use idempotent::{Dialect, IdempotencyContext};

#[idempotent(method = "message/send", scope = user.tenant)]
async fn send_message(
    user: AuthUser,
    context: IdempotencyContext,
    dialect: Dialect,
    Params(send): Params<SendMessage>,
) -> Result<Task, RpcError> {
    Ok(Task { id: format!("{user:?}{}{dialect:?}{}", context.downstream_key("stripe", "charge"), send.text) })
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message]);
}

fn main() {}

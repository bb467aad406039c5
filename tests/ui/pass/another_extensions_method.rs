#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(
    method = "billing/charge",
    extension = "https://example.com/billing/v1",
    key = "/order/id",
    scope = user.tenant,
    on_takeover = "refuse"
)]
async fn charge(user: AuthUser, Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: user.tenant + &send.text })
}

fn _mounted() {
    let _ = mount(rpc_methods![charge]);
}

fn main() {}

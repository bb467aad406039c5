#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send")]
async fn send_message(
    AuthUser { tenant, .. }: AuthUser,
    State(Agent { tenant: owner }): State<Agent>,
    axum::extract::Query(pairs): axum::extract::Query<Vec<(String, String)>>,
    Params(SendMessage { text }): Params<SendMessage>,
) -> Result<Task, RpcError> {
    Ok(Task { id: format!("{tenant}{owner}{pairs:?}{text}") })
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message]);
}

fn main() {}

#[path = "../support/agent.rs"]
mod agent;

use agent::*;

fn tenant_of(user: &AuthUser, agent: &Agent) -> String {
    format!("{}/{}", user.tenant, agent.tenant)
}

#[idempotent(method = "message/send", scope = tenant_of(user, agent))]
async fn send_message(
    user: AuthUser,
    State(agent): State<Agent>,
    Params(send): Params<SendMessage>,
) -> Result<Task, RpcError> {
    Ok(Task { id: user.tenant + &agent.tenant + &send.text })
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message]);
}

fn main() {}

#![deny(warnings)]

#[path = "../support/agent.rs"]
mod agent;

use agent::*;

mod helpers {
    use super::agent::Agent;

    pub fn user(agent: &Agent) -> String {
        agent.tenant.clone()
    }
}

#[idempotent(method = "message/send", scope = {
    fn first(agent: &Agent) -> Option<char> {
        let first = agent.tenant.chars().next()?;
        Some(first)
    }
    let width = 8;
    let send = agent.tenant.split(|send| send == '/').count();
    format!("{{send}}{send:>width$}{}{}{:?}", helpers::user(&agent), user.tenant, first(&agent))
})]
async fn send_message(
    State(agent): State<Agent>,
    user: AuthUser,
    State(width): State<Agent>,
) -> Result<Task, RpcError> {
    Ok(Task { id: user.tenant + &agent.tenant + &width.tenant })
}

#[idempotent(method = "message/stream", scope = agent.tenant.split(|send| send == '/').count().to_string())]
async fn stream_message(State(agent): State<Agent>, Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: send.text + &agent.tenant })
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message, stream_message]);
}

fn main() {}

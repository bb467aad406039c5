#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send", scope = agent.tenant)]
async fn send_message(State(agent): State<Agent>, Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: agent.tenant + &send.text })
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message]);
}

fn main() {}

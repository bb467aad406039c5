#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send", scope = user.tenant)]
async fn send_message(user: AuthUser, State(agent): State<Agent>, Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: user.tenant + &agent.tenant + &send.text })
}

fn main() {
    let _ = mount(rpc_methods![send_message]);
    let _: Router<App> = Router::new().route("/", post(send_message));
}

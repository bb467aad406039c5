#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send", scope = user.tenant)]
async fn send_message(user: AuthUser, Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    if send.text.is_empty() {
        let again = Params(SendMessage { text: "again".into() });
        return Box::pin(send_message(user, again)).await;
    }
    Ok(Task { id: send.text })
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message]);
}

fn main() {}

#[path = "../support/agent.rs"]
mod agent;

use agent::*;

// Sees the arguments and the return type as the user wrote them.
#[idempotent(method = "message/send", scope = user.tenant)]
#[tokio::main(flavor = "current_thread")]
async fn send_message(user: AuthUser, Params(send): Params<SendMessage>) -> std::future::Ready<Result<Task, RpcError>> {
    std::future::ready(Ok(Task { id: user.tenant + &send.text }))
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message]);
}

fn main() {}

#[path = "../support/agent.rs"]
mod agent;

use agent::*;

use idempotent::Effects;

#[idempotent(method = "message/send")]
async fn send_message(
    _effects: Effects<diesel::SqliteConnection>,
    Params(send): Params<SendMessage>,
) -> Result<Task, RpcError> {
    Ok(Task { id: send.text })
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message]);
}

fn main() {}

#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send", scope = one.tenant)]
#[allow(clippy::too_many_arguments)]
async fn send_message(
    one: AuthUser,
    two: AuthUser,
    three: AuthUser,
    four: AuthUser,
    five: AuthUser,
    six: AuthUser,
    seven: AuthUser,
    eight: AuthUser,
    nine: AuthUser,
    Params(send): Params<SendMessage>,
) -> Result<Task, RpcError> {
    Ok(Task { id: format!("{:?}{}", [one, two, three, four, five, six, seven, eight, nine], send.text) })
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message]);
}

fn main() {}

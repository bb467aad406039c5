#![deny(warnings)]

#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send", scope = user.tenant)]
async fn send_message(
    #[cfg(any())] _: NoSuchType,
    #[cfg(all())]
    #[cfg_attr(all(), allow(unused_mut))]
    mut user: AuthUser,
    #[cfg(not(any()))] State(agent): State<Agent>,
    #[cfg(any())] Json(send): Json<SendMessage>,
    #[cfg(all())] Params(send): Params<SendMessage>,
) -> Result<Task, RpcError> {
    Ok(Task { id: user.tenant + &agent.tenant + &send.text })
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message]);
}

fn main() {}

#[path = "../support/agent.rs"]
mod agent;

use agent::*;

macro_rules! handler {
    ($name:ident, $method:literal, $scope:expr, $user:ident) => {
        #[idempotent(method = $method, scope = $scope)]
        async fn $name($user: AuthUser, Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
            Ok(Task { id: $user.tenant + &send.text })
        }
    };
}

handler!(send_message, "message/send", user.tenant, user);
handler!(stream_message, "message/stream", caller.name, caller);

fn _mounted() {
    let _ = mount(rpc_methods![send_message, stream_message]);
}

fn main() {}

#[path = "../support/agent.rs"]
mod agent;

use agent::*;

macro_rules! handlers {
    ($($name:ident => $method:literal in $state:ty;)*) => {
        $(
            #[idempotent(method = $method, scope = user.tenant, state = $state)]
            async fn $name(user: AuthUser, Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
                Ok(Task { id: user.tenant + &send.text })
            }
        )*
    };
}

handlers! {
    send_message => "message/send" in App;
    stream_message => "message/stream" in App;
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message, stream_message]);
}

fn main() {}

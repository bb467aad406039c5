#[path = "../support/agent.rs"]
mod agent;

use agent::*;

macro_rules! twice {
    ($(#[$attribute:meta])* $visibility:vis async fn $name:ident($($argument:pat => $type:ty),*) -> $answer:ty $body:block) => {
        $(#[$attribute])*
        $visibility async fn $name($($argument: $type),*) -> $answer $body
    };
}

twice! {
    #[idempotent(method = "message/send", scope = user.tenant)]
    pub async fn send_message(user => AuthUser, Params(send) => Params<SendMessage>) -> Result<Task, RpcError> {
        Ok(Task { id: user.tenant + &send.text })
    }
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message]);
}

fn main() {}

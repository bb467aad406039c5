#[path = "../support/agent.rs"]
mod agent;

use agent::*;

mod handlers {
    use super::agent::{AuthUser, Params, RpcError, SendMessage, State, Task, Agent};

    pub struct Box;
    pub struct Clone;
    pub struct Err;
    pub struct None;
    pub struct Ok;
    pub struct Option;
    pub struct Result;
    pub struct Send;
    pub struct Some;
    pub struct String;
    pub struct Sync;
    pub type Answer = ::std::result::Result<Task, RpcError>;

    #[::idempotent::idempotent(method = "message/send", scope = user.tenant)]
    pub async fn send_message(user: AuthUser, State(agent): State<Agent>, Params(send): Params<SendMessage>) -> Answer {
        Answer::Ok(Task { id: user.tenant + &agent.tenant + &send.text })
    }
}

fn _mounted() {
    let _ = mount(rpc_methods![handlers::send_message]);
}

fn main() {}

#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[allow(non_upper_case_globals)]
mod handlers {
    use super::agent::*;

    pub const call: u8 = 1;
    pub const execution: u8 = 2;
    pub const scope: u8 = 3;
    pub const value: u8 = 4;
    pub const refused: u8 = 5;
    pub const run: u8 = 6;
    pub const reply: u8 = 7;
    pub const respond: u8 = 8;
    pub static answer: u8 = 9;

    #[idempotent(method = "message/send", scope = user.tenant)]
    pub async fn send_message(user: AuthUser, Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
        Ok(Task { id: format!("{}{}{}", user.tenant, send.text, call + execution + scope + value + refused + run + reply + respond + answer) })
    }
}

fn _mounted() {
    let _ = mount(rpc_methods![handlers::send_message]);
}

fn main() {}

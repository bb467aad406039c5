#![forbid(unsafe_code)]

#[path = "../support/agent.rs"]
mod agent;

use agent::*;

mod handlers {
    //! Documentation is demanded here.
    #![deny(warnings, missing_docs, missing_debug_implementations, unreachable_pub, unused_qualifications, unused)]
    #![forbid(non_camel_case_types, non_snake_case, unused_variables, unused_imports, unused_mut, dead_code)]

    use super::agent::*;

    /// Sends.
    #[idempotent(method = "message/send", scope = user.tenant)]
    pub(crate) async fn send_message(mut user: AuthUser, Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
        user.tenant.push('!');
        Ok(Task { id: user.tenant + &send.text })
    }
}

fn _mounted() {
    let _ = mount(rpc_methods![handlers::send_message]);
}

fn main() {}

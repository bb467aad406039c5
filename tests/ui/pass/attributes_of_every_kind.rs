#![deny(warnings)]

#[path = "../support/agent.rs"]
mod agent;

use agent::*;

/// Sends.
///
/// At most once.
#[idempotent(method = "message/send", scope = user.tenant)]
#[allow(clippy::needless_return)]
#[expect(unused_variables)]
#[must_use = "an answer"]
#[deprecated = "send twice"]
#[inline]
#[cfg_attr(all(), doc = "Or not at all.")]
async fn send_message(user: AuthUser, Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    return Ok(Task { id: user.tenant });
}

#[allow(deprecated)]
fn _mounted() {
    let _ = mount(rpc_methods![send_message]);
}

fn main() {}

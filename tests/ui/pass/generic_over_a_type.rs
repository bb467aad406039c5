#[path = "../support/agent.rs"]
mod agent;

use agent::*;

trait Database: Clone + Send + Sync + 'static {
    fn name(&self) -> String;
}

#[derive(Clone)]
struct Memory;

impl Database for Memory {
    fn name(&self) -> String {
        "memory".into()
    }
}

#[idempotent(method = "message/send", scope = user.tenant)]
async fn send_message<D: Database>(
    user: AuthUser,
    axum::Extension(database): axum::Extension<D>,
    Params(send): Params<SendMessage>,
) -> Result<Task, RpcError> {
    Ok(Task { id: user.tenant + &database.name() + &send.text })
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message::<Memory, _, _, _>]);
}

fn main() {}

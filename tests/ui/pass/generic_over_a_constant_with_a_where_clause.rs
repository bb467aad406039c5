#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send")]
async fn send_message<T, const LIMIT: usize>(Params(send): Params<T>) -> Result<Task, RpcError>
where
    T: serde::de::DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    Ok(Task { id: format!("{send:?}").chars().take(LIMIT).collect() })
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message::<SendMessage, 80, _, _, _>]);
}

fn main() {}

#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send")]
async fn send_message(Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    #![allow(unused)]
    use std::collections::BTreeMap as Map;
    struct Local<T>(T);
    const LIMIT: usize = 3;
    let text = async { send.text }.await;
    let letters: Map<char, usize> = text.chars().take(LIMIT).map(|letter| (letter, 1)).collect();
    let outcome = async move {
        let Local(first) = Local(letters.into_keys().next());
        first.ok_or_else(|| RpcError::invalid_params("empty"))
    };
    let first = outcome.await?;
    Ok(Task { id: 'id: { break 'id first.to_string() } })
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message]);
}

fn main() {}

#[path = "../support/agent.rs"]
mod agent;

use agent::*;

#[idempotent(method = "message/send")]
async fn send_message(Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
    Ok(Task { id: send.text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[idempotent(method = "message/send")]
    async fn send_nothing() -> Result<Task, RpcError> {
        Ok(Task { id: String::new() })
    }

    #[test]
    fn both_can_be_mounted_somewhere() {
        let _ = mount(rpc_methods![send_nothing]);
    }
}

fn _mounted() {
    let _ = mount(rpc_methods![send_message]);
}

fn main() {}

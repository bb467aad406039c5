#[path = "../support/agent.rs"]
mod agent;

use agent::*;

use futures_util::{Stream, stream};

#[idempotent(method = "message/stream")]
async fn stream_message(
    Params(send): Params<SendMessage>,
) -> Result<RpcStream<impl Stream<Item = Result<Task, RpcError>>>, RpcError> {
    if send.text.is_empty() {
        return Err(RpcError::invalid_params("nothing to say"));
    }
    Ok(RpcStream::new(stream::iter([Ok(Task { id: send.text })])))
}

fn _mounted() {
    let _ = mount(rpc_methods![stream_message]);
}

fn main() {}

#[path = "../support/agent.rs"]
mod agent;

use agent::*;

fn router() -> JsonRpcRouter<App> {
    mount(rpc_methods![Agent { tenant: String::new() }])
}

fn main() {}

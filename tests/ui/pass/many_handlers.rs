#[path = "../support/agent.rs"]
mod agent;

use agent::*;

macro_rules! handlers {
    ($($name:ident: $method:literal,)*) => {
        $(
            #[idempotent(method = $method, extension = "https://example.com/billing/v1", scope = user.tenant)]
            pub async fn $name(user: AuthUser, Params(send): Params<SendMessage>) -> Result<Task, RpcError> {
                Ok(Task { id: user.tenant + &send.text })
            }
        )*
    };
}

handlers! {
    charge: "billing/charge",
    refund: "billing/refund",
    charge_dotted: "billing.charge",
    charge_plain: "charge",
    charge_nested: "billing/charge/card",
}

fn _mounted() {
    let _ = mount(rpc_methods![charge, refund, charge_dotted, charge_plain, charge_nested]);
}

fn main() {}

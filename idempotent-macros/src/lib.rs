//! The `#[idempotent]` attribute macro.

mod agent_card;
mod attributes;
mod expand;
mod names;
mod wrapper;

/// Makes an async function the idempotent handler of a JSON-RPC method.
#[proc_macro_attribute]
pub fn idempotent(arguments: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    expand::idempotent(arguments.into(), item.into()).into()
}

/// The AgentCard that the package's build script made; `idempotent::agent_card!()` calls it with its own path.
#[proc_macro]
pub fn agent_card(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    agent_card::agent_card(input.into()).into()
}

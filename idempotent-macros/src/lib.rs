//! The attribute macro of [`idempotent`](https://docs.rs/idempotent); use it through that crate.

mod agent_card;
mod attributes;
mod expand;
#[cfg(test)]
mod golden;
mod names;
mod rpc_methods;
mod wrapper;

#[doc = include_str!("../docs/idempotent.md")]
#[proc_macro_attribute]
pub fn idempotent(arguments: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    expand::idempotent(arguments.into(), item.into()).into()
}

/// The AgentCard that the package's build script made; `idempotent::agent_card!()` calls it with its own path.
#[proc_macro]
pub fn agent_card(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    agent_card::agent_card(input.into()).into()
}

/// A list of methods from a list of handlers; `idempotent::rpc_methods![]` calls it with its own path.
#[proc_macro]
pub fn rpc_methods(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    rpc_methods::rpc_methods(input.into()).into()
}

//! The `#[idempotent]` attribute macro.

mod attributes;
mod expand;
mod names;
mod wrapper;

/// Makes an async function the idempotent handler of a JSON-RPC method.
#[proc_macro_attribute]
pub fn idempotent(arguments: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    expand::idempotent(arguments.into(), item.into()).into()
}

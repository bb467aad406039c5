//! From a list of handlers to a list of methods.

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Expr, Path, Token};

use crate::names::ends;

/// The path of the facade, as its `rpc_methods!` passes it, and the handlers.
struct Call {
    facade: Path,
    handlers: Punctuated<Expr, Token![,]>,
}

impl Parse for Call {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let facade = input.call(Path::parse_mod_style)?;
        input.parse::<Token![;]>()?;
        Ok(Self { facade, handlers: Punctuated::parse_terminated(input)? })
    }
}

// Input
//     rpc_methods![send_message, billing::charge]
//
// Output
//     {
//         use idempotent::__private as __idempotent_rpc;
//         [__idempotent_rpc::rpc_method(send_message), __idempotent_rpc::rpc_method(billing::charge)]
//     }
//
// The compiler checks the bounds of a handler twice: where it is named, and where something is called with it. Both are told
// once if they are in the same place, so the function that is called stands where its argument stands.
pub(crate) fn rpc_methods(input: TokenStream) -> TokenStream {
    match syn::parse2::<Call>(input) {
        Ok(Call { facade, handlers }) => {
            let methods = handlers.iter().map(method);
            quote! {{
                use #facade::__private as __idempotent_rpc;
                [#(#methods),*]
            }}
        }
        Err(error) => {
            let words = "expected names of handlers: `rpc_methods![send_message, stream_message]`";
            syn::Error::new(error.span(), words).to_compile_error()
        }
    }
}

fn method(handler: &Expr) -> TokenStream {
    match handler {
        // What `$handler:path` of a user's macro puts around it; rustc looks through it too.
        Expr::Group(group) => method(&group.expr),
        Expr::Call(call) => {
            let words = "name the handler and leave out the parentheses: the router calls it";
            syn::Error::new(call.paren_token.span.join(), words).to_compile_error()
        }
        _ => {
            let (start, end) = ends(handler);
            let runtime = Ident::new("__idempotent_rpc", start);
            let rpc_method = Ident::new("rpc_method", end);
            let colons = quote_spanned!(start=> ::);
            quote_spanned!(end=> #runtime #colons #rpc_method(#handler))
        }
    }
}

//! Names for what is generated beside a handler.

use proc_macro2::{Ident, Span, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;

/// `__IdempotentSendMessage`: the type that stands for the operation of `send_message`.
///
/// It does not share the function's name: `mod send_message; pub use send_message::send_message;` would then import a
/// type over a module. It is in camel case so that no lint needs to be allowed, which `forbid` would refuse.
pub(crate) fn operation(function: &Ident) -> Ident {
    let mut camel = String::from("__Idempotent");
    let name = function.unraw().to_string();
    for part in name.split('_') {
        let between_digits =
            camel.ends_with(|end: char| end.is_ascii_digit()) && part.starts_with(|start: char| start.is_ascii_digit());
        // `_send` and `send` may stand side by side.
        if between_digits || part.is_empty() {
            camel.push('_');
        }
        let mut letters = part.chars();
        camel.extend(letters.next().into_iter().flat_map(char::to_uppercase));
        camel.push_str(letters.as_str());
    }
    Ident::new(&camel, generated(function.span()))
}

/// `__idempotent_send_message`: the name under which the expansion of `send_message` imports the runtime.
pub(crate) fn runtime(function: &Ident) -> Ident {
    Ident::new(&format!("__idempotent_{}", function.unraw()), Span::mixed_site())
}

/// `idempotent_handler_of_message_send`: a name that a crate can only define once.
///
/// Everything that is neither a letter, a digit nor `/` is spelled out, so that two methods never share a name.
pub(crate) fn guard(method: &str, span: Span) -> Ident {
    let mut name = String::from("idempotent_handler_of_");
    for character in method.chars() {
        match character {
            '/' => name.push('_'),
            plain if plain.is_ascii_alphanumeric() => name.push(plain),
            other => name.push_str(&format!("__{:x}__", u32::from(other))),
        }
    }
    Ident::new(&name, generated(span))
}

/// A span that points at the user's token and yet belongs to the macro: errors land there, lints stay silent.
pub(crate) fn generated(place: Span) -> Span {
    Span::mixed_site().located_at(place)
}

/// Where something begins and where it ends: its first and its last token.
pub(crate) fn ends(tokens: &impl ToTokens) -> (Span, Span) {
    let tokens: Vec<TokenTree> = tokens.to_token_stream().into_iter().collect();
    match (tokens.first(), tokens.last()) {
        (Some(first), Some(last)) => (first.span(), last.span()),
        _ => (Span::call_site(), Span::call_site()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation_of(name: &str) -> String {
        operation(&syn::parse_str::<Ident>(name).expect("an identifier")).to_string()
    }

    #[test]
    fn operation_types_are_camel_case() {
        assert_eq!(operation_of("send_message"), "__IdempotentSendMessage");
        assert_eq!(operation_of("r#move"), "__IdempotentMove");
        assert_eq!(operation_of("send_v1_2"), "__IdempotentSendV1_2");
        assert_eq!(operation_of("_send"), "__Idempotent_Send");
        assert_eq!(operation_of("send__message_"), "__IdempotentSend_Message_");
    }

    #[test]
    fn two_methods_never_share_a_guard() {
        let guard = |method| guard(method, Span::call_site()).to_string();
        assert_eq!(guard("message/send"), "idempotent_handler_of_message_send");
        assert_ne!(guard("billing/charge"), guard("billing_charge"));
        assert_ne!(guard("billing.charge"), guard("billing-charge"));
    }
}

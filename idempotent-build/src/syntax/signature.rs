//! What a function's signature must be for it to be a handler.

use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::visit::Visit;
use syn::{
    Attribute, ConstParam, FnArg, GenericParam, Lifetime, LifetimeParam, Meta, Safety, Signature, Token, Type,
    TypeImplTrait, TypeParam, TypeReference,
};

use super::{Handler, Mistakes};

/// Refuses what no handler can be, each with the words that lead out.
pub(super) fn check(handler: &Handler, mistakes: &mut Mistakes) {
    let signature = &handler.signature;
    check_qualifiers(signature, mistakes);
    check_generics(signature, mistakes);
    check_arguments(signature, mistakes);
    for attribute in &handler.attributes {
        if is_ours(attribute) {
            mistakes
                .about(attribute, "`#[idempotent]` is given twice on this function; one handler answers one method");
        }
    }
}

/// Whether this attribute is `#[idempotent(…)]`, judged by the last part of its path.
pub(super) fn is_ours(attribute: &syn::Attribute) -> bool {
    attribute.path().segments.last().is_some_and(|segment| segment.ident == "idempotent")
}

fn check_qualifiers(signature: &Signature, mistakes: &mut Mistakes) {
    if let Some(token) = &signature.constness {
        mistakes.about(token, "a handler runs for each request, never at compile time; remove `const`");
    } else if signature.asyncness.is_none() {
        mistakes.about(signature.fn_token, format!("a handler is an `async fn`: write `async fn {}`", signature.ident));
    }
    if let Safety::Unsafe(token) = &signature.safety {
        mistakes.about(
            token,
            "any client can call a handler, so it cannot be `unsafe`; put the `unsafe` block into its body",
        );
    }
    if let Some(abi) = &signature.abi {
        mistakes.about(abi, "a handler is called by the router, not through a foreign ABI; remove `extern`");
    }
    if let Some(dots) = &signature.variadic {
        mistakes.about(dots, "a handler has a fixed list of extractors; remove `...`");
    }
}

fn check_generics(signature: &Signature, mistakes: &mut Mistakes) {
    for parameter in &signature.generics.params {
        let (GenericParam::Lifetime(LifetimeParam { attrs, .. })
        | GenericParam::Type(TypeParam { attrs, .. })
        | GenericParam::Const(ConstParam { attrs, .. })) = parameter;
        if let Some(cfg) = attrs.iter().find(|attribute| attribute.path().is_ident("cfg")) {
            mistakes.about(
                cfg,
                "a parameter that may be missing cannot be passed on; put `#[cfg(…)]` on two whole handlers",
            );
        }
        if let GenericParam::Lifetime(lifetime) = parameter {
            mistakes.about(
                lifetime,
                "a handler outlives the connection it came from and borrows nothing; remove the lifetime and take owned types",
            );
        }
    }
}

fn check_arguments(signature: &Signature, mistakes: &mut Mistakes) {
    for input in &signature.inputs {
        match input {
            FnArg::Receiver(receiver) => mistakes.about(
                receiver,
                "a handler is a free function without `self`; take what it needs as `State(agent): State<Agent>`",
            ),
            FnArg::Typed(argument) => {
                for attribute in argument.attrs.iter().filter(|attribute| brings_cfg(attribute)) {
                    mistakes.about(
                        attribute,
                        "this hides from the macro whether the argument is there; write `#[cfg(all(…, …))]` instead",
                    );
                }
                check_type(&argument.ty, mistakes);
            }
        }
    }
}

/// Whether it is a `#[cfg_attr(…, cfg(…))]`.
fn brings_cfg(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg_attr")
        && attribute
            .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
            .is_ok_and(|metas| metas.iter().skip(1).any(|meta| meta.path().is_ident("cfg")))
}

/// Refuses argument types that no extractor can have.
fn check_type(ty: &Type, mistakes: &mut Mistakes) {
    match ty {
        Type::Reference(reference) => mistakes.about(
            reference,
            format!("an extractor gives its value away, it lends none: write `{}`", display(&reference.elem)),
        ),
        Type::ImplTrait(any) => mistakes.about(
            any,
            "an extractor is found by its type, so the type needs a name: write it, or add a type parameter",
        ),
        other => {
            let mut hidden = Hidden { mistakes };
            hidden.visit_type(other);
        }
    }
}

/// Looks for the same things further inside a type.
struct Hidden<'a> {
    mistakes: &'a mut Mistakes,
}

impl<'ast> Visit<'ast> for Hidden<'_> {
    fn visit_type_impl_trait(&mut self, any: &'ast TypeImplTrait) {
        self.mistakes.about(
            any,
            "an extractor is found by its type, so the type needs a name: write it, or add a type parameter",
        );
    }

    fn visit_type_reference(&mut self, reference: &'ast TypeReference) {
        if reference.lifetime.is_none() {
            self.mistakes.about(
                reference,
                "a handler outlives the connection it came from and borrows nothing; take an owned type",
            );
        }
        syn::visit::visit_type_reference(self, reference);
    }

    fn visit_lifetime(&mut self, lifetime: &'ast Lifetime) {
        if lifetime.ident == "_" {
            self.mistakes.about(
                lifetime,
                "a handler outlives the connection it came from and borrows nothing; take an owned type",
            );
        }
    }

    fn visit_type_fn_ptr(&mut self, _: &'ast syn::TypeFnPtr) {}

    fn visit_parenthesized_generic_arguments(&mut self, _: &'ast syn::ParenthesizedGenericArguments) {}
}

/// A type as a user would write it.
pub(super) fn display(tokens: &impl ToTokens) -> String {
    let spaced = tokens.to_token_stream().to_string();
    let mut text = String::with_capacity(spaced.len());
    let mut pieces = spaced.split(' ').peekable();
    while let Some(piece) = pieces.next() {
        text.push_str(piece);
        let Some(next) = pieces.peek() else { break };
        let glued = ["<", "::", "&", "(", "["].iter().any(|end| piece.ends_with(end))
            || ["<", ">", "::", ",", ")", "]", "("].iter().any(|start| next.starts_with(start));
        if !glued {
            text.push(' ');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::*;
    use crate::syntax::Options;

    fn told(item: proc_macro2::TokenStream) -> Vec<String> {
        let mut mistakes = Mistakes::default();
        match Handler::parse(item) {
            Ok(handler) => {
                handler.arguments(&Options::default(), &mut mistakes);
            }
            Err(error) => mistakes.push(error),
        }
        mistakes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_handler_passes() {
        let none: [String; 0] = [];
        assert_eq!(
            told(quote! {
                pub(crate) async fn send<D: Db, const N: usize>(
                    #[allow(unused)] mut user: AuthUser<D>,
                    State(App { name, .. }): State<App>,
                    Query(found): Query<HashMap<String, &'static str>>,
                    Params(send): Params<SendMessage>,
                ) -> RpcStream<impl Stream<Item = Event>> where D: Clone { half typed }
            }),
            none
        );
    }

    #[test]
    fn each_refusal_is_told_once() {
        for one in [
            quote!(
                async fn send(&self) {}
            ),
            quote!(
                async fn send(self: Arc<Self>) {}
            ),
            quote!(
                fn send() {}
            ),
            quote!(
                const fn send() {}
            ),
            quote!(
                async unsafe fn send() {}
            ),
            quote!(
                async extern "C" fn send() {}
            ),
            quote!(
                async unsafe extern "C" fn send(count: u8, ...) {}
            ),
            quote!(
                async fn send<'a>(name: Name<'a>) {}
            ),
            quote!(
                async fn send<#[cfg(unix)] D>() {}
            ),
            quote!(
                async fn send(user: &AuthUser) {}
            ),
            quote!(
                async fn send(user: Wrapped<&AuthUser>) {}
            ),
            quote!(
                async fn send(user: Wrapped<'_>) {}
            ),
            quote!(
                async fn send(user: impl Auth) {}
            ),
            quote!(
                async fn send(user: Wrapped<impl Auth>) {}
            ),
            quote!(
                async fn send(#[cfg_attr(unix, cfg(feature = "x"))] user: AuthUser) {}
            ),
            quote!(
                async fn send(Json(a): Json<A>, Json(b): Json<B>) {}
            ),
            quote!(
                async fn send(body: Option<axum::body::Bytes>, user: AuthUser) {}
            ),
            quote!(
                #[idempotent(method = "message/stream")]
                async fn send() {}
            ),
            quote!(
                async fn send();
            ),
            quote!(
                pub struct Send;
            ),
            quote!(
                const SEND: u8 = 1;
            ),
            quote!(impl Send {}),
        ] {
            let told = told(one.clone());
            let expected = if one.to_string().contains("...") { 3 } else { 1 };
            assert_eq!(told.len(), expected, "{one}: {told:#?}");
        }
    }

    #[test]
    fn types_are_shown_as_they_are_written() {
        assert_eq!(display(&quote!(axum::Json<Vec<(A, &B)>>)), "axum::Json<Vec<(A, &B)>>");
    }
}

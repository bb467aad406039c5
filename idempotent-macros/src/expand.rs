//! From an annotation and its function to what the compiler gets to see.

use idempotent_build::card::unlisted;
use idempotent_build::syntax::{Annotation, Declaration, Handler, OnTakeover, method_hash};
use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::FnArg;

use crate::attributes::Sorted;
use crate::names;
use crate::wrapper::Wrapper;

/// The attribute: whatever is wrong, the item is emitted, so that one mistake is one error.
pub(crate) fn idempotent(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let annotation = Annotation::parse(arguments.clone());
    let mut mistakes = annotation.mistakes.clone();
    let handler = match Handler::parse(item.clone()) {
        Ok(handler) => handler,
        Err(error) => {
            // The options of something that cannot be annotated at all are beside the point.
            let error = error.to_compile_error();
            return quote!(#error #item);
        }
    };
    if let Some(alternatives) = alternatives(&arguments, &annotation, &handler) {
        return alternatives;
    }
    let parsed = handler.arguments(&annotation.options, &mut mistakes);
    let attributes = Sorted::new(&handler.attributes);
    let errors = mistakes.to_compile_errors();
    if handler.signature.inputs.iter().any(|input| matches!(input, FnArg::Receiver(_))) {
        // Inside an `impl`: no other item may stand beside a method.
        let function = as_written(&handler, &attributes);
        return quote!(#function #errors);
    }
    let runtime = names::runtime(&handler.signature.ident);
    let import = import(&annotation, &runtime, &attributes);
    let wrapper = Wrapper {
        annotation: &annotation,
        handler: &handler,
        arguments: &parsed,
        attributes: &attributes,
        runtime: &runtime,
        sound: mistakes.is_empty(),
    };
    let operation = operation(&annotation, &handler, &attributes, &runtime);
    quote!(#errors #import #wrapper #operation)
}

/// Two handlers, of which the compiler drops one, for a handler with an argument under a `cfg`.
fn alternatives(arguments: &TokenStream, annotation: &Annotation, handler: &Handler) -> Option<TokenStream> {
    let (predicate, with, without) = handler.under_cfg()?;
    let path = facade(annotation);
    Some(quote! {
        #[cfg(#predicate)]
        #[#path::idempotent(#arguments)]
        #with

        #[cfg(not(#predicate))]
        #[#path::idempotent(#arguments)]
        #without
    })
}

/// Where the `idempotent` crate is.
fn facade(annotation: &Annotation) -> TokenStream {
    match &annotation.options.krate {
        Some(krate) => krate.value.to_token_stream(),
        None => quote_spanned!(Span::mixed_site()=> ::idempotent),
    }
}

/// Gives the runtime a short name. It is imported, and not named by its path at each use, because a path that leads nowhere
/// is one error in an import and one at each use otherwise.
fn import(annotation: &Annotation, runtime: &Ident, attributes: &Sorted<'_>) -> TokenStream {
    let cfg = &attributes.cfg;
    let path = facade(annotation);
    quote_spanned! {Span::mixed_site()=>
        #(#cfg)*
        use #path::__private as #runtime;
    }
}

fn as_written(handler: &Handler, attributes: &Sorted<'_>) -> TokenStream {
    let Sorted { outer, inner, .. } = attributes;
    let Handler { visibility, signature, body, .. } = handler;
    quote!(#(#outer)* #(#inner)* #visibility #signature #body)
}

/// The operation as a type, with what the annotation declares as its constants.
fn operation(annotation: &Annotation, handler: &Handler, attributes: &Sorted<'_>, runtime: &Ident) -> TokenStream {
    let Declaration { method, key, on_takeover, .. } = &annotation.declaration;
    let place = names::generated(handler.signature.ident.span());
    // The type is public whatever the function is: `agent_card!()` infers it, elsewhere in the crate or in the agent's.
    let name = names::operation(&handler.signature.ident);
    let cfg = &attributes.cfg;
    let on_takeover = match on_takeover {
        OnTakeover::Run => quote!(Run),
        OnTakeover::Refuse => quote!(Refuse),
    };
    let facts = known_method(annotation, attributes, runtime, &name);
    quote_spanned! {place=>
        #(#cfg)*
        #[doc(hidden)]
        pub enum #name {}

        #(#cfg)*
        impl #runtime::Operation for #name {
            const ANNOTATION: #runtime::Annotation = #runtime::Annotation {
                method: #method,
                key: #key,
                on_takeover: #runtime::OnTakeover::#on_takeover,
            };
        }

        #facts
    }
}

/// Tells the compiler that the method has a handler, that it has no other one, and whether the AgentCard lacks it.
fn known_method(annotation: &Annotation, attributes: &Sorted<'_>, runtime: &Ident, name: &Ident) -> TokenStream {
    let method = &annotation.declaration.method;
    if method.is_empty() || !annotation.mistakes.is_empty() {
        return TokenStream::new();
    }
    let written = annotation.options.method_span();
    let place = names::generated(written);
    let hash = Literal::u64_suffixed(method_hash(method)).into_token_stream();
    let guard = names::guard(method, written);
    let cfg = &attributes.cfg;
    let unlisted = unlisted(method).map(|words| {
        let error = syn::Error::new(written, words).to_compile_error();
        quote!(#(#cfg)* #[cfg(not(test))] #error)
    });
    // Macros exported by name share one namespace per crate, whatever module they stand in: a second handler of the
    // method is a second definition, and the error shows both. Tests may have as many handlers of a method as they like.
    quote_spanned! {place=>
        #(#cfg)*
        impl #runtime::AnnotatedBy<#name> for #runtime::MethodKey<#hash> {}

        #(#cfg)*
        #[cfg(not(test))]
        #[doc(hidden)]
        #[macro_export]
        macro_rules! #guard {
            () => {};
        }

        #unlisted
    }
}

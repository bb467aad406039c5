//! The part of the attribute's expansion that concerns the card: handlers that need no engine to compile.

use idempotent_build::card::unlisted;
use idempotent_build::syntax::{Annotation, Handler, method_hash};
use quote::{format_ident, quote, quote_spanned};

/// The function itself, the fact that its method has a handler, and the check that the card lists it.
#[proc_macro_attribute]
pub fn idempotent(arguments: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let annotation = Annotation::parse(arguments.into());
    let (declaration, options) = (&annotation.declaration, &annotation.options);
    let span = options.method.as_ref().expect("fixtures name their method").value.span();
    let runtime = match &options.krate {
        Some(krate) => {
            let path = &krate.value;
            quote!(#path::__private)
        }
        None => quote!(::idempotent::__private),
    };
    let hash = method_hash(&declaration.method);
    let function = Handler::parse(item.clone().into()).expect("fixtures annotate functions").signature.ident;
    let operation = format_ident!("Operation{function}");
    let unlisted = unlisted(&declaration.method).map(|words| {
        let error = syn::Error::new(span, words).to_compile_error();
        quote!(#[cfg(not(test))] #error)
    });
    let item = proc_macro2::TokenStream::from(item);
    quote_spanned! {span=>
        #item
        #[doc(hidden)]
        #[allow(non_camel_case_types)]
        pub enum #operation {}
        impl #runtime::AnnotatedBy<#operation> for #runtime::MethodKey<#hash> {}
        #unlisted
    }
    .into()
}

//! The function that stands under the user's name: it takes the request to the gate, and the gate runs the user's function.

use idempotent_build::syntax::{Annotation, Argument, Handler, Reads};
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::visit_mut::VisitMut;
use syn::{GenericParam, PatIdent, ReturnType};

use crate::attributes::Sorted;
use crate::names;

/// All that a wrapper is made of.
pub(crate) struct Wrapper<'a> {
    pub(crate) annotation: &'a Annotation,
    pub(crate) handler: &'a Handler,
    pub(crate) arguments: &'a [Argument],
    pub(crate) attributes: &'a Sorted<'a>,
    /// Path to the runtime's private module.
    pub(crate) runtime: &'a TokenStream,
    /// Whether no mistake has been found. Otherwise the wrapper has its final signature and a body that is never run,
    /// so that whoever mentions the function gets no second error.
    pub(crate) sound: bool,
}

impl ToTokens for Wrapper<'_> {
    // Input:
    //
    //     pub async fn send_message(user: AuthUser, Params(send): Params<SendMessage>) -> Task { … }
    //
    // Output:
    //
    //     pub async fn send_message<S, C, M>(call: Call<Operation, S, C>) -> Response
    //     where
    //         S: SuppliesIdempotency<C>,
    //         AuthUser: FromRequestParts<S>,
    //         Params<SendMessage>: FromRequest<S, M>,
    //     {
    //         async fn send_message(user: AuthUser, Params(send): Params<SendMessage>) -> Task { … }
    //         …
    //     }
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let runtime = self.runtime;
        let outer = &self.attributes.outer;
        let visibility = &self.handler.visibility;
        let name = &self.handler.signature.ident;
        let operation = names::operation(name);
        let state = self.state();
        let generics = self.generics();
        let bounds = self.bounds(&state);
        let user_function = self.user_function();
        let body = if self.sound { self.body(&state) } else { quote!(#runtime::never(__call)) };
        tokens.extend(quote_spanned! {names::generated(name.span())=>
            #(#outer)*
            #visibility async fn #name<#generics>(
                mut __call: #runtime::Call<#operation, #state, __C>,
            ) -> #runtime::Response
            where #bounds
            {
                #user_function
                #body
            }
        });
    }
}

impl Wrapper<'_> {
    /// The router's state: any that fits, or the one that was named.
    fn state(&self) -> TokenStream {
        match &self.annotation.options.state {
            Some(state) => state.value.to_token_stream(),
            None => quote!(__S),
        }
    }

    fn concrete(&self) -> bool {
        self.annotation.options.state.is_some()
    }

    fn last(&self) -> Option<&Argument> {
        self.arguments.last().filter(|argument| argument.reads == Reads::Last)
    }

    fn header_only(&self) -> impl Iterator<Item = (usize, &Argument)> {
        self.arguments.iter().enumerate().filter(|(_, argument)| argument.reads == Reads::Headers)
    }

    /// The user's type and const parameters first, so that they can be given; the rest is always inferred.
    fn generics(&self) -> TokenStream {
        let user = self
            .handler
            .signature
            .generics
            .params
            .iter()
            .filter(|parameter| !matches!(parameter, GenericParam::Lifetime(_)));
        let mut all = quote!(#(#user,)*);
        if !self.concrete() {
            all.extend(quote!(__S,));
        }
        all.extend(quote!(__C));
        if self.sound && !self.concrete() && self.last().is_some() {
            all.extend(quote!(, __M));
        }
        all
    }

    /// The user's bounds, and one for each extractor, made of the user's own tokens: that is where rustc will point.
    ///
    /// With a named state the extractors are used directly, which gives their errors at the definition.
    fn bounds(&self, state: &TokenStream) -> TokenStream {
        let runtime = self.runtime;
        let mut bounds = quote!(#state: #runtime::SuppliesIdempotency<__C>,);
        if self.sound && !self.concrete() {
            for (_, argument) in self.header_only() {
                let ty = &argument.ty;
                bounds.extend(quote!(#ty: #runtime::FromRequestParts<#state>,));
            }
            if let Some(argument) = self.last() {
                let ty = &argument.ty;
                bounds.extend(quote!(#ty: #runtime::FromRequest<#state, __M>,));
            }
        }
        if let Some(user) = &self.handler.signature.generics.where_clause {
            let predicates = user.predicates.iter();
            bounds.extend(quote!(#(#predicates,)*));
        }
        bounds
    }

    /// The function as the user wrote it, under its name. The name belongs to the macro: a handler that nobody mounts is
    /// reported once.
    fn user_function(&self) -> TokenStream {
        let inner = &self.attributes.inner;
        let mut signature = self.handler.signature.clone();
        signature.ident.set_span(names::generated(signature.ident.span()));
        if !self.sound {
            // What has been refused already, rustc would refuse again.
            signature.variadic = None;
            signature.abi = None;
            signature.constness = signature.constness.filter(|_| signature.asyncness.is_none());
        }
        let body = &self.handler.body;
        quote!(#(#inner)* #signature #body)
    }

    fn body(&self, state: &TokenStream) -> TokenStream {
        let runtime = self.runtime;
        let extract = self.header_only().map(|(index, argument)| {
            let variable = variable(index);
            let ty = &argument.ty;
            quote! {
                let #variable = match __call.header::<#ty>().await {
                    #runtime::Ok(__value) => __value,
                    #runtime::Err(__refused) => return __refused,
                };
            }
        });
        let scope = self.scope();
        let last = self.last().map(|argument| {
            let variable = variable(self.arguments.len() - 1);
            let ty = &argument.ty;
            let via = if self.concrete() { quote!(_) } else { quote!(__M) };
            quote! {
                let #variable = match __execution.last::<#ty, #via>().await {
                    #runtime::Ok(__value) => __value,
                    #runtime::Err(__refused) => return __refused,
                };
            }
        });
        let answer = self.call_user_function();
        quote! {
            #(#extract)*
            #scope
            __call.run(__scope, move |mut __execution: #runtime::Execution<#state>| async move {
                #last
                __execution.answer(#answer).await
            }).await
        }
    }

    /// The user's names are bound by reference, and only while the scope is computed.
    fn scope(&self) -> TokenStream {
        let runtime = self.runtime;
        let Some(scope) = &self.annotation.options.scope else {
            return quote!(let __scope = #runtime::Scope::global(););
        };
        let bindings = self
            .header_only()
            .filter(|(_, argument)| self.annotation.options.scope_uses(&argument.names))
            .map(|(index, argument)| {
                let variable = variable(index);
                let mut pattern = argument.pattern.clone();
                ByReference.visit_pat_mut(&mut pattern);
                quote!(let #pattern = &#variable;)
            });
        let expression = &scope.value;
        quote! {
            let __scope = {
                #(#bindings)*
                #runtime::scope(&(#expression))
            };
        }
    }

    /// `send_message(__0, __1).await`, seen from outside as the return type: what is wrong with the answer is told there.
    fn call_user_function(&self) -> TokenStream {
        let (start, end) = self.return_type();
        let (start, end) = (names::generated(start), names::generated(end));
        let mut name = self.handler.signature.ident.clone();
        name.set_span(start);
        let turbofish = self.turbofish();
        let variables = (0..self.arguments.len()).map(variable);
        let call = quote_spanned!(start=> #name #turbofish (#(#variables),*));
        quote_spanned!(end=> #call.await)
    }

    /// First and last token of the return type.
    fn return_type(&self) -> (Span, Span) {
        let tokens: Vec<TokenTree> = match &self.handler.signature.output {
            ReturnType::Type(_, ty) => ty.to_token_stream().into_iter().collect(),
            ReturnType::Default => Vec::new(),
        };
        match (tokens.first(), tokens.last()) {
            (Some(first), Some(last)) => (first.span(), last.span()),
            _ => {
                let name = self.handler.signature.ident.span();
                (name, name)
            }
        }
    }

    fn turbofish(&self) -> TokenStream {
        let parameters: Vec<&Ident> = self
            .handler
            .signature
            .generics
            .params
            .iter()
            .filter_map(|parameter| match parameter {
                GenericParam::Type(parameter) => Some(&parameter.ident),
                GenericParam::Const(parameter) => Some(&parameter.ident),
                GenericParam::Lifetime(_) => None,
            })
            .collect();
        if parameters.is_empty() {
            return TokenStream::new();
        }
        quote!(::<#(#parameters),*>)
    }
}

/// Takes `mut` and `ref` out of a pattern: matched against a reference, it binds by reference already.
struct ByReference;

impl VisitMut for ByReference {
    fn visit_pat_ident_mut(&mut self, pattern: &mut PatIdent) {
        pattern.by_ref = None;
        pattern.mutability = None;
        syn::visit_mut::visit_pat_ident_mut(self, pattern);
    }
}

fn variable(index: usize) -> Ident {
    format_ident!("__{}", index, span = Span::mixed_site())
}

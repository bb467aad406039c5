//! The function that stands under the user's name: it takes the request to the gate, and the gate runs the user's function.

use idempotent_build::syntax::{Annotation, Argument, Handler, Options, Reads};
use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote_spanned};
use syn::visit_mut::VisitMut;
use syn::{Expr, FieldPat, GenericParam, Pat, PatIdent, ReturnType, WhereClause};

use crate::attributes::Sorted;
use crate::names::{self, ends};

/// Tokens that belong to the macro: their local variables are none of the user's.
macro_rules! generated {
    ($($tokens:tt)*) => {
        quote_spanned!(Span::mixed_site()=> $($tokens)*)
    };
}

/// All that a wrapper is made of.
pub(crate) struct Wrapper<'a> {
    pub(crate) annotation: &'a Annotation,
    pub(crate) handler: &'a Handler,
    pub(crate) arguments: &'a [Argument],
    pub(crate) attributes: &'a Sorted<'a>,
    /// The name under which the runtime was imported.
    pub(crate) runtime: &'a Ident,
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
    //     pub fn send_message<S, C, M>(call: Call<Operation, S, C>) -> impl Future<Output = Response> + Send
    //     where
    //         S: SuppliesIdempotency<C>,
    //         AuthUser: FromRequestParts<S>,
    //         Params<SendMessage>: FromRequest<S, M>,
    //     {
    //         async fn send_message(user: AuthUser, Params(send): Params<SendMessage>) -> Task { … }
    //         fn scope((user, ()): &(AuthUser, ())) -> Scope { … }
    //         fn run((user, ()): (AuthUser, ()), send: Params<SendMessage>, reply: Reply) -> BoxFuture<'static, Response> {
    //             respond(send_message(user, send), reply)
    //         }
    //         call.serve(scope, run)
    //     }
    //
    // What stands here is compiled for each handler, so there is little of it. One call, and not the steps that it takes. No state
    // machine, as an async function would be; but the future's type stays hidden, as it would: where a bound does not hold, the
    // compiler then says it once. Functions, and not closures, which would inherit the wrapper's bounds: what the compiler finds
    // out under one set of bounds is of no use to it under another.
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
        let body = if self.sound { self.body() } else { generated!(#runtime::refused(__call)) };
        tokens.extend(quote_spanned! {names::generated(name.span())=>
            #(#outer)*
            #visibility fn #name<#generics>(
                __call: #runtime::Call<#operation, #state, __C>,
            ) -> impl #runtime::Future<Output = #runtime::Response> + #runtime::Send
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
            None => generated!(__S),
        }
    }

    fn concrete(&self) -> bool {
        self.annotation.options.state.is_some()
    }

    fn last(&self) -> Option<&Argument> {
        self.arguments.last().filter(|argument| argument.reads != Reads::Headers)
    }

    fn header_only(&self) -> impl DoubleEndedIterator<Item = (usize, &Argument)> {
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
        let mut all = generated!(#(#user,)*);
        if !self.concrete() {
            all.extend(generated!(__S,));
        }
        all.extend(generated!(__C: 'static));
        if self.sound && self.last().is_some() {
            all.extend(generated!(, __M: 'static));
        }
        all
    }

    /// The user's bounds, and one for each extractor, made of the user's own tokens: that is where rustc will point.
    ///
    /// With a named state they hold or they do not, which rustc tells at the definition.
    fn bounds(&self, state: &TokenStream) -> TokenStream {
        let runtime = self.runtime;
        let engine =
            bound(generated!(#runtime::SuppliesIdempotency), &[&generated!(__C)], &self.handler.signature.ident);
        let mut bounds = generated!(#state: #engine + #runtime::Clone + #runtime::Send + #runtime::Sync + 'static,);
        if self.sound {
            for (_, argument) in self.header_only() {
                let ty = &argument.ty;
                let bound = bound(generated!(#runtime::FromRequestParts), &[state], ty);
                let send = placed(generated!(#runtime::Send), ty);
                bounds.extend(generated!(#ty: #bound + #send,));
            }
            if let Some(argument) = self.last() {
                let ty = &argument.ty;
                let bound = bound(generated!(#runtime::FromRequest), &[state, &generated!(__M)], ty);
                let send = placed(generated!(#runtime::Send), ty);
                bounds.extend(generated!(#ty: #bound + #send,));
            }
        }
        if let Some(user) = &self.handler.signature.generics.where_clause {
            let predicates = user.predicates.iter();
            bounds.extend(generated!(#(#predicates,)*));
        }
        bounds
    }

    /// The function as the user wrote it, under its name. The name belongs to the macro: what lints say of names, they say of the
    /// wrapper's.
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
        let body = self.user_body();
        generated!(#(#inner)* #signature #body)
    }

    /// The body as the user wrote it. What only the scope uses is used there too, so that nobody is advised to rename it.
    fn user_body(&self) -> Group {
        let body = &self.handler.body;
        let used: TokenStream = self.names_in_scope().map(|name| generated!(let _ = &#name;)).collect();
        if used.is_empty() {
            return body.clone();
        }
        // Inner attributes come before all statements.
        let mut tokens: Vec<TokenTree> = body.stream().into_iter().collect();
        let attributes = tokens.chunks_exact(3).take_while(|tokens| is_inner_attribute(tokens)).count() * 3;
        tokens.splice(attributes..attributes, used);
        let mut all = Group::new(body.delimiter(), tokens.into_iter().collect());
        all.set_span(body.span());
        all
    }

    /// The names that the header-only arguments bind and the scope uses.
    fn names_in_scope(&self) -> impl Iterator<Item = &Ident> {
        let options = &self.annotation.options;
        let names = self.header_only().flat_map(|(_, argument)| &argument.names);
        names.filter(|name| options.scope_uses(std::slice::from_ref(*name)))
    }

    fn body(&self) -> TokenStream {
        let check_state = self.check_state();
        let (scope, run) = (self.scope(), self.run());
        let turbofish = self.turbofish();
        let scope_of = match scope {
            Some(_) => generated!(__idempotent_scope #turbofish),
            None => {
                let runtime = self.runtime;
                generated!(#runtime::global_scope)
            }
        };
        generated! {
            #check_state
            #scope
            #run
            __call.serve(#scope_of, __idempotent_run #turbofish)
        }
    }

    /// What only the definition of a handler with a named state can tell: the wrapper's bounds leave the engine's connection
    /// and the way of extraction open.
    fn check_state(&self) -> Option<TokenStream> {
        let runtime = self.runtime;
        let state = &self.annotation.options.state.as_ref()?.value;
        if !self.handler.signature.generics.params.is_empty() {
            return None;
        }
        let last = self.last().map(|argument| {
            let ty = &argument.ty;
            generated!(#runtime::can_be_last::<#ty, #state, _>();)
        });
        Some(generated! {
            const _: fn() = || {
                #runtime::supplies_idempotency::<#state, _>();
                #last
            };
        })
    }

    /// The header-only arguments as one type.
    fn headers(&self) -> TokenStream {
        nested(self.header_only().map(|(_, argument)| argument.ty.to_token_stream()))
    }

    /// The user's type and const parameters, for a function that stands inside the wrapper.
    fn own_generics(&self) -> (TokenStream, Option<&WhereClause>) {
        let generics = &self.handler.signature.generics;
        (generics.params.to_token_stream(), generics.where_clause.as_ref())
    }

    /// From the header-only arguments to the scope. The user's names are bound by reference, and only those that the scope uses.
    fn scope(&self) -> Option<TokenStream> {
        let runtime = self.runtime;
        let scope = self.annotation.options.scope.as_ref()?;
        let is_used = |argument: &Argument| self.annotation.options.scope_uses(&argument.names);
        let used = nested(self.header_only().map(|(index, argument)| match is_used(argument) {
            true => variable(index).into_token_stream(),
            false => generated!(_),
        }));
        let bindings = self.header_only().filter(|(_, argument)| is_used(argument)).map(|(index, argument)| {
            let variable = variable(index);
            let mut pattern = argument.pattern.clone();
            let mut by_reference = ByReference { options: &self.annotation.options, names: Vec::new() };
            by_reference.visit_pat_mut(&mut pattern);
            let names = by_reference.names;
            // Names inside a macro call are guessed, so that not every one that is bound need be used.
            let used = generated!(#(let _ = &#names;)*);
            match pattern {
                Pat::Ident(PatIdent { subpat: None, .. }) => generated!(let #pattern = #variable; #used),
                // One that does not always match is refused in the user's function, and there alone.
                _ => generated!(let #pattern = #variable else { return #runtime::Scope::global() }; #used),
            }
        });
        let argument = borrowed(&scope.value);
        let headers = self.headers();
        let (generics, bounds) = self.own_generics();
        Some(generated! {
            fn __idempotent_scope<#generics>(#used: &#headers) -> #runtime::Scope #bounds {
                #(#bindings)*
                #runtime::scope(#argument)
            }
        })
    }

    /// From all arguments to the answer.
    fn run(&self) -> TokenStream {
        let runtime = self.runtime;
        let arguments = nested(self.header_only().map(|(index, _)| variable(index).into_token_stream()));
        let headers = self.headers();
        let last = match self.last() {
            Some(argument) => {
                let variable = variable(self.arguments.len() - 1);
                let ty = &argument.ty;
                generated!(#variable: #ty)
            }
            None => generated!(_: #runtime::NoBody),
        };
        let (generics, bounds) = self.own_generics();
        let respond = self.respond();
        generated! {
            fn __idempotent_run<#generics>(
                #arguments: #headers,
                #last,
                __reply: #runtime::Reply,
            ) -> #runtime::BoxFuture<'static, #runtime::Response> #bounds {
                #respond
            }
        }
    }

    /// `respond(send_message(__0, __1), __reply)`. Seen from outside, `respond` is the return type, where is told what is wrong
    /// with the answer, and the call is the function's name, where is told that its future cannot be sent to another thread.
    fn respond(&self) -> TokenStream {
        let name = &self.handler.signature.ident;
        let answer: &dyn ToTokens = match &self.handler.signature.output {
            ReturnType::Type(_, ty) => ty,
            ReturnType::Default => name,
        };
        let (start, end) = ends(&answer);
        let (start, end) = (names::generated(start), names::generated(end));
        let turbofish = placed(self.turbofish(), name);
        let mut name = name.clone();
        name.set_span(names::generated(name.span()));
        let variables = (0..self.arguments.len()).map(variable);
        let mut arguments = Group::new(Delimiter::Parenthesis, generated!(#(#variables),*));
        arguments.set_span(name.span());
        let call = quote_spanned!(name.span()=> #name #turbofish #arguments);
        let mut all = Group::new(Delimiter::Parenthesis, generated!(#call, __reply));
        all.set_span(end);
        let runtime = self.runtime;
        let respond = placed(generated!(#runtime::respond), &answer);
        quote_spanned!(start=> #respond #all)
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
        generated!(::<#(#parameters),*>)
    }
}

/// Takes `mut`, `ref` and `&` out of a pattern, since it binds by reference when matched against one, and every name that the
/// scope does not use, since nobody would. Keeps the names that are left.
struct ByReference<'a> {
    options: &'a Options,
    names: Vec<Ident>,
}

impl VisitMut for ByReference<'_> {
    fn visit_pat_mut(&mut self, pattern: &mut Pat) {
        while let Pat::Reference(reference) = pattern {
            *pattern = (*reference.pat).clone();
        }
        syn::visit_mut::visit_pat_mut(self, pattern);
        if let Pat::Ident(name) = pattern {
            name.by_ref = None;
            name.mutability = None;
            if name.subpat.is_none() && !self.options.scope_uses(std::slice::from_ref(&name.ident)) {
                *pattern = syn::parse_quote!(_);
            } else {
                self.names.push(name.ident.clone());
            }
        }
    }

    fn visit_field_pat_mut(&mut self, field: &mut FieldPat) {
        syn::visit_mut::visit_field_pat_mut(self, field);
        if matches!(*field.pat, Pat::Wild(_)) && field.colon_token.is_none() {
            field.colon_token = Some(Default::default());
        }
    }
}

/// `#![…]`
fn is_inner_attribute(tokens: &[TokenTree]) -> bool {
    matches!(
        tokens,
        [TokenTree::Punct(hash), TokenTree::Punct(bang), TokenTree::Group(group)]
            if hash.as_char() == '#' && bang.as_char() == '!' && group.delimiter() == Delimiter::Bracket
    )
}

/// `&(expression)` that looks, to a reader of errors, like the expression itself.
fn borrowed(expression: &Expr) -> TokenStream {
    let (start, end) = ends(expression);
    let mut group = Group::new(Delimiter::Parenthesis, expression.to_token_stream());
    group.set_span(names::generated(end));
    quote_spanned!(names::generated(start)=> &#group)
}

/// `path<arguments>` that looks, to a reader of errors, like one of the user's tokens.
fn bound(path: TokenStream, arguments: &[&TokenStream], place: &impl ToTokens) -> TokenStream {
    let (_, end) = ends(place);
    let path = placed(path, place);
    quote_spanned!(names::generated(end)=> #path<#(#arguments),*>)
}

/// The tokens, all of them where `place` begins.
fn placed(tokens: TokenStream, place: &impl ToTokens) -> TokenStream {
    let start = names::generated(ends(place).0);
    let move_there = |mut token: TokenTree| {
        token.set_span(start);
        token
    };
    tokens.into_iter().map(move_there).collect()
}

/// `(a, (b, ()))`: as many as there are, and still one type that the runtime can take apart.
fn nested(parts: impl DoubleEndedIterator<Item = TokenStream>) -> TokenStream {
    parts.rev().fold(generated!(()), |rest, part| generated!((#part, #rest)))
}

fn variable(index: usize) -> Ident {
    format_ident!("__{}", index, span = Span::mixed_site())
}

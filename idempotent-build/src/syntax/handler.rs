//! The annotated function: everything in front of its body is parsed, the body stays tokens.
//!
//! A body that does not parse yet is what an editor sees most of the time. Kept as tokens it costs nothing to read, its
//! errors come from rustc at the user's own lines, and completion works inside it.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::{ToTokens, TokenStreamExt as _};
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, FnArg, Ident, LitBool, Meta, Signature, Token, Visibility};

use super::arguments::{self, Argument};
use super::{Mistakes, Options, scope, signature};

/// An `async fn` under `#[idempotent]`.
///
/// ```
/// use idempotent_build::syntax::Handler;
///
/// let handler = Handler::parse(quote::quote! {
///     pub async fn send_message(user: AuthUser) -> Task { user. }
/// })?;
/// assert_eq!(handler.signature.ident, "send_message");
/// # Ok::<(), syn::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Handler {
    /// Attributes above it and, as rustc sees them, doc comments.
    pub attributes: Vec<Attribute>,
    /// Its visibility.
    pub visibility: Visibility,
    /// From `async` to the end of the `where` clause.
    pub signature: Signature,
    /// The block, braces included.
    pub body: Group,
}

impl Handler {
    /// Reads a function.
    ///
    /// # Errors
    ///
    /// When the item is no function, or one without a body.
    pub fn parse(item: TokenStream) -> syn::Result<Handler> {
        syn::parse2(item)
    }

    /// If one of its arguments stands under a `#[cfg(…)]`: the predicate of the first of these, the function with this argument, and
    /// without it.
    ///
    /// An attribute macro cannot know which it is; the compiler can, of an item.
    ///
    /// ```
    /// use idempotent_build::syntax::Handler;
    ///
    /// let handler = Handler::parse(quote::quote!(async fn send(#[cfg(unix)] user: AuthUser, id: TaskId) -> Task {}))?;
    /// let (predicate, with, without) = handler.under_cfg().expect("an argument under a cfg");
    /// assert_eq!(predicate.to_string(), "unix");
    /// assert_eq!((with.signature.inputs.len(), without.signature.inputs.len()), (2, 1));
    /// assert!(with.under_cfg().is_none() && without.under_cfg().is_none());
    /// # Ok::<(), syn::Error>(())
    /// ```
    pub fn under_cfg(&self) -> Option<(TokenStream, Handler, Handler)> {
        let (place, cfg, predicate) = self.signature.inputs.iter().enumerate().find_map(|(place, input)| {
            let attributes = attributes_of(input);
            let cfg = attributes.iter().position(|attribute| attribute.path().is_ident("cfg"))?;
            Some((place, cfg, predicate(&attributes[cfg])?))
        })?;
        let (mut with, mut without) = (self.clone(), self.clone());
        match &mut with.signature.inputs[place] {
            FnArg::Typed(argument) => argument.attrs.remove(cfg),
            FnArg::Receiver(receiver) => receiver.attrs.remove(cfg),
        };
        let inputs = self.signature.inputs.iter().enumerate();
        without.signature.inputs =
            inputs.filter(|(other, _)| *other != place).map(|(_, input)| input.clone()).collect();
        Some((predicate, with, without))
    }

    /// What its arguments are, with everything that keeps this function from being a handler pushed into `mistakes`.
    ///
    /// `options` matter because a `scope` decides which arguments must be there before the body is read.
    pub fn arguments(&self, options: &Options, mistakes: &mut Mistakes) -> Vec<Argument> {
        signature::check(self, mistakes);
        let mut arguments = arguments::read(&self.signature, mistakes);
        if let Some(scope) = &options.scope {
            scope::check(&scope.value, &mut arguments, mistakes);
        }
        arguments
    }
}

impl Parse for Handler {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let attributes = input.call(Attribute::parse_outer)?;
        let visibility = input.parse()?;
        if let Some(error) = not_a_function(input) {
            return Err(error);
        }
        let signature: Signature = input.parse()?;
        if input.peek(Token![;]) {
            return Err(syn::Error::new_spanned(
                &signature.ident,
                "a handler needs a body: annotate the function itself, not its declaration in a trait",
            ));
        }
        let token = input.parse()?;
        match body(&token) {
            Some(body) => Ok(Handler { attributes, visibility, signature, body }),
            None => Err(syn::Error::new_spanned(token, "expected the function's body")),
        }
    }
}

impl ToTokens for Handler {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Self { attributes, visibility, signature, body } = self;
        tokens.append_all(attributes);
        visibility.to_tokens(tokens);
        signature.to_tokens(tokens);
        body.to_tokens(tokens);
    }
}

fn attributes_of(input: &FnArg) -> &[Attribute] {
    match input {
        FnArg::Typed(argument) => &argument.attrs,
        FnArg::Receiver(receiver) => &receiver.attrs,
    }
}

/// The predicate of a `#[cfg(…)]`, if it has exactly one; all others are rustc's to refuse.
fn predicate(cfg: &Attribute) -> Option<TokenStream> {
    let tokens = cfg.meta.require_list().ok()?.tokens.clone();
    let is_one = syn::parse2::<Meta>(tokens.clone()).is_ok() || syn::parse2::<LitBool>(tokens.clone()).is_ok();
    is_one.then_some(tokens)
}

/// The block, taken out of the invisible group that `$body:block` of a `macro_rules!` puts around it.
fn body(token: &TokenTree) -> Option<Group> {
    match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group.clone()),
        TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
            let mut inside = group.stream().into_iter();
            inside.next().as_ref().and_then(body).filter(|_| inside.next().is_none())
        }
        _ => None,
    }
}

/// Names the item that was annotated instead of a function, at its keyword.
fn not_a_function(input: ParseStream<'_>) -> Option<syn::Error> {
    use syn::ext::IdentExt;
    const OTHERS: [&str; 9] = ["struct", "enum", "union", "trait", "impl", "mod", "static", "type", "use"];
    let keyword: Ident = input.fork().call(Ident::parse_any).ok()?;
    let constant = keyword == "const" && !input.peek2(Token![fn]) && !input.peek2(Token![async]);
    let constant = constant && !input.peek2(Token![unsafe]) && !input.peek2(Token![extern]);
    (constant || OTHERS.iter().any(|other| keyword == other)).then(|| {
        syn::Error::new(
            keyword.span(),
            format!("`#[idempotent]` goes on the `async fn` that answers the method, not on a `{keyword}`"),
        )
    })
}

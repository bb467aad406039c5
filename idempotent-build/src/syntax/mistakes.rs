//! All mistakes of one annotation, told at once.

use proc_macro2::TokenStream;
use quote::ToTokens;

/// The mistakes found so far, in the order in which they were found.
///
/// A check that fails pushes here and lets its caller go on: one mistake must not hide the next.
///
/// ```
/// use idempotent_build::syntax::Mistakes;
/// use proc_macro2::Span;
///
/// let mut mistakes = Mistakes::default();
/// mistakes.at(Span::call_site(), "first");
/// mistakes.at(Span::call_site(), "second");
/// assert_eq!(mistakes.iter().count(), 2);
/// ```
#[derive(Debug, Default, Clone)]
#[must_use = "mistakes that nobody reads are not told to the user"]
pub struct Mistakes(Vec<syn::Error>);

impl Mistakes {
    /// Tells a mistake at one place.
    pub fn at(&mut self, span: proc_macro2::Span, message: impl std::fmt::Display) {
        self.0.push(syn::Error::new(span, message));
    }

    /// Tells a mistake about some tokens, underlining all of them.
    pub fn about(&mut self, tokens: impl ToTokens, message: impl std::fmt::Display) {
        self.0.push(syn::Error::new_spanned(tokens, message));
    }

    /// Adds what a parser refused.
    pub fn push(&mut self, error: syn::Error) {
        self.0.push(error);
    }

    /// Adds the mistakes of another part.
    pub fn append(&mut self, other: Mistakes) {
        self.0.extend(other.0);
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The mistakes, one by one.
    pub fn iter(&self) -> impl Iterator<Item = &syn::Error> {
        self.0.iter()
    }

    /// One error that holds all of them.
    ///
    /// # Errors
    ///
    /// Whenever there is a mistake.
    pub fn into_result(self) -> syn::Result<()> {
        let mut all = self.0.into_iter();
        let Some(mut first) = all.next() else {
            return Ok(());
        };
        first.extend(all);
        Err(first)
    }

    /// A `compile_error!` for each of them, each at its own place.
    pub fn to_compile_errors(&self) -> TokenStream {
        self.0.iter().map(syn::Error::to_compile_error).collect()
    }
}

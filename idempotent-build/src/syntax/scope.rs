//! The `scope` expression: which arguments it uses, and why it must not use some.

use std::collections::BTreeSet;

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::visit::Visit;
use syn::{Expr, ExprAwait, ExprPath, ExprReturn, ExprTry, Lit, Macro};

use super::arguments::{Argument, Reads};
use super::signature::display;
use super::{Mistakes, Options};

/// Refuses what cannot be known before the claim, and marks the arguments that must be.
pub(super) fn check(scope: &Expr, arguments: &mut [Argument], mistakes: &mut Mistakes) {
    if let Some(literal) = literal(scope) {
        refuse_literal(literal, arguments, mistakes);
        return;
    }
    let mut found = Found::default();
    found.visit_expr(scope);
    for (span, message) in found.refused {
        mistakes.at(span, message);
    }
    for argument in arguments.iter_mut() {
        let Some(name) = found.names.iter().find(|name| argument.names.iter().any(|bound| bound == *name)) else {
            continue;
        };
        if argument.reads == Reads::Body {
            mistakes.at(
                name.span(),
                format!(
                    "`{name}` comes from `{}`, which reads the body, and the scope is decided before the body is read\n\
                     help: use an argument that reads headers only: the authenticated user, `State`, `HeaderMap`",
                    display(&argument.ty)
                ),
            );
        } else {
            argument.reads = Reads::Headers;
        }
    }
}

impl Options {
    /// Whether the scope uses one of these names.
    ///
    /// ```
    /// use idempotent_build::syntax::Options;
    ///
    /// let (options, _) = Options::parse(quote::quote!(scope = format!("{tenant}/{}", user.name)));
    /// let names = |text: &str| [syn::Ident::new(text, proc_macro2::Span::call_site())];
    /// assert!(options.scope_uses(&names("tenant")));
    /// assert!(options.scope_uses(&names("user")));
    /// assert!(!options.scope_uses(&names("name")));
    /// ```
    pub fn scope_uses(&self, names: &[Ident]) -> bool {
        self.scope.as_ref().is_some_and(|scope| {
            let mut found = Found::default();
            found.visit_expr(&scope.value);
            names.iter().any(|name| found.names.contains(name))
        })
    }
}

fn literal(scope: &Expr) -> Option<&Lit> {
    match scope {
        Expr::Lit(literal) => Some(&literal.lit),
        Expr::Group(group) => literal(&group.expr),
        Expr::Paren(paren) => literal(&paren.expr),
        _ => None,
    }
}

fn refuse_literal(literal: &Lit, arguments: &[Argument], mistakes: &mut Mistakes) {
    let quoted = match literal {
        Lit::Str(text) => text.parse::<Expr>().ok().filter(|inner| {
            let mut found = Found::default();
            found.visit_expr(inner);
            arguments.iter().any(|argument| argument.names.iter().any(|name| found.names.contains(name)))
        }),
        _ => None,
    };
    let help = match quoted {
        Some(expression) => format!("write it without quotes: `scope = {}`", display(&expression).replace(" . ", ".")),
        None => "write an expression over the arguments, `scope = user.tenant`, or leave `scope` out".to_owned(),
    };
    mistakes.about(literal, format!("this scope is the same for every caller, so it separates nobody\nhelp: {help}"));
}

/// The names an expression may refer to, and what in it cannot work.
#[derive(Default)]
struct Found {
    names: BTreeSet<Ident>,
    refused: Vec<(proc_macro2::Span, &'static str)>,
}

impl Found {
    /// Everything in a macro call that could be a name, `{captured}` ones included; `b` in `a.b` cannot.
    fn visit_tokens(&mut self, tokens: TokenStream) {
        let mut dots = 0;
        for token in tokens {
            let after_one_dot = dots == 1;
            dots = match &token {
                TokenTree::Punct(dot) if dot.as_char() == '.' => dots + 1,
                _ => 0,
            };
            match token {
                TokenTree::Ident(name) if !after_one_dot => {
                    self.names.insert(name);
                }
                TokenTree::Group(group) => self.visit_tokens(group.stream()),
                TokenTree::Literal(literal) => {
                    let span = literal.span();
                    for name in captured(&literal.to_string()) {
                        self.names.insert(Ident::new(&name, span));
                    }
                }
                TokenTree::Ident(_) | TokenTree::Punct(_) => {}
            }
        }
    }
}

/// The names in `"{tenant}/{user:?}"`.
fn captured(literal: &str) -> Vec<String> {
    literal
        .split('{')
        .skip(1)
        .filter_map(|piece| piece.split(['}', ':']).next())
        .filter(|name| syn::parse_str::<Ident>(name).is_ok())
        .map(str::to_owned)
        .collect()
}

impl<'ast> Visit<'ast> for Found {
    fn visit_expr_path(&mut self, path: &'ast ExprPath) {
        if let Some(name) = path.path.get_ident() {
            self.names.insert(name.clone());
        }
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.visit_tokens(call.tokens.clone());
    }

    fn visit_expr_await(&mut self, waiting: &'ast ExprAwait) {
        self.refused.push((
            waiting.await_token.span,
            "a scope is only computed, it waits for nothing; do the waiting in an extractor",
        ));
        syn::visit::visit_expr_await(self, waiting);
    }

    fn visit_expr_try(&mut self, attempt: &'ast ExprTry) {
        self.refused.push((attempt.question_token.spans[0], "a scope cannot fail; refuse the request in an extractor"));
        syn::visit::visit_expr_try(self, attempt);
    }

    fn visit_expr_return(&mut self, leave: &'ast ExprReturn) {
        self.refused.push((
            leave.return_token.span,
            "a scope cannot return from the handler; refuse the request in an extractor",
        ));
        syn::visit::visit_expr_return(self, leave);
    }

    // What these hold runs later or elsewhere, if at all.
    fn visit_expr_async(&mut self, _: &'ast syn::ExprAsync) {}

    fn visit_expr_closure(&mut self, closure: &'ast syn::ExprClosure) {
        let mut inside = Found::default();
        inside.visit_expr(&closure.body);
        self.names.append(&mut inside.names);
    }
}

//! The `scope` expression: which arguments it uses, and why it must not use some.

use std::collections::BTreeSet;

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::visit::Visit;
use syn::{Expr, ExprAsync, ExprAwait, ExprClosure, ExprPath, ExprReturn, ExprTry, Item, Lit, Macro};

use super::arguments::{Argument, Names, Reads};
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
    /// Everything in a macro call that could be a name, `{captured}` ones included; not `b` in `a.b`, `a::b` or `b = a`, and not `a` in
    /// `a::b`.
    fn visit_tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let is = |place: usize, mark: char| matches!(tokens.get(place), Some(TokenTree::Punct(found)) if found.as_char() == mark);
        let mut labels = BTreeSet::new();
        for (place, token) in tokens.iter().enumerate() {
            let behind = |mark| place >= 1 && is(place - 1, mark);
            match token {
                TokenTree::Ident(name) => {
                    let behind_one_dot = behind('.') && !(place >= 2 && is(place - 2, '.'));
                    let in_a_path = behind(':') && place >= 2 && is(place - 2, ':') || is(place + 1, ':');
                    let is_label = is(place + 1, '=') && !is(place + 2, '=') && !is(place + 2, '>');
                    if is_label {
                        labels.insert(name.to_string());
                    } else if !behind_one_dot && !in_a_path {
                        self.names.insert(name.clone());
                    }
                }
                TokenTree::Group(group) => self.visit_tokens(group.stream()),
                TokenTree::Literal(_) | TokenTree::Punct(_) => {}
            }
        }
        for token in &tokens {
            if let TokenTree::Literal(literal) = token {
                let names = captured(&literal.to_string()).into_iter().filter(|name| !labels.contains(name));
                self.names.extend(names.map(|name| Ident::new(&name, literal.span())));
            }
        }
    }
}

/// The names in `"{tenant}/{user:>width$}"`; none in `"{{tenant}}"`.
fn captured(literal: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = literal;
    while let Some((_, behind)) = rest.split_once('{') {
        if let Some(behind) = behind.strip_prefix('{') {
            rest = behind;
            continue;
        }
        let Some((argument, behind)) = behind.split_once('}') else { break };
        rest = behind;
        let (name, how) = argument.split_once(':').unwrap_or((argument, ""));
        names.push(name.trim());
        // `width$`, `.precision$`: what stands in front of each `$`.
        let parts: Vec<&str> = how.split('$').collect();
        for part in &parts[..parts.len() - 1] {
            let is_of_a_name = |letter: char| letter.is_alphanumeric() || letter == '_';
            names.push(part.rsplit(|letter| !is_of_a_name(letter)).next().unwrap_or_default());
        }
    }
    names.into_iter().filter(|name| syn::parse_str::<Ident>(name).is_ok()).map(str::to_owned).collect()
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

    fn visit_expr_async(&mut self, later: &'ast ExprAsync) {
        self.refused
            .push((later.async_token.span, "a scope is only computed, it waits for nothing; write it without `async`"));
    }

    fn visit_expr_closure(&mut self, closure: &'ast ExprClosure) {
        // What it returns, it returns to the scope.
        let mut inside = Found::default();
        inside.visit_expr(&closure.body);
        let mut own = Names::default();
        closure.inputs.iter().for_each(|input| own.visit_pat(input));
        self.names.extend(inside.names.into_iter().filter(|name| !own.0.contains(name)));
    }

    // Items know none of the names around them.
    fn visit_item(&mut self, _: &'ast Item) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::quote;

    fn names(scope: TokenStream) -> Vec<String> {
        let mut found = Found::default();
        found.visit_expr(&syn::parse2(scope).expect("an expression"));
        found.names.iter().map(Ident::to_string).collect()
    }

    #[test]
    fn names_are_those_of_variables() {
        for (scope, expected) in [
            (quote!(user.tenant), vec!["user"]),
            (quote!(helpers::user(&agent.tenant)), vec!["agent"]),
            (quote!(Key { send: agent.tenant }), vec!["agent"]),
            (quote!(text.split(|send| send == other)), vec!["other", "text"]),
            (
                quote!({
                    fn inner(user: &User) -> Option<u8> {
                        user.id()?;
                        None
                    }
                    inner(agent)
                }),
                vec!["agent", "inner"],
            ),
        ] {
            assert_eq!(names(scope.clone()), expected, "{scope}");
        }
    }

    #[test]
    fn names_in_a_macro_call_are_those_of_variables() {
        for (scope, expected) in [
            (quote!(format!("{tenant}/{user:?}")), vec!["tenant", "user"]),
            (quote!(format!("{tenant:>width$.precision$}/{0:1$}", user)), vec!["precision", "tenant", "user", "width"]),
            (quote!(format!("{{send}}{}", user.tenant)), vec!["user"]),
            (quote!(format!("{send}", send = user.tenant)), vec!["user"]),
            (quote!(format!("{}", Key { send: &user.tenant }.send)), vec!["Key", "user"]),
            (quote!(format!("{}{:?}", helpers::user(agent), a..=b)), vec!["a", "agent", "b"]),
            (quote!(matches!(user.kind, Kind::Admin) && a == b), vec!["a", "b", "user"]),
            (quote!(matches!(a, _ if user == b)), vec!["_", "a", "b", "if", "user"]),
        ] {
            assert_eq!(names(scope.clone()), expected, "{scope}");
        }
    }

    #[test]
    fn a_scope_only_computes() {
        let refused = |scope: TokenStream| {
            let mut found = Found::default();
            found.visit_expr(&syn::parse2(scope).expect("an expression"));
            found.refused.len()
        };
        assert_eq!(refused(quote!(user.load().await)), 1);
        assert_eq!(refused(quote!(user.id()?)), 1);
        assert_eq!(
            refused(quote!({
                return;
            })),
            1
        );
        assert_eq!(refused(quote!(async { user.id() })), 1);
        assert_eq!(refused(quote!(user.id().and_then(|id| Some(id?)))), 0);
        assert_eq!(
            refused(quote!({
                fn inner() -> Option<u8> {
                    None?;
                    None
                }
                inner()
            })),
            0
        );
    }
}

//! The options of an annotation as they were written: which, where, and with what value.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Expr, Ident, LitStr, Path, Token, Type};

use super::Mistakes;

/// A value together with the keyword it was written under, so that a conflict can be told at the keyword.
#[derive(Debug, Clone)]
pub struct Given<T> {
    /// `method` in `method = "message/send"`.
    pub keyword: Ident,
    /// What stands behind the `=`.
    pub value: T,
}

/// Every option that was given and could be read; nothing is checked beyond its own shape.
///
/// ```
/// use idempotent_build::syntax::Options;
///
/// let (options, mistakes) = Options::parse(quote::quote!(methud = "message/send", scope = user.tenant));
/// assert!(options.method.is_none());
/// assert!(options.scope.is_some());
/// assert!(mistakes.iter().any(|mistake| mistake.to_string().contains("did you mean `method`?")));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// `method = "message/send"`
    pub method: Option<Given<LitStr>>,
    /// `scope = user.tenant`
    pub scope: Option<Given<Expr>>,
    /// `key = "/order/id"`
    pub key: Option<Given<LitStr>>,
    /// `extension = "https://example.com/billing/v1"`
    pub extension: Option<Given<LitStr>>,
    /// `on_takeover = "refuse"`
    pub on_takeover: Option<Given<LitStr>>,
    /// `state = App`
    pub state: Option<Given<Type>>,
    /// `crate = my_agent::idempotent`
    pub krate: Option<Given<Path>>,
    /// Keywords that were there with a value that could not be read: present, so not missing.
    pub(super) unreadable: Vec<Ident>,
}

/// One row of the grammar.
struct Rule {
    name: &'static str,
    example: &'static str,
    read: fn(&mut Options, Ident, ParseStream<'_>) -> syn::Result<()>,
}

/// The grammar. The order is the one in which the options are told to a user.
const RULES: [Rule; 7] = [
    Rule {
        name: "method",
        example: r#"method = "message/send""#,
        read: |options, keyword, input| set(&mut options.method, keyword, string(input)?),
    },
    Rule {
        name: "scope",
        example: "scope = user.tenant",
        read: |options, keyword, input| set(&mut options.scope, keyword, input.parse()?),
    },
    Rule {
        name: "key",
        example: r#"key = "/order/id""#,
        read: |options, keyword, input| set(&mut options.key, keyword, string(input)?),
    },
    Rule {
        name: "extension",
        example: r#"extension = "https://example.com/billing/v1""#,
        read: |options, keyword, input| set(&mut options.extension, keyword, string(input)?),
    },
    Rule {
        name: "on_takeover",
        example: r#"on_takeover = "refuse""#,
        read: |options, keyword, input| set(&mut options.on_takeover, keyword, string(input)?),
    },
    Rule {
        name: "state",
        example: "state = App",
        read: |options, keyword, input| set(&mut options.state, keyword, unquoted(input, state)?),
    },
    Rule {
        name: "crate",
        example: "crate = my_agent::idempotent",
        read: |options, keyword, input| {
            let path = unquoted(input, Path::parse_mod_style)?;
            set(&mut options.krate, keyword, path)
        },
    },
];

fn set<T>(slot: &mut Option<Given<T>>, keyword: Ident, value: T) -> syn::Result<()> {
    if slot.is_some() {
        return Err(syn::Error::new(keyword.span(), format!("`{}` is given twice; keep one", keyword.unraw())));
    }
    *slot = Some(Given { keyword, value });
    Ok(())
}

/// A string literal: the build script that writes the AgentCard reads it too, and evaluates nothing.
fn string(input: ParseStream<'_>) -> syn::Result<LitStr> {
    let ahead = input.fork();
    if ahead.parse::<LitStr>().is_ok() && at_end_of_option(&ahead) {
        return input.parse();
    }
    Err(syn::Error::new_spanned(
        rest_of_option(input),
        "expected a string literal: the AgentCard is made at build time, when nothing can be evaluated",
    ))
}

/// A path or a type; serde's users are used to quotes, so tell them what to write instead.
fn unquoted<T>(input: ParseStream<'_>, parse: fn(ParseStream<'_>) -> syn::Result<T>) -> syn::Result<T> {
    if let Ok(literal) = input.fork().parse::<LitStr>() {
        return Err(syn::Error::new(literal.span(), format!("write `{}` without quotes", literal.value())));
    }
    parse(input)
}

/// A type with a name.
fn state(input: ParseStream<'_>) -> syn::Result<Type> {
    let ty: Type = input.parse()?;
    match ty {
        Type::Infer(_) | Type::ImplTrait(_) => Err(syn::Error::new_spanned(
            ty,
            "name the type of the router's state, or leave `state` out for any that fits",
        )),
        named => Ok(named),
    }
}

fn at_end_of_option(input: ParseStream<'_>) -> bool {
    input.is_empty() || input.peek(Token![,]) || next_option_begins(input)
}

/// Whether an option follows although no comma does.
fn next_option_begins(input: ParseStream<'_>) -> bool {
    let ahead = input.fork();
    ahead.call(Ident::parse_any).is_ok() && is_assignment(&ahead)
}

/// A `=` that is not the beginning of another operator.
fn is_assignment(input: ParseStream<'_>) -> bool {
    input.peek(Token![=]) && !input.peek(Token![==]) && !input.peek(Token![=>])
}

/// Takes everything up to the next comma.
fn rest_of_option(input: ParseStream<'_>) -> TokenStream {
    let mut rest = TokenStream::new();
    while !at_end_of_option(input) {
        match input.parse::<TokenTree>() {
            Ok(token) => rest.extend([token]),
            Err(_) => break,
        }
    }
    rest
}

impl Options {
    /// Reads the tokens between the parentheses of `#[idempotent(…)]`.
    ///
    /// An option that cannot be read is left out, told, and does not keep the others from being read.
    pub fn parse(arguments: TokenStream) -> (Options, Mistakes) {
        let mut options = Options::default();
        let mut mistakes = Mistakes::default();
        let parsed = Parser::parse2(
            |input: ParseStream<'_>| {
                while !input.is_empty() {
                    options.parse_one(input, &mut mistakes);
                }
                Ok(())
            },
            arguments,
        );
        if let Err(error) = parsed {
            mistakes.push(error);
        }
        (options, mistakes)
    }

    /// Reads one option and the comma behind it; always takes at least one token.
    fn parse_one(&mut self, input: ParseStream<'_>, mistakes: &mut Mistakes) {
        if input.peek(Token![,]) {
            let comma = input.parse::<Token![,]>();
            if let Ok(comma) = comma {
                mistakes.about(comma, "an option is missing before this comma");
            }
            return;
        }
        if !input.peek(Ident::peek_any) {
            mistakes.push(self.not_an_option(&rest_of_option(input)));
            skip_comma(input);
            return;
        }
        let Ok(keyword) = input.call(Ident::parse_any) else {
            rest_of_option(input);
            return;
        };
        let name = keyword.unraw().to_string();
        match RULES.iter().find(|rule| name == rule.name) {
            Some(rule) => {
                let written = input.fork();
                if let Err(error) = self.parse_value(rule, keyword.clone(), input) {
                    mistakes.push(placed(error, &rest_of_option(&written)));
                    self.unreadable.push(keyword);
                    rest_of_option(input);
                }
            }
            None => {
                rest_of_option(input);
                let similar = similar(&name);
                mistakes.at(keyword.span(), unknown(&name, similar));
                // What was meant was not left out.
                self.unreadable.extend(similar.map(|known| Ident::new(known, keyword.span())));
            }
        }
        if !input.is_empty() && !input.peek(Token![,]) {
            if next_option_begins(input) {
                mistakes.at(input.span(), "a `,` is missing before this option");
                return;
            }
            mistakes.about(rest_of_option(input), format!("unexpected tokens after the value of `{name}`"));
        }
        skip_comma(input);
    }

    fn parse_value(&mut self, rule: &Rule, keyword: Ident, input: ParseStream<'_>) -> syn::Result<()> {
        if is_assignment(input) {
            let equals: Token![=] = input.parse()?;
            if at_end_of_option(input) {
                return Err(syn::Error::new(equals.span, needs_a_value(rule)));
            }
            return (rule.read)(self, keyword, input);
        }
        if at_end_of_option(input) {
            return Err(syn::Error::new(keyword.span(), needs_a_value(rule)));
        }
        Err(syn::Error::new(input.span(), format!("options are written with `=`: `{}`", rule.example)))
    }

    fn not_an_option(&mut self, tokens: &TokenStream) -> syn::Error {
        let message = match syn::parse2::<LitStr>(tokens.clone()) {
            Ok(literal) => {
                self.unreadable.push(Ident::new("method", literal.span()));
                format!("write `method = {}`", literal.to_token_stream())
            }
            Err(_) => format!("expected an option such as `{}`", RULES[0].example),
        };
        syn::Error::new_spanned(tokens, message)
    }

    /// Whether the option was written, readable or not.
    pub(super) fn mentions(&self, name: &str) -> bool {
        let given = match name {
            "method" => self.method.is_some(),
            "key" => self.key.is_some(),
            "extension" => self.extension.is_some(),
            _ => false,
        };
        given || self.unreadable.iter().any(|keyword| keyword.unraw() == name)
    }

    /// The place of the method's name, for whatever is wrong with the method.
    pub fn method_span(&self) -> Span {
        self.method.as_ref().map_or_else(Span::call_site, |method| method.value.span())
    }
}

/// syn tells what breaks off at the end of all input; what breaks off is told where it does.
fn placed(error: syn::Error, written: &TokenStream) -> syn::Error {
    let message = error.to_string();
    match (message.strip_prefix("unexpected end of input, "), written.clone().into_iter().last()) {
        (Some(expected), Some(last)) => syn::Error::new(last.span(), format!("the value breaks off here: {expected}")),
        _ => error,
    }
}

fn skip_comma(input: ParseStream<'_>) {
    if input.peek(Token![,]) {
        let _ = input.parse::<Token![,]>();
    }
}

fn needs_a_value(rule: &Rule) -> String {
    format!("`{}` needs a value: `{}`", rule.name, rule.example)
}

/// The option that was probably meant.
fn similar(name: &str) -> Option<&'static str> {
    RULES
        .iter()
        .map(|rule| (strsim::damerau_levenshtein(name, rule.name), rule.name))
        .filter(|(distance, known)| *distance <= known.len() / 3 + 1)
        .min()
        .map(|(_, known)| known)
}

fn unknown(name: &str, similar: Option<&str>) -> String {
    let meant = similar.map_or_else(String::new, |known| format!("; did you mean `{known}`?"));
    let known: Vec<_> = RULES.iter().map(|rule| format!("`{}`", rule.name)).collect();
    format!("unknown option `{name}`{meant}\nexpected one of {}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::*;

    fn told(arguments: TokenStream) -> Vec<String> {
        Options::parse(arguments).1.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_option_is_read() {
        let (options, mistakes) = Options::parse(quote! {
            method = "billing/charge",
            scope = tenants::<A, B>(&user, 1),
            key = "/order/id",
            extension = "https://example.com/billing/v1",
            on_takeover = "refuse",
            state = App<Pg>,
            crate = crate::retry::idempotent,
        });
        assert!(mistakes.is_empty(), "{mistakes:?}");
        assert!(options.method.is_some() && options.scope.is_some() && options.key.is_some());
        assert!(options.extension.is_some() && options.on_takeover.is_some());
        assert!(options.state.is_some() && options.krate.is_some());
    }

    #[test]
    fn all_mistakes_are_told_at_once() {
        let told = told(quote! {
            "message/send", scop = user, method("message/send"), key = KEY, key = "/a", key = "/b", , state = "App", method,
        });
        assert_eq!(told.len(), 8, "{told:#?}");
    }

    #[test]
    fn a_mistake_does_not_hide_the_options_behind_it() {
        let (options, _) = Options::parse(quote!(scope = user., method = "message/send" key = "/a"));
        assert!(options.method.is_some());
        assert!(options.key.is_some());
    }

    #[test]
    fn a_far_word_gets_the_list_without_a_guess() {
        let told = told(quote!(retries = 3));
        assert_eq!(
            told,
            [
                "unknown option `retries`\nexpected one of `method`, `scope`, `key`, `extension`, `on_takeover`, `state`, `crate`"
            ]
        );
    }
}

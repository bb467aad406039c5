//! What an annotation means for the engine and for the AgentCard.

use proc_macro2::{Span, TokenStream};

use super::method::{canonical_method, is_core_method, left_out, similar};
use super::pointer::{pointer_fault, uri_fault};
use super::{Given, Mistakes, Options};

/// The idempotency extension's own URI (spec: Identity).
pub const EXTENSION_URI: &str = "https://agentic-sandbox.aiwg.io/extensions/idempotency/v1";

/// Where the key of a core method lies in its `params` (spec 4.3).
pub const DEFAULT_KEY: &str = "/message/messageId";

/// What happens to a request whose first execution lost its owner before it was finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnTakeover {
    /// A retry executes it again.
    #[default]
    Run,
    /// A retry is refused: nobody knows what the first execution did.
    Refuse,
}

/// What an annotation declares, owned and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declaration {
    /// The method under its canonical name: `message/send` for `SendMessage` too.
    pub method: String,
    /// JSON pointer from `params` to the idempotency key.
    pub key: String,
    /// URI of the extension that put this method in scope; `None` for the core methods.
    pub extension: Option<String>,
    /// What a retry does after its owner died.
    pub on_takeover: OnTakeover,
}

/// One `#[idempotent(…)]`: its options, what they declare, and what is wrong with them.
#[derive(Debug, Clone)]
pub struct Annotation {
    /// The options as written.
    pub options: Options,
    /// What they declare; defaults stand in for what is wrong, and the method is empty if there is none.
    pub declaration: Declaration,
    /// What is wrong.
    pub mistakes: Mistakes,
}

impl Annotation {
    /// Reads the tokens between the parentheses.
    pub fn parse(arguments: TokenStream) -> Annotation {
        let (options, mut mistakes) = Options::parse(arguments);
        let declaration = declare(&options, &mut mistakes);
        Annotation { options, declaration, mistakes }
    }

    /// Reads a whole attribute, as found in a parsed file. The attribute's own name is not looked at.
    pub fn from_attribute(attribute: &syn::Attribute) -> Annotation {
        match &attribute.meta {
            syn::Meta::List(list) => Annotation::parse(list.tokens.clone()),
            syn::Meta::Path(_) => Annotation::parse(TokenStream::new()),
            syn::Meta::NameValue(pair) => {
                let mut annotation = Annotation::parse(TokenStream::new());
                annotation.mistakes.about(&pair.value, "options stand in parentheses");
                annotation
            }
        }
    }

    /// The declaration, if nothing is wrong.
    ///
    /// # Errors
    ///
    /// All mistakes of the annotation, in one error.
    pub fn into_result(self) -> syn::Result<Declaration> {
        self.mistakes.into_result().map(|()| self.declaration)
    }
}

fn declare(options: &Options, mistakes: &mut Mistakes) -> Declaration {
    Declaration {
        method: declare_method(options, mistakes),
        key: declare_key(options, mistakes),
        extension: declare_extension(options, mistakes),
        on_takeover: declare_takeover(options, mistakes),
    }
}

fn declare_method(options: &Options, mistakes: &mut Mistakes) -> String {
    let Some(method) = &options.method else {
        if !options.mentions("method") {
            mistakes.at(
                Span::call_site(),
                "`method` is missing: which JSON-RPC method does this handler answer?\n\
                 help: `#[idempotent(method = \"message/send\", scope = user.tenant)]`",
            );
        }
        return String::new();
    };
    let name = method.value.value();
    let span = method.value.span();
    if name.is_empty() {
        mistakes.at(span, "the method has no name: `method = \"message/send\"`");
    } else if let Some(why) = left_out(&name) {
        mistakes.at(
            span,
            format!(
                "`{name}` is outside the extension's scope: it {why} (spec 4.1)\n\
                 help: leave the annotation out and mount the handler with `.method(\"{name}\", …)`"
            ),
        );
    } else if is_core_method(&name) {
        refuse_for_core(options, &name, mistakes);
    } else if !options.mentions("extension") {
        let help = match similar(&name) {
            Some(known) => format!("did you mean `{known}`?"),
            None => {
                "name the extension that puts it in scope: `extension = \"https://example.com/billing/v1\"`".to_owned()
            }
        };
        mistakes.at(span, format!("`{name}` is not a method that the extension covers (spec 4.1)\nhelp: {help}"));
    } else if !well_formed(&name) {
        mistakes.at(span, "a method's name is letters, digits, `_`, `-` and `.`, in parts separated by `/`");
    }
    canonical_method(&name).to_owned()
}

fn well_formed(name: &str) -> bool {
    name.split('/').all(|part| {
        !part.is_empty() && part.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-.".contains(letter))
    })
}

/// Options that only make sense for other extensions' methods.
fn refuse_for_core(options: &Options, name: &str, mistakes: &mut Mistakes) {
    if let Some(extension) = &options.extension {
        mistakes.at(extension.keyword.span(), format!("`{name}` is in scope by itself (spec 4.1); remove `extension`"));
    }
    if let Some(key) = &options.key {
        let pointer = key.value.value();
        if pointer != DEFAULT_KEY && pointer_fault(&pointer).is_none() {
            mistakes.at(
                key.keyword.span(),
                format!("the key of `{name}` is always `{DEFAULT_KEY}` (spec 4.3); remove `key`"),
            );
        }
    }
}

/// The value, if it is sound; a core method has told its own conflicts already.
fn declare_key(options: &Options, mistakes: &mut Mistakes) -> String {
    let checked = checked(&options.key, mistakes, |pointer| {
        pointer_fault(pointer).map(|fault| format!("not a JSON pointer into `params` (RFC 6901): {fault}"))
    });
    checked.unwrap_or_else(|| DEFAULT_KEY.to_owned())
}

fn declare_extension(options: &Options, mistakes: &mut Mistakes) -> Option<String> {
    checked(&options.extension, mistakes, |uri| {
        if uri == EXTENSION_URI {
            return Some(
                "this is the idempotency extension itself; name the extension that defines the method".to_owned(),
            );
        }
        uri_fault(uri).map(|fault| {
            format!("not the URI of an extension: {fault}\nhelp: `extension = \"https://example.com/billing/v1\"`")
        })
    })
}

fn declare_takeover(options: &Options, mistakes: &mut Mistakes) -> OnTakeover {
    let checked = checked(&options.on_takeover, mistakes, |choice| match choice {
        "run" | "refuse" => None,
        other => {
            let meant = ["run", "refuse"]
                .into_iter()
                .find(|known| strsim::damerau_levenshtein(&other.to_lowercase(), known) <= 2)
                .map_or_else(String::new, |known| format!("; did you mean `\"{known}\"`?"));
            Some(format!(
                "unknown choice `{other}`{meant}\n\
                 expected `\"run\"` (a retry executes again after its owner died) or `\"refuse\"` (it is answered 409)"
            ))
        }
    });
    match checked.as_deref() {
        Some("refuse") => OnTakeover::Refuse,
        _ => OnTakeover::Run,
    }
}

fn checked(
    option: &Option<Given<syn::LitStr>>,
    mistakes: &mut Mistakes,
    fault: impl FnOnce(&str) -> Option<String>,
) -> Option<String> {
    let given = option.as_ref()?;
    let text = given.value.value();
    match fault(&text) {
        None => Some(text),
        Some(fault) => {
            mistakes.at(given.value.span(), fault);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::*;

    fn told(arguments: TokenStream) -> Vec<String> {
        let annotation = Annotation::parse(arguments);
        annotation.mistakes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_core_method_is_declared_under_its_first_name() {
        let declaration = Annotation::parse(quote!(method = "SendStreamingMessage", on_takeover = "refuse"))
            .into_result()
            .expect("nothing is wrong");
        assert_eq!(
            declaration,
            Declaration {
                method: "message/stream".into(),
                key: DEFAULT_KEY.into(),
                extension: None,
                on_takeover: OnTakeover::Refuse,
            }
        );
    }

    #[test]
    fn another_extensions_method_brings_its_uri_and_key() {
        let declaration = Annotation::parse(quote! {
            method = "billing/charge", extension = "https://example.com/billing/v1", key = "/order/id"
        })
        .into_result()
        .expect("nothing is wrong");
        assert_eq!(declaration.method, "billing/charge");
        assert_eq!(declaration.key, "/order/id");
        assert_eq!(declaration.extension.as_deref(), Some("https://example.com/billing/v1"));
    }

    #[test]
    fn one_mistake_is_told_once() {
        for one in [
            quote!(),
            quote!(method = ""),
            quote!(method = METHOD),
            quote!(method = "tasks/get"),
            quote!(method = "tasks/cancel", extension = "https://example.com/v1"),
            quote!(method = "mesage/send"),
            quote!(method = "billing/charge"),
            quote!(method = "billing charge", extension = "https://example.com/v1"),
            quote!(method = "billing/charge", extension = BILLING),
            quote!(method = "billing/charge", extension = "billing"),
            quote!(method = "message/send", extension = "https://example.com/v1"),
            quote!(method = "message/send", key = "/order/id"),
            quote!(method = "message/send", key = "order"),
            quote!(method = "message/send", on_takeover = "rum"),
        ] {
            let told = told(one.clone());
            assert_eq!(told.len(), 1, "{one}: {told:#?}");
        }
    }

    #[test]
    fn several_mistakes_are_all_told() {
        let told = told(quote!(method = "billing/charge", extension = "x", key = "y", on_takeover = "z", ttl = 3));
        assert_eq!(told.len(), 4, "{told:#?}");
    }
}

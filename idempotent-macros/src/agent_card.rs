//! From the build script's listing to a constant, and to proofs that each of its entries has a handler.

use idempotent_build::card::{Compiling, ListedMethod, Listing, Places, WrittenCard};
use idempotent_build::syntax::method_hash;
use proc_macro2::{Literal, TokenStream};
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::{Path, Token};

const NO_BUILD_SCRIPT: &str = "this package makes no AgentCard: give it a build.rs\n\
    \n    fn main() {\n        idempotent_build::agent_card(\"agent-card.base.json\").emit();\n    }\n\n\
    and `idempotent-build` under [build-dependencies]";

const FRAGMENT_ONLY: &str = "this package's build.rs emits a fragment, which is a part of a card: \
    call agent_card!() in the agent's package, whose build.rs calls `idempotent_build::agent_card(…)`";

/// The path of the facade, as its `agent_card!` passes it, and nothing else.
struct Call {
    facade: Path,
}

impl Parse for Call {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let facade = input.call(Path::parse_mod_style)?;
        input.parse::<Token![;]>()?;
        if input.is_empty() { Ok(Self { facade }) } else { Err(input.error("agent_card!() takes no arguments")) }
    }
}

/// The macro: a `Card`, or one error that says what to do.
pub(crate) fn agent_card(input: TokenStream) -> TokenStream {
    let card = syn::parse2::<Call>(input).and_then(|call| {
        let refuse = |words: &str| syn::Error::new(proc_macro2::Span::call_site(), words);
        let listing = match Listing::of_this_package() {
            Some(listing) => listing.map_err(|words| refuse(&words))?,
            None => return Err(refuse(NO_BUILD_SCRIPT)),
        };
        expand(&call.facade, &listing, &listing.compiling()).map_err(|words| refuse(&words))
    });
    card.unwrap_or_else(|error| error.to_compile_error())
}

// Input
//     agent_card!()
//
// Output
//     {
//         const _: () = { /* for each method: a trait with its own words, which its key must implement */ };
//         const CARD: Card = Card::from_build(include_str!(".../agent-card.json"), CardPlaces { … }, &[CardMethod { … }]);
//         CARD
//     }
fn expand(facade: &Path, listing: &Listing, compiling: &Compiling) -> Result<TokenStream, String> {
    let Some(card) = &listing.card else {
        return Err(FRAGMENT_ONLY.to_owned());
    };
    let unread = match compiling {
        Compiling::UnreadBinary(name) => Some((format!("of `{name}`"), format!(".bin(\"{name}\", \"path/main.rs\")"))),
        Compiling::UnreadLib => Some(("of this library".to_owned(), ".lib(\"path/lib.rs\")".to_owned())),
        Compiling::Lib | Compiling::Binary(_) | Compiling::Test => None,
    };
    if let Some((what, call)) = unread {
        return Err(format!(
            "build.rs has not read the sources {what}: name it there, `agent_card(…){call}`; if it is new, touch build.rs"
        ));
    }
    let WrittenCard { path, places } = card;
    let path = path.to_str().ok_or("the path of OUT_DIR is not UTF-8")?;
    let places = self::places(facade, places);
    let methods = listing.of_card(compiling).into_iter().map(|one| {
        let ListedMethod { method, extension, .. } = one;
        let extension = match extension {
            Some(uri) => quote!(::core::option::Option::Some(#uri)),
            None => quote!(::core::option::Option::None),
        };
        quote!(#facade::__private::CardMethod { method: #method, extension: #extension })
    });
    let proofs = proofs(facade, listing, compiling);
    Ok(quote! {{
        #proofs
        const CARD: #facade::__private::Card = #facade::__private::Card::from_build(
            ::core::include_str!(#path),
            #places,
            &[#(#methods),*],
        );
        CARD
    }})
}

fn places(facade: &Path, places: &Places) -> TokenStream {
    let [required, ttl_seconds, max_cache_entries] = [&places.required, &places.ttl_seconds, &places.max_cache_entries]
        .map(|place| {
            let (start, end) = (place.start, place.end);
            quote!((#start, #end))
        });
    quote! {
        #facade::__private::CardPlaces {
            required: #required,
            ttl_seconds: #ttl_seconds,
            max_cache_entries: #max_cache_entries,
        }
    }
}

/// Demands that each method's key is implemented by a handler, in words of its own where it is not.
///
/// Tests are left alone: they see handlers of their own beside, or instead of, the agent's.
fn proofs(facade: &Path, listing: &Listing, compiling: &Compiling) -> TokenStream {
    if *compiling == Compiling::Test {
        return TokenStream::new();
    }
    let annotated = quote!(#facade::__private::AnnotatedBy);
    let proofs = listing.provable(compiling).into_iter().map(|one| {
        let hash = Literal::u64_suffixed(method_hash(&one.method));
        let (bound, with_words) = if listing.no_prelude {
            // A `diagnostic::` attribute would not compile there: the words of the bound itself have to do.
            (annotated.clone(), TokenStream::new())
        } else {
            (quote!(Answered), answered(one, &annotated))
        };
        quote! {
            const _: () = {
                #with_words
                const fn by_exactly_one_handler<Method: #bound<TheOneHandler>, TheOneHandler>() {}
                by_exactly_one_handler::<#facade::__private::MethodKey<#hash>, _>()
            };
        }
    });
    quote! {
        #[cfg(not(test))]
        const _: () = { #(#proofs)* };
    }
}

/// A trait that says what is missing when the method has no handler.
fn answered(listed: &ListedMethod, annotated: &TokenStream) -> TokenStream {
    let method = braces_doubled(&listed.method);
    let message = format!("the AgentCard lists `{method}`, but no handler of it is part of this program");
    let label = format!("`{method}` has no handler");
    let note = format!("build.rs found: {}", braces_doubled(&listed.place));
    quote! {
        #[diagnostic::on_unimplemented(
            message = #message,
            label = #label,
            note = #note,
            note = "a handler in another crate must be used here, and a cfg that build.rs sets itself must be told there"
        )]
        trait Answered<Handler> {}
        #[diagnostic::do_not_recommend]
        impl<Method: #annotated<Handler>, Handler> Answered<Handler> for Method {}
    }
}

/// A brace in such a message would name a type parameter.
fn braces_doubled(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}

#[cfg(test)]
mod tests {
    use std::path::Path as File;

    use idempotent_build::card::Origin;

    use super::*;

    fn listing() -> Listing {
        let mut listing = Listing::new("travel", File::new("/travel"));
        listing.lib = true;
        listing.card = Some(WrittenCard {
            path: "/out/agent-card.json".into(),
            places: Places { required: 10..14, ttl_seconds: 20..25, max_cache_entries: 30..36 },
        });
        listing.methods.push(ListedMethod {
            method: "jobs/{start}".to_owned(),
            extension: Some("urn:jobs".to_owned()),
            origin: Origin::Lib,
            place: "fn start in src/jobs.rs".to_owned(),
        });
        listing
    }

    fn expansion(listing: &Listing, compiling: &Compiling) -> String {
        let tokens = expand(&syn::parse_quote!(::idempotent), listing, compiling).expect("a card");
        let file: syn::File = syn::parse_quote!(const CARD: Card = #tokens;);
        prettyplease::unparse(&file)
    }

    #[test]
    fn each_method_has_a_proof_with_its_own_words() {
        assert_eq!(
            expansion(&listing(), &Compiling::Lib),
            r#"const CARD: Card = {
    #[cfg(not(test))]
    const _: () = {
        const _: () = {
            #[diagnostic::on_unimplemented(
                message = "the AgentCard lists `jobs/{{start}}`, but no handler of it is part of this program",
                label = "`jobs/{{start}}` has no handler",
                note = "build.rs found: fn start in src/jobs.rs",
                note = "a handler in another crate must be used here, and a cfg that build.rs sets itself must be told there"
            )]
            trait Answered<Handler> {}
            #[diagnostic::do_not_recommend]
            impl<
                Method: ::idempotent::__private::AnnotatedBy<Handler>,
                Handler,
            > Answered<Handler> for Method {}
            const fn by_exactly_one_handler<
                Method: Answered<TheOneHandler>,
                TheOneHandler,
            >() {}
            by_exactly_one_handler::<
                ::idempotent::__private::MethodKey<HASH>,
                _,
            >()
        };
    };
    const CARD: ::idempotent::__private::Card = ::idempotent::__private::Card::from_build(
        ::core::include_str!("/out/agent-card.json"),
        ::idempotent::__private::CardPlaces {
            required: (10usize, 14usize),
            ttl_seconds: (20usize, 25usize),
            max_cache_entries: (30usize, 36usize),
        },
        &[
            ::idempotent::__private::CardMethod {
                method: "jobs/{start}",
                extension: ::core::option::Option::Some("urn:jobs"),
            },
        ],
    );
    CARD
};
"#
            .replace("HASH", &format!("{}u64", method_hash("jobs/{start}")))
        );
    }

    #[test]
    fn without_a_prelude_the_proof_has_no_words() {
        let mut listing = listing();
        listing.no_prelude = true;
        let expansion = expansion(&listing, &Compiling::Lib);
        assert!(!expansion.contains("diagnostic"), "{expansion}");
        assert!(expansion.contains("by_exactly_one_handler::<"), "{expansion}");
    }

    #[test]
    fn tests_are_left_alone() {
        let expansion = expansion(&listing(), &Compiling::Test);
        assert!(!expansion.contains("by_exactly_one_handler") && expansion.contains("jobs/{start}"), "{expansion}");
    }

    #[test]
    fn what_was_not_read_is_told_with_the_call_that_reads_it() {
        let facade = syn::parse_quote!(::idempotent);
        let told = |compiling| expand(&facade, &listing(), &compiling).expect_err("not read");
        assert!(told(Compiling::UnreadBinary("serve".to_owned())).contains(r#".bin("serve", "path/main.rs")"#));
        assert!(told(Compiling::UnreadLib).contains(r#".lib("path/lib.rs")"#));
        let mut fragment = listing();
        fragment.card = None;
        let told = expand(&facade, &fragment, &Compiling::Lib).expect_err("a fragment");
        assert!(told.contains("emits a fragment"), "{told}");
    }

    #[test]
    fn arguments_are_refused() {
        let told = agent_card(quote!(::idempotent; "agent-card.json")).to_string();
        assert!(told.contains("agent_card!() takes no arguments"), "{told}");
    }
}

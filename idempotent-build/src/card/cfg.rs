//! Decides whether a `#[cfg(…)]` holds, from what Cargo tells a build script.
//!
//! Cargo gives a build script the target's configuration (`CARGO_CFG_*`) and the package's features (`CARGO_FEATURE_*`). It
//! does not tell `debug_assertions` (taken from the profile here), nor what `--test`, rustdoc or clippy add: `test`, `doc` and
//! the like are false, and names that the build script itself sets come in with [`CfgSet::insert`].

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::TokenStream;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Attribute, Ident, LitBool, LitStr, Meta, Token, parenthesized};

/// The configuration that a crate is compiled with: names, and values of names.
#[derive(Debug, Clone, Default)]
pub(super) struct CfgSet {
    values: BTreeMap<String, BTreeSet<String>>,
    names: BTreeSet<String>,
    features: BTreeSet<String>,
}

impl CfgSet {
    /// Reads the variables that Cargo sets for a build script.
    pub(super) fn from_vars(vars: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut set = Self::default();
        for (name, value) in vars {
            if let Some(feature) = name.strip_prefix("CARGO_FEATURE_") {
                set.features.insert(feature.to_owned());
            } else if let Some(cfg) = name.strip_prefix("CARGO_CFG_") {
                let cfg = cfg.to_ascii_lowercase();
                if value.is_empty() {
                    set.names.insert(cfg.clone());
                }
                let values = value.split(',').map(str::to_owned);
                set.values.entry(cfg).or_default().extend(values);
            } else if name == "PROFILE" && value == "debug" {
                set.names.insert("debug_assertions".to_owned());
            }
        }
        set
    }

    /// Adds a name, or a name with a value, as `rustc --cfg` writes it: `nightly` or `backend="sqlite"`.
    pub(super) fn insert(&mut self, cfg: &str) -> Result<(), String> {
        match syn::parse_str::<Predicate>(cfg) {
            Ok(Predicate::Name(name)) => {
                self.names.insert(name);
            }
            Ok(Predicate::Value(name, value)) => {
                self.values.entry(name).or_default().insert(value);
            }
            _ => {
                return Err(format!("`{cfg}` is not a cfg: write `name` or `name=\"value\"`"));
            }
        }
        Ok(())
    }

    fn holds(&self, predicate: &Predicate) -> bool {
        match predicate {
            Predicate::Literal(value) => *value,
            Predicate::Name(name) => self.names.contains(name),
            Predicate::Value(name, value) if name == "feature" => {
                let variable = value.to_ascii_uppercase().replace('-', "_");
                self.features.contains(&variable)
            }
            Predicate::Value(name, value) => self.values.get(name).is_some_and(|values| values.contains(value)),
            Predicate::Not(inner) => !self.holds(inner),
            Predicate::All(inner) => inner.iter().all(|one| self.holds(one)),
            Predicate::Any(inner) => inner.iter().any(|one| self.holds(one)),
        }
    }

    /// The attributes that are left once every `cfg` and `cfg_attr` is decided; `None` if the item is configured out.
    ///
    /// A predicate that does not parse is rustc's to report: it counts as false.
    pub(super) fn active(&self, attributes: &[Attribute]) -> Option<Vec<Meta>> {
        let mut left = Vec::new();
        for attribute in attributes {
            self.resolve(attribute.meta.clone(), &mut left)?;
        }
        Some(left)
    }

    fn resolve(&self, meta: Meta, left: &mut Vec<Meta>) -> Option<()> {
        let Meta::List(list) = &meta else {
            left.push(meta);
            return Some(());
        };
        if list.path.is_ident("cfg") {
            let holds = self.holds_tokens(list.tokens.clone());
            return holds.then_some(());
        }
        if list.path.is_ident("cfg_attr") {
            let (predicate, attributes) = cfg_attr.parse2(list.tokens.clone()).ok()?;
            if self.holds(&predicate) {
                for attribute in attributes {
                    self.resolve(attribute, left)?;
                }
            }
            return Some(());
        }
        left.push(meta);
        Some(())
    }

    fn holds_tokens(&self, tokens: TokenStream) -> bool {
        syn::parse2::<Predicate>(tokens).is_ok_and(|predicate| self.holds(&predicate))
    }
}

fn cfg_attr(input: ParseStream<'_>) -> syn::Result<(Predicate, Punctuated<Meta, Token![,]>)> {
    let predicate = input.parse()?;
    if input.is_empty() {
        return Ok((predicate, Punctuated::new()));
    }
    input.parse::<Token![,]>()?;
    Ok((predicate, Punctuated::parse_terminated(input)?))
}

/// What stands inside `cfg(…)`.
#[derive(Debug)]
enum Predicate {
    Literal(bool),
    Name(String),
    Value(String, String),
    Not(Box<Predicate>),
    All(Punctuated<Predicate, Token![,]>),
    Any(Punctuated<Predicate, Token![,]>),
}

impl Parse for Predicate {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        if input.peek(LitBool) {
            return Ok(Self::Literal(input.parse::<LitBool>()?.value));
        }
        let name = input.call(Ident::parse_any)?;
        if input.peek(Token![=]) {
            input.parse::<Token![=]>()?;
            return Ok(Self::Value(name.unraw().to_string(), input.parse::<LitStr>()?.value()));
        }
        if !input.peek(syn::token::Paren) {
            return Ok(Self::Name(name.unraw().to_string()));
        }
        let inner;
        parenthesized!(inner in input);
        let mut list = Punctuated::parse_terminated(&inner)?;
        match (name.to_string().as_str(), list.len()) {
            ("all", _) => Ok(Self::All(list)),
            ("any", _) => Ok(Self::Any(list)),
            ("not", 1) => match list.pop() {
                Some(one) => Ok(Self::Not(Box::new(one))),
                None => Err(inner.error("`not` takes one predicate")),
            },
            _ => Err(syn::Error::new(name.span(), "unknown predicate")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse::Parser;

    fn linux() -> CfgSet {
        let vars = [
            ("CARGO_CFG_UNIX", ""),
            ("CARGO_CFG_TARGET_OS", "linux"),
            ("CARGO_CFG_TARGET_FEATURE", "fxsr,sse,sse2"),
            ("CARGO_FEATURE_FAST_PATH", "1"),
            ("PROFILE", "debug"),
            ("HOME", "/root"),
        ];
        CfgSet::from_vars(vars.map(|(name, value)| (name.to_owned(), value.to_owned())))
    }

    fn holds(set: &CfgSet, predicate: &str) -> bool {
        set.holds_tokens(predicate.parse().expect("tokens"))
    }

    #[test]
    fn predicates_are_decided_as_rustc_does() {
        let set = linux();
        for yes in [
            "unix",
            "target_os = \"linux\"",
            "target_feature = \"sse2\"",
            "feature = \"fast-path\"",
            "debug_assertions",
            "not(windows)",
            "all()",
            "all(unix, not(test), any(windows, target_os = \"linux\"),)",
            "true",
        ] {
            assert!(holds(&set, yes), "{yes}");
        }
        for no in [
            "windows",
            "target_os = \"macos\"",
            "target_os",
            "feature = \"slow\"",
            "test",
            "doc",
            "any()",
            "not(unix)",
            "all(unix, windows)",
            "false",
            "version(\"1.80\")",
            "not(unix, windows)",
            "= nonsense",
        ] {
            assert!(!holds(&set, no), "{no}");
        }
    }

    #[test]
    fn names_of_the_build_script_itself_can_be_added() {
        let mut set = linux();
        set.insert("nightly").expect("a name");
        set.insert("backend=\"sqlite\"").expect("a value");
        assert!(holds(&set, "all(nightly, backend = \"sqlite\")"));
        assert!(set.insert("not(x)").is_err());
        assert!(set.insert("").is_err());
    }

    #[test]
    fn cfg_attr_gives_its_attributes_when_it_holds() {
        let set = linux();
        let attributes = Attribute::parse_outer
            .parse_str(
                "#[cfg_attr(unix, path = \"unix.rs\", cfg_attr(all(), inline))] #[cfg_attr(windows, path = \"w.rs\")] #[must_use]",
            )
            .expect("attributes");
        let left = set.active(&attributes).expect("not configured out");
        let names: Vec<_> = left.iter().map(|meta| meta.path().get_ident().expect("a name").to_string()).collect();
        assert_eq!(names, ["path", "inline", "must_use"]);

        let out = Attribute::parse_outer.parse_str("#[cfg_attr(unix, cfg(windows))]").expect("attributes");
        assert!(set.active(&out).is_none());
    }
}

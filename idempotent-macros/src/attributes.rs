//! Which of a handler's attributes belong to the function the router sees, and which to the one the user wrote.

use syn::{Attribute, Meta, Path, punctuated::Punctuated, token::Comma};

/// A handler's attributes, sorted.
#[derive(Default)]
pub(crate) struct Sorted<'a> {
    /// Documentation, lint levels, `cfg` and the like: they concern the item under its name.
    pub(crate) outer: Vec<&'a Attribute>,
    /// All others, first of all attribute macros such as `#[tracing::instrument]`: they must see the user's arguments.
    pub(crate) inner: Vec<&'a Attribute>,
    /// The `cfg`s among the outer ones: whatever else is generated comes and goes with the function.
    pub(crate) cfg: Vec<&'a Attribute>,
}

const OUTER: [&str; 11] =
    ["doc", "cfg", "allow", "warn", "deny", "forbid", "expect", "deprecated", "must_use", "diagnostic", "rustfmt"];

impl<'a> Sorted<'a> {
    /// Sorts; a second `#[idempotent]` has been refused and is dropped.
    pub(crate) fn new(attributes: &'a [Attribute]) -> Self {
        let mut sorted = Sorted::default();
        for attribute in attributes {
            let path = attribute.path();
            if path.segments.last().is_some_and(|last| last.ident == "idempotent") {
                continue;
            }
            let conditional = path.is_ident("cfg_attr");
            let concerns_item = match conditional {
                true => conditioned(attribute).iter().all(is_outer),
                false => is_outer(path),
            };
            if path.is_ident("cfg") || (conditional && conditioned(attribute).iter().any(|path| path.is_ident("cfg"))) {
                sorted.cfg.push(attribute);
            }
            match concerns_item {
                true => sorted.outer.push(attribute),
                false => sorted.inner.push(attribute),
            }
        }
        sorted
    }
}

fn is_outer(path: &Path) -> bool {
    path.segments.first().is_some_and(|first| OUTER.iter().any(|known| first.ident == known))
}

/// The attributes that a `cfg_attr` brings.
fn conditioned(attribute: &Attribute) -> Vec<Path> {
    attribute
        .parse_args_with(Punctuated::<Meta, Comma>::parse_terminated)
        .map(|metas| metas.iter().skip(1).map(|meta| meta.path().clone()).collect())
        .unwrap_or_default()
}

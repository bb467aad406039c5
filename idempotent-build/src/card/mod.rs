//! The AgentCard, made in a build script from a base card and the crate's annotations.
//!
//! The base card is an AgentCard (A2A 0.3, 1.0, or both in one) as its author writes it; the build adds the extension's
//! declaration (spec 3.1 and 3.3) under `capabilities.extensions`, lists the methods that other extensions put in scope under
//! theirs (spec 4.1), and writes the result into `OUT_DIR`, from where `agent_card!()` takes it:
//!
//! ```no_run
//! // build.rs
//! idempotent_build::agent_card("agent-card.base.json").emit();
//! ```
//!
//! # How it finds the handlers
//!
//! It reads the library and the binaries of the package along their `mod`s, as rustc does, and decides every `cfg` by what
//! Cargo tells a build script. It reads source text: what a macro makes is named with
//! [`declare`](AgentCard::declare). The compiler then proves the outcome, whatever the privacy of a module: an annotated handler that
//! the card lacks does not compile, nor does a card entry without a handler, nor a method with two.
//!
//! # Handlers in several packages
//!
//! A library whose handlers an agent mounts has a build script of its own, which emits a [`fragment`], and a `links` key, by which
//! Cargo hands it to the build scripts of the packages that depend on it directly:
//!
//! ```toml
//! [package]
//! name = "travel-skills"
//! links = "travel-skills"
//! ```
//!
//! The agent's [`agent_card`] takes up the fragments of its dependencies by itself; a fragment takes up those of its own.
//!
//! # What is deterministic
//!
//! The same sources and base card give the same bytes: the base card's members keep their order and each untouched value its
//! text, additions go to the end of their object, methods are sorted by name, the layout is two spaces per level. No feature of
//! serde_json that another crate of the build turns on changes that.

mod base;
mod cfg;
mod declaration;
mod emit;
mod json;
mod listing;
mod sources;
mod walk;

use std::path::{Path, PathBuf};

pub use listing::{Compiling, LISTING_VARIABLE, ListedMethod, Listing, Origin, Places, WrittenCard, unlisted};

use emit::CardPlan;
use sources::{Package, Sources};

/// Begins a card from the base card at `base`, a path relative to the package.
///
/// ```no_run
/// // build.rs
/// idempotent_build::agent_card("agent-card.base.json").emit();
/// ```
#[must_use = "nothing is written before `.emit()`"]
pub fn agent_card(base: impl AsRef<Path>) -> AgentCard {
    AgentCard(CardPlan {
        base: base.as_ref().to_owned(),
        sources: Sources::default(),
        required: None,
        also_write: Vec::new(),
    })
}

/// Begins a library's part of a card: the methods that its handlers answer.
///
/// The package needs a `links` key, since Cargo tells nothing to a dependent's build script without one.
///
/// ```no_run
/// // build.rs
/// idempotent_build::fragment().emit();
/// ```
#[must_use = "nothing is written before `.emit()`"]
pub fn fragment() -> Fragment {
    Fragment(Sources::default())
}

/// A card about to be made; see [`agent_card`].
#[derive(Debug, Clone)]
#[must_use = "nothing is written before `.emit()`"]
pub struct AgentCard(CardPlan);

/// A library's part of a card, about to be made; see [`fragment`].
#[derive(Debug, Clone)]
#[must_use = "nothing is written before `.emit()`"]
pub struct Fragment(Sources);

impl AgentCard {
    /// Whether clients must activate the extension (spec 3.1); default: what the base card says, else `true`.
    pub fn required(mut self, required: bool) -> Self {
        self.0.required = Some(required);
        self
    }

    /// Also writes the card to `path`, relative to the package, whenever it changes: the file for a registry, or for signing.
    pub fn also_write(mut self, path: impl Into<PathBuf>) -> Self {
        self.0.also_write.push(path.into());
        self
    }

    /// Makes the card and tells Cargo. A build script makes one card, or one fragment.
    ///
    /// Cargo runs the build script again when the base card or one of the source files that were read changes. A
    /// mistake in the base card or the sources fails the build, with every mistake told; a source file that does not parse is a
    /// warning, since rustc is about to report it.
    pub fn emit(self) {
        emit::tell_cargo(Package::from_env().and_then(|package| self.0.run(&package)));
    }

    fn sources(&mut self) -> &mut Sources {
        &mut self.0.sources
    }
}

impl Fragment {
    /// Makes the fragment and tells Cargo; as [`AgentCard::emit`].
    pub fn emit(self) {
        emit::tell_cargo(Package::from_env().and_then(|package| emit::run_fragment(&self.0, &package)));
    }

    fn sources(&mut self) -> &mut Sources {
        &mut self.0
    }
}

/// What a card and a fragment have in common: where their handlers are.
macro_rules! reading {
    ($builder:ty) => {
        impl $builder {
            /// Reads the library whose root is `root`.
            ///
            /// Once a crate is named, only those that are named are read. Otherwise these are, where they exist:
            /// `src/lib.rs`, `src/main.rs`, and each binary in `src/bin`.
            pub fn lib(mut self, root: impl Into<PathBuf>) -> Self {
                self.sources().crates.push(sources::library(root));
                self
            }

            /// Reads the binary `name`, whose root is `root`; as [`lib`](Self::lib).
            pub fn bin(mut self, name: &str, root: impl Into<PathBuf>) -> Self {
                self.sources().crates.push(sources::binary(name, root));
                self
            }

            /// Reads the example `name`, whose root is `root`; as [`lib`](Self::lib).
            pub fn example(self, name: &str, root: impl Into<PathBuf>) -> Self {
                self.bin(name, root)
            }

            /// Takes `cfg`, `name` or `name="value"`, as set: for what the build script sets itself.
            pub fn cfg(mut self, cfg: &str) -> Self {
                self.sources().cfgs.push(cfg.to_owned());
                self
            }

            /// Lists `method`, whose annotation cannot be read from source text because a macro makes it.
            pub fn declare(mut self, method: &str) -> Self {
                self.sources().declared.push((method.to_owned(), None));
                self
            }

            /// Lists `method` of the extension `uri`; as [`declare`](Self::declare).
            pub fn declare_of(mut self, uri: &str, method: &str) -> Self {
                self.sources().declared.push((method.to_owned(), Some(uri.to_owned())));
                self
            }
        }
    };
}

reading!(AgentCard);
reading!(Fragment);

#[cfg(test)]
mod tests;

//! Writes what a build script has found, and tells Cargo.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::base::BaseCard;
use super::declaration::{self, OtherExtension};
use super::listing::{LISTING_VARIABLE, Listing, WrittenCard};
use super::sources::{Found, Package, Sources};

/// Everything that a card is made from.
#[derive(Debug, Clone)]
pub(super) struct CardPlan {
    pub(super) base: PathBuf,
    pub(super) sources: Sources,
    pub(super) required: Option<bool>,
    pub(super) also_write: Vec<PathBuf>,
}

/// Lines for Cargo, without their `cargo::`.
pub(super) type Directives = Vec<String>;

impl CardPlan {
    /// Writes the card and its listing.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the base card and the sources.
    pub(super) fn run(&self, package: &Package) -> Result<Directives, Vec<String>> {
        let (base, found) = match (self.base(package), self.sources.read(package)) {
            (Ok(base), Ok(found)) => (base, found),
            (base, found) => {
                return Err([base.err(), found.err()].into_iter().flatten().flatten().collect());
            }
        };
        if self.also_write.contains(&self.base) {
            return Err(vec![format!("{}: the card cannot be written over its own base card", self.base.display())]);
        }
        let others = other_extensions(&found.listing);
        let merged = declaration::merge(&base, self.required, &others).map_err(|wrong| self.about_base(wrong))?;

        let mut directives = directives_for(&found);
        directives.push(format!("rerun-if-changed={}", self.base.display()));
        let path = package.out_dir.join("idempotent").join("agent-card.json");
        write_if_changed(&path, &merged.json)?;
        for also in &self.also_write {
            write_if_changed(&package.dir.join(also), &merged.json)?;
        }
        let mut listing = found.listing;
        listing.card = Some(WrittenCard { path, places: merged.places });
        directives.push(write_listing(&listing, package)?.1);
        Ok(directives)
    }

    fn base(&self, package: &Package) -> Result<BaseCard, Vec<String>> {
        let text = fs::read_to_string(package.dir.join(&self.base)).map_err(|error| {
            vec![format!(
                "cannot read the base card {}: {error}; it is an AgentCard as you would write it without the idempotency extension",
                self.base.display()
            )]
        })?;
        BaseCard::parse(&text).map_err(|wrong| self.about_base(wrong))
    }

    fn about_base(&self, wrong: Vec<String>) -> Vec<String> {
        wrong.into_iter().map(|line| format!("{}: {line}", self.base.display())).collect()
    }
}

/// Writes a library's part of a card.
///
/// # Errors
///
/// Everything that is wrong with the sources; the package has no `links` to tell its dependents by.
pub(super) fn run_fragment(sources: &Sources, package: &Package) -> Result<Directives, Vec<String>> {
    if !package.variables.contains_key("CARGO_MANIFEST_LINKS") {
        return Err(vec![
            "a fragment reaches the agent's build script only from a package with a `links` key: \
             add `links = \"<the package's name>\"` under [package] in Cargo.toml"
                .to_owned(),
        ]);
    }
    let found = sources.read(package)?;
    let mut directives = directives_for(&found);
    let (path, directive) = write_listing(&found.listing, package)?;
    directives.push(directive);
    // Without its `links` key the fragment would be lost without a word: look again when the manifest changes.
    directives.push("rerun-if-changed=Cargo.toml".to_owned());
    directives.push(format!("metadata=IDEMPOTENT_FRAGMENT={}", path.display()));
    Ok(directives)
}

/// Prints the directives, or what is wrong, in the form that Cargo shows; in the latter case the build ends here.
pub(super) fn tell_cargo(result: Result<Directives, Vec<String>>) {
    let (lines, failed) = match result {
        Ok(directives) => (directives, false),
        Err(wrong) => (wrong.into_iter().map(|line| format!("error={line}")).collect(), true),
    };
    let mut stdout = io::stdout().lock();
    for line in &lines {
        // Cargo reads one directive per line.
        let written = writeln!(stdout, "cargo::{}", line.replace('\n', " "));
        if written.is_err() {
            std::process::exit(1);
        }
    }
    if failed {
        std::process::exit(1);
    }
}

fn directives_for(found: &Found) -> Directives {
    let files = found.files.iter().map(|file| format!("rerun-if-changed={}", file.display()));
    let warnings = found.warnings.iter().map(|warning| format!("warning={warning}"));
    files.chain(warnings).collect()
}

fn write_listing(listing: &Listing, package: &Package) -> Result<(PathBuf, String), Vec<String>> {
    let path = package.out_dir.join("idempotent").join("listing.json");
    let text = serde_json::to_string_pretty(listing).map_err(|error| vec![error.to_string()])?;
    write_if_changed(&path, &text)?;
    let directive = format!("rustc-env={LISTING_VARIABLE}={}", path.display());
    Ok((path, directive))
}

/// Other extensions' methods, by URI, each once.
fn other_extensions(listing: &Listing) -> Vec<OtherExtension> {
    let mut others: Vec<OtherExtension> = Vec::new();
    for one in &listing.methods {
        let Some(uri) = &one.extension else {
            continue;
        };
        let at = others.iter().position(|other| other.uri == *uri).unwrap_or_else(|| {
            others.push(OtherExtension { uri: uri.clone(), methods: Vec::new() });
            others.len() - 1
        });
        if !others[at].methods.contains(&one.method) {
            others[at].methods.push(one.method.clone());
        }
    }
    others.sort_by(|left, right| left.uri.cmp(&right.uri));
    others
}

/// A file that stays the same keeps its time stamp, so that nothing is built again for it.
fn write_if_changed(path: &Path, text: &str) -> Result<(), Vec<String>> {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    let parent = path.parent().unwrap_or(path);
    fs::create_dir_all(parent)
        .and_then(|()| fs::write(path, text))
        .map_err(|error| vec![format!("cannot write {}: {error}", path.display())])
}

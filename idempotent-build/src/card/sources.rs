//! Finds the annotated handlers of a package: its crates, what they declare, and what other packages add.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use quote::quote;

use super::cfg::CfgSet;
use super::listing::{ListedMethod, Listing, Origin};
use super::walk::Walked;
use crate::syntax::Annotation;

/// The folder in which Cargo finds binaries by itself.
const BINARIES: &str = "src/bin";

/// Which crates of the package to read, and what reading them cannot tell.
#[derive(Debug, Clone, Default)]
pub(super) struct Sources {
    pub(super) crates: Vec<Crate>,
    pub(super) cfgs: Vec<String>,
    pub(super) declared: Vec<(String, Option<String>)>,
}

/// A crate of the package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Crate {
    pub(super) origin: Origin,
    /// Its root file, relative to the package.
    pub(super) root: PathBuf,
}

/// What Cargo tells a build script.
#[derive(Debug, Clone)]
pub(super) struct Package {
    pub(super) dir: PathBuf,
    pub(super) out_dir: PathBuf,
    pub(super) variables: BTreeMap<String, String>,
}

/// What the sources of a package hold.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) listing: Listing,
    /// Files whose change can change the listing, relative to the package where they are inside it.
    pub(super) files: Vec<PathBuf>,
    pub(super) warnings: Vec<String>,
}

impl Package {
    /// Reads what Cargo tells; outside a build script, says so.
    pub(super) fn from_env() -> Result<Self, Vec<String>> {
        let variables: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let folder = |name: &str| {
            variables
                .get(name)
                .map(PathBuf::from)
                .ok_or_else(|| vec![format!("{name} is not set: call this from a build script (build.rs)")])
        };
        Ok(Self { dir: folder("CARGO_MANIFEST_DIR")?, out_dir: folder("OUT_DIR")?, variables })
    }

    fn variable(&self, name: &str) -> &str {
        self.variables.get(name).map_or("", String::as_str)
    }

    /// The crates that Cargo finds by itself.
    fn usual_crates(&self) -> Vec<Crate> {
        let package = self.variable("CARGO_PKG_NAME");
        let mut crates = vec![library("src/lib.rs"), binary(package, "src/main.rs")];
        let entries = std::fs::read_dir(self.dir.join(BINARIES)).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        for name in names {
            match name.strip_suffix(".rs") {
                Some(stem) => crates.push(binary(stem, format!("src/bin/{name}"))),
                None => crates.push(binary(&name, format!("src/bin/{name}/main.rs"))),
            }
        }
        crates.retain(|one| self.dir.join(&one.root).is_file());
        crates
    }

    /// A path as the user would write it.
    fn relative(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.dir).unwrap_or(path).to_owned()
    }
}

pub(super) fn library(root: impl Into<PathBuf>) -> Crate {
    Crate { origin: Origin::Lib, root: root.into() }
}

pub(super) fn binary(name: &str, root: impl Into<PathBuf>) -> Crate {
    Crate { origin: Origin::Binary(name.to_owned()), root: root.into() }
}

impl Sources {
    /// Reads everything.
    ///
    /// # Errors
    ///
    /// A root that is not there, a cfg that is none, a method that two handlers answer: each with what to do.
    pub(super) fn read(&self, package: &Package) -> Result<Found, Vec<String>> {
        let mut wrong = Vec::new();
        let cfg = self.cfg(package, &mut wrong);
        let crates = self.crates(package, &mut wrong);
        let mut found = Found {
            listing: Listing::new(package.variable("CARGO_PKG_NAME"), &package.dir),
            files: Vec::new(),
            warnings: Vec::new(),
        };
        for one in &crates {
            found.read_crate(one, package, &cfg);
        }
        if self.crates.is_empty() && package.dir.join(BINARIES).is_dir() {
            // A new binary there is one more crate to read.
            found.files.push(BINARIES.into());
        }
        for (method, extension) in &self.declared {
            match declaration(method, extension.as_deref()) {
                Ok(declared) => found.listing.methods.push(declared),
                Err(error) => wrong.push(error),
            }
        }
        found.read_fragments(package, &mut wrong);
        found.listing.methods.sort();
        duplicates(&found.listing, &mut wrong);
        if wrong.is_empty() { Ok(found) } else { Err(wrong) }
    }

    fn cfg(&self, package: &Package, wrong: &mut Vec<String>) -> CfgSet {
        let mut cfg = CfgSet::from_vars(package.variables.clone());
        wrong.extend(self.cfgs.iter().filter_map(|one| cfg.insert(one).err()));
        cfg
    }

    fn crates(&self, package: &Package, wrong: &mut Vec<String>) -> Vec<Crate> {
        if self.crates.is_empty() {
            let usual = package.usual_crates();
            if usual.is_empty() {
                wrong.push(
                    "there is neither src/lib.rs nor src/main.rs nor anything in src/bin; \
                     name the crate in build.rs: `.lib(\"path/lib.rs\")` or `.bin(\"name\", \"path/main.rs\")`"
                        .to_owned(),
                );
            }
            return usual;
        }
        for one in &self.crates {
            if !package.dir.join(&one.root).is_file() {
                wrong.push(format!("the crate root {} is not there", one.root.display()));
            }
        }
        self.crates.clone()
    }
}

impl Found {
    fn read_crate(&mut self, one: &Crate, package: &Package, cfg: &CfgSet) {
        match &one.origin {
            Origin::Binary(name) => self.listing.binaries.push(name.clone()),
            _ => self.listing.lib = true,
        }
        let walked = Walked::read(&package.dir.join(&one.root), cfg);
        self.listing.no_prelude |= walked.no_prelude;
        // Cargo looks for a file that is missing at every build, until it is there.
        for file in walked.files.iter().chain(&walked.missing).map(|file| package.relative(file)) {
            if !self.files.contains(&file) {
                self.files.push(file);
            }
        }
        self.warnings.extend(walked.unparsed.iter().map(|file| {
            format!("{} does not parse; the AgentCard leaves its handlers out", package.relative(file).display())
        }));
        for annotated in walked.into_annotated() {
            // What is wrong with an annotation is reported by the macro, at its place.
            let Ok(declaration) = Annotation::parse(annotated.options).into_result() else {
                continue;
            };
            let file = package.relative(&annotated.file);
            self.listing.methods.push(ListedMethod {
                method: declaration.method,
                extension: declaration.extension,
                origin: one.origin.clone(),
                place: format!("fn {} in {}", annotated.function, file.display()),
            });
        }
    }

    /// Cargo hands what a dependency's build script emits to this one as `DEP_<links>_IDEMPOTENT_FRAGMENT`.
    fn read_fragments(&mut self, package: &Package, wrong: &mut Vec<String>) {
        for (name, path) in &package.variables {
            if !(name.starts_with("DEP_") && name.ends_with("_IDEMPOTENT_FRAGMENT")) {
                continue;
            }
            match Listing::read(Path::new(path)) {
                Ok(fragment) => self.add_fragment(fragment),
                Err(error) => wrong.push(error),
            }
            self.files.push(path.into());
        }
    }

    fn add_fragment(&mut self, fragment: Listing) {
        let name = fragment.package;
        for mut method in fragment.methods {
            if matches!(method.origin, Origin::Binary(_)) {
                continue;
            }
            if !matches!(method.origin, Origin::Fragment(_)) {
                method.place = format!("{} of `{name}`", method.place);
                method.origin = Origin::Fragment(name.clone());
            }
            // Two dependencies may both pass on what a third one declares.
            if !self.listing.methods.contains(&method) {
                self.listing.methods.push(method);
            }
        }
    }
}

/// A method that build.rs declares, under the rules of the annotation.
fn declaration(method: &str, extension: Option<&str>) -> Result<ListedMethod, String> {
    let extension = extension.map(|uri| quote!(, extension = #uri));
    let declaration = Annotation::parse(quote!(method = #method #extension))
        .into_result()
        .map_err(|error| format!("declared in build.rs: {error}"))?;
    Ok(ListedMethod {
        method: declaration.method,
        extension: declaration.extension,
        origin: Origin::Declared,
        place: "declared in build.rs".to_owned(),
    })
}

/// Tells every method that one program would answer twice. Two binaries are two programs.
fn duplicates(listing: &Listing, wrong: &mut Vec<String>) {
    let mut by_method: BTreeMap<&str, Vec<&ListedMethod>> = BTreeMap::new();
    for method in &listing.methods {
        by_method.entry(&method.method).or_default().push(method);
    }
    for (name, handlers) in by_method {
        let twice = handlers.iter().enumerate().any(|(index, one)| {
            handlers[index + 1..].iter().any(|other| match (&one.origin, &other.origin) {
                (Origin::Binary(left), Origin::Binary(right)) => left == right,
                _ => true,
            })
        });
        if twice {
            let places: Vec<_> = handlers.iter().map(|one| one.place.as_str()).collect();
            wrong.push(format!(
                "`{name}` has {} handlers: {}; one method has one handler, remove the others",
                places.len(),
                places.join("; ")
            ));
        }
    }
}

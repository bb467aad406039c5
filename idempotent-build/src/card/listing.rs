//! What a build script tells the macros of its package: which methods the card lists, and where their handlers are.
//!
//! The build script writes it as a file and names that file in an environment variable of the package's compilations. The
//! attribute reads it to refuse a handler that the card lacks; `agent_card!()` reads it to demand a handler for each entry.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

pub use super::declaration::Places;
use crate::syntax::canonical_method;

/// The variable that names the listing's file.
pub const LISTING_VARIABLE: &str = "IDEMPOTENT_CARD";

/// Changes whenever an older reader would misread the file.
const FORMAT: u32 = 1;

/// The methods of a card, or of a library's part of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    format: u32,
    /// The package's name.
    pub package: String,
    /// The package's folder: programs that Cargo runs, and what they build, see the variables of other packages.
    pub dir: PathBuf,
    /// Whether the build script read the package's library.
    pub lib: bool,
    /// The binaries and examples that it read.
    pub binaries: Vec<String>,
    /// The card, if this is one; `None` for a fragment.
    pub card: Option<WrittenCard>,
    /// Some module of the package has no prelude, where `diagnostic::` attributes are unknown.
    pub no_prelude: bool,
    /// Every method, sorted by name.
    pub methods: Vec<ListedMethod>,
}

/// A card in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenCard {
    /// Where it is.
    pub path: PathBuf,
    /// Where in it the run-time values go.
    pub places: Places,
}

/// A method in scope of the extension.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ListedMethod {
    /// Its canonical name.
    pub method: String,
    /// The URI of the extension that put it in scope; `None` for the core methods.
    pub extension: Option<String>,
    /// Whose handler answers it.
    pub origin: Origin,
    /// Where its handler is, in words.
    pub place: String,
}

/// The crate that a handler is in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Origin {
    /// The package's library.
    Lib,
    /// One of its binaries or examples.
    Binary(String),
    /// Named in build.rs, since its annotation cannot be read from source text.
    Declared,
    /// Another package, which emits a fragment.
    Fragment(String),
}

/// The crate of the package that is being compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compiling {
    /// The library that the build script read.
    Lib,
    /// A library that it did not read.
    UnreadLib,
    /// A binary or an example that the build script read.
    Binary(String),
    /// A binary or an example that it did not read.
    UnreadBinary(String),
    /// A test, a benchmark or a documentation test.
    Test,
}

impl Listing {
    /// An empty listing of the package `package` in the folder `dir`.
    pub fn new(package: &str, dir: &Path) -> Self {
        Self {
            format: FORMAT,
            package: package.to_owned(),
            dir: dir.to_owned(),
            lib: false,
            binaries: Vec::new(),
            card: None,
            no_prelude: false,
            methods: Vec::new(),
        }
    }

    /// The listing of the package that is being compiled; `None` if its build script makes no card.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or an `idempotent-build` of another version wrote it: a message that says what to do.
    pub fn of_this_package() -> Option<Result<Arc<Self>, String>> {
        let path = PathBuf::from(std::env::var_os(LISTING_VARIABLE)?);
        let dir = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR")?);
        let listing = Self::cached(&path);
        listing.map(|listing| (listing.dir == dir).then_some(listing)).transpose()
    }

    /// Reads a listing once for all the handlers of a crate. A compiler that lives longer sees that the file has changed.
    fn cached(path: &Path) -> Result<Arc<Self>, String> {
        static LAST: Mutex<Option<(PathBuf, SystemTime, Arc<Listing>)>> = Mutex::new(None);

        let modified = std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some((known, at, listing)), Some(modified)) = (&*last, modified)
            && known == path
            && *at == modified
        {
            return Ok(Arc::clone(listing));
        }
        let listing = Arc::new(Self::read(path)?);
        *last = modified.map(|modified| (path.to_owned(), modified, Arc::clone(&listing)));
        Ok(listing)
    }

    pub(super) fn read(path: &Path) -> Result<Self, String> {
        /// Any version's file has this.
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }

        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read {}: {error}; build again", path.display()))?;
        match serde_json::from_str::<Version>(&text) {
            Ok(Version { format }) if format != FORMAT => Err(format!(
                "`{}` was written by another version of idempotent-build; give it the version of idempotent in [build-dependencies]",
                path.display()
            )),
            _ => serde_json::from_str(&text)
                .map_err(|error| format!("{} is damaged: {error}; build again", path.display())),
        }
    }

    /// Which crate is being compiled, as Cargo's variables tell.
    pub fn compiling(&self) -> Compiling {
        self.compiling_under(|name| std::env::var(name).ok())
    }

    fn compiling_under(&self, variable: impl Fn(&str) -> Option<String>) -> Compiling {
        // Cargo sets the first for integration tests and benchmarks, rustdoc the second for documentation tests.
        if ["CARGO_TARGET_TMPDIR", "UNSTABLE_RUSTDOC_TEST_PATH"].iter().any(|name| variable(name).is_some()) {
            return Compiling::Test;
        }
        match variable("CARGO_BIN_NAME") {
            Some(name) if self.binaries.contains(&name) => Compiling::Binary(name),
            Some(name) => Compiling::UnreadBinary(name),
            None if self.lib => Compiling::Lib,
            None => Compiling::UnreadLib,
        }
    }

    /// The methods whose handlers the crate being compiled has, or links.
    pub fn provable(&self, compiling: &Compiling) -> Vec<&ListedMethod> {
        self.methods.iter().filter(|method| reaches(compiling, &method.origin, false)).collect()
    }

    /// The methods that the card lists when it is made in this crate: a library's card lists those of the binaries too.
    pub fn of_card(&self, compiling: &Compiling) -> Vec<&ListedMethod> {
        self.methods.iter().filter(|method| reaches(compiling, &method.origin, true)).collect()
    }

    /// Why a handler of `method` in the crate being compiled does not agree with the card; `None` if it does.
    fn lacks(&self, method: &str, compiling: &Compiling) -> Option<String> {
        let own = match compiling {
            Compiling::Lib => Origin::Lib,
            Compiling::Binary(name) => Origin::Binary(name.clone()),
            Compiling::UnreadLib | Compiling::UnreadBinary(_) | Compiling::Test => return None,
        };
        let method = canonical_method(method);
        let listed = self
            .methods
            .iter()
            .any(|one| one.method == method && (one.origin == own || one.origin == Origin::Declared));
        (!listed).then(|| {
            format!(
                "the AgentCard lacks `{method}`: build.rs did not find this handler\n\
                 help: it reads source text, where what a macro makes is invisible; name it there: \
                 `agent_card(…).declare(\"{method}\")`\n\
                 help: a cfg that build.rs sets itself must be told: `agent_card(…).cfg(\"name\")`"
            )
        })
    }
}

fn reaches(compiling: &Compiling, origin: &Origin, card: bool) -> bool {
    match (compiling, origin) {
        (_, Origin::Lib | Origin::Declared | Origin::Fragment(_)) => true,
        (Compiling::Binary(own), Origin::Binary(name)) => own == name,
        (Compiling::Lib | Compiling::Test, Origin::Binary(_)) => card,
        (Compiling::UnreadLib | Compiling::UnreadBinary(_), Origin::Binary(_)) => false,
    }
}

/// Why the handler of `method` that is being expanded is missing in its package's card; `None` if nothing is wrong.
///
/// Nothing is wrong either where there is no card to agree with: in a package without one, in a test or benchmark, and in a
/// binary that the build script was told to leave out.
pub fn unlisted(method: &str) -> Option<String> {
    // A listing that cannot be read is reported once, by `agent_card!()`, and not by every handler.
    let listing = Listing::of_this_package()?.ok()?;
    listing.lacks(method, &listing.compiling())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(method: &str, origin: Origin) -> ListedMethod {
        ListedMethod { method: method.to_owned(), extension: None, origin, place: String::new() }
    }

    fn listing() -> Listing {
        Listing {
            lib: true,
            binaries: vec!["one".to_owned(), "two".to_owned()],
            methods: vec![
                listed("a", Origin::Lib),
                listed("b", Origin::Binary("one".to_owned())),
                listed("c", Origin::Binary("two".to_owned())),
                listed("d", Origin::Fragment("skills".to_owned())),
                listed("e", Origin::Declared),
                listed("message/send", Origin::Lib),
            ],
            ..Listing::new("travel", Path::new("/travel"))
        }
    }

    fn names(methods: Vec<&ListedMethod>) -> Vec<&str> {
        methods.into_iter().map(|one| one.method.as_str()).collect()
    }

    #[test]
    fn a_crate_is_known_by_cargos_variables() {
        let listing = listing();
        let under = |set: &[(&str, &str)]| {
            let value = |name: &str| set.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned());
            listing.compiling_under(value)
        };
        assert_eq!(under(&[]), Compiling::Lib);
        assert_eq!(under(&[("CARGO_BIN_NAME", "one")]), Compiling::Binary("one".to_owned()));
        assert_eq!(under(&[("CARGO_BIN_NAME", "three")]), Compiling::UnreadBinary("three".to_owned()));
        assert_eq!(under(&[("CARGO_TARGET_TMPDIR", "/tmp")]), Compiling::Test);
        assert_eq!(under(&[("UNSTABLE_RUSTDOC_TEST_PATH", "src/lib.rs")]), Compiling::Test);
        let without_lib = Listing { lib: false, ..listing.clone() };
        assert_eq!(without_lib.compiling_under(|_| None), Compiling::UnreadLib);
    }

    #[test]
    fn each_crate_proves_what_it_has_or_links() {
        let listing = listing();
        let two = Compiling::Binary("two".to_owned());
        assert_eq!(names(listing.provable(&Compiling::Lib)), ["a", "d", "e", "message/send"]);
        assert_eq!(names(listing.provable(&two)), ["a", "c", "d", "e", "message/send"]);
        assert_eq!(names(listing.of_card(&Compiling::Lib)).len(), 6);
        assert_eq!(names(listing.of_card(&two)).len(), 5);
    }

    #[test]
    fn a_handler_that_was_not_found_is_told() {
        let listing = listing();
        assert_eq!(listing.lacks("SendMessage", &Compiling::Lib), None);
        assert_eq!(listing.lacks("e", &Compiling::Lib), None);
        assert_eq!(listing.lacks("anything", &Compiling::Test), None);
        let told = listing.lacks("b", &Compiling::Lib).expect("a message");
        assert!(told.contains("lacks `b`") && told.contains(".declare(\"b\")"), "{told}");
        assert!(listing.lacks("b", &Compiling::Binary("two".to_owned())).is_some());
    }

    #[test]
    fn a_listing_is_read_again_when_its_file_has_changed() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("listing.json");
        let write = |listing: &Listing, at: u64| {
            std::fs::write(&path, serde_json::to_string(listing).expect("JSON")).expect("a file");
            let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(at);
            std::fs::File::options().append(true).open(&path).and_then(|file| file.set_modified(time)).expect("a time");
        };
        write(&listing(), 1);
        assert_eq!(*Listing::cached(&path).expect("a listing"), listing());
        let other = Listing { lib: false, ..listing() };
        write(&other, 2);
        assert_eq!(*Listing::cached(&path).expect("a listing"), other);
    }

    #[test]
    fn another_versions_file_is_told_from_a_damaged_one() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("listing.json");
        std::fs::write(&path, "{\"format\": 99}").expect("a file");
        assert!(Listing::read(&path).expect_err("other").contains("[build-dependencies]"));
        std::fs::write(&path, "{").expect("a file");
        assert!(Listing::read(&path).expect_err("damaged").contains("is damaged"));
        assert!(Listing::read(&dir.path().join("none")).expect_err("none").contains("cannot read"));
    }
}

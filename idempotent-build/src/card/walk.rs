//! Reads a crate's source files the way rustc does: from its root, along every `mod`.
//!
//! `mod x;` is found at `x.rs` or `x/mod.rs`, or where `#[path]` says; what a `#[cfg(…)]` takes out is not there; an
//! `include!("x.rs")` of items is followed. Items that macros make are invisible to a reader of source text, and a file that does not parse is left to rustc, which reports it better.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use proc_macro2::TokenStream;
use syn::ext::IdentExt;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ExprLit, Item, ItemFn, ItemMacro, ItemMod, ItemUse, Lit, LitStr, Meta, UseTree};

use super::cfg::CfgSet;

/// The attribute as the crate exports it.
const ATTRIBUTE: &str = "idempotent";

/// What a walk along one crate's modules has found.
#[derive(Debug, Default)]
pub(super) struct Walked {
    /// Every file that was read, the root first.
    pub(super) files: Vec<PathBuf>,
    /// Files of modules that are not there, yet.
    pub(super) missing: Vec<PathBuf>,
    /// Files that rustc will refuse.
    pub(super) unparsed: Vec<PathBuf>,
    /// A module of the crate is `#![no_implicit_prelude]`.
    pub(super) no_prelude: bool,
    candidates: Vec<Candidate>,
    attribute_names: BTreeSet<String>,
}

/// An attribute with arguments on a function: an annotation, if its name is ours.
#[derive(Debug)]
struct Candidate {
    name: String,
    annotation: Annotated,
}

/// A function that carries the attribute.
#[derive(Debug)]
pub(super) struct Annotated {
    /// What stands between the attribute's parentheses.
    pub(super) options: TokenStream,
    pub(super) function: String,
    pub(super) file: PathBuf,
}

impl Walked {
    /// Reads the crate whose root is `root`.
    pub(super) fn read(root: &Path, cfg: &CfgSet) -> Self {
        let mut walked = Self::default();
        walked.attribute_names.insert(ATTRIBUTE.to_owned());
        let Some(dir) = root.parent() else {
            return walked;
        };
        let place = Place { dir: dir.to_owned(), relative: None };
        Walker { cfg, walked: &mut walked, place, file: root.to_owned(), open: Vec::new() }.file();
        walked
    }

    /// The functions that carry the attribute under any of the names which the crate gives it.
    pub(super) fn into_annotated(self) -> Vec<Annotated> {
        let Self { candidates, attribute_names, .. } = self;
        let ours = candidates.into_iter().filter(|one| attribute_names.contains(&one.name));
        ours.map(|one| one.annotation).collect()
    }
}

/// Where the files of a module's children are looked for.
#[derive(Debug, Clone)]
struct Place {
    dir: PathBuf,
    /// The module's own name while its file is `name.rs`, whose children live one folder down.
    relative: Option<String>,
}

struct Walker<'a> {
    cfg: &'a CfgSet,
    walked: &'a mut Walked,
    place: Place,
    file: PathBuf,
    /// The files that are being read, outermost first: rustc refuses a file that includes itself.
    open: Vec<PathBuf>,
}

impl Walker<'_> {
    fn file(&mut self) {
        let file = self.file.clone();
        let Ok(text) = std::fs::read_to_string(&file) else {
            self.walked.missing.push(file);
            return;
        };
        if self.open.contains(&file) {
            return;
        }
        if !self.walked.files.contains(&file) {
            self.walked.files.push(file.clone());
        }
        let Ok(parsed) = syn::parse_file(&text) else {
            self.walked.unparsed.push(file);
            return;
        };
        let Some(attributes) = self.cfg.active(&parsed.attrs) else {
            return;
        };
        self.note_prelude(&attributes);
        self.open.push(file);
        self.visit_file(&parsed);
        self.open.pop();
    }

    fn note_prelude(&mut self, attributes: &[Meta]) {
        self.walked.no_prelude |= attributes.iter().any(|meta| meta.path().is_ident("no_implicit_prelude"));
    }

    /// Reads the file of a `mod name;`, if it is where rustc looks for it.
    fn file_of_module(&mut self, name: &str, path: Option<String>) {
        let (file, relative) = match path {
            Some(path) => (self.place.dir.join(path), None),
            None => {
                let dir = match &self.place.relative {
                    Some(relative) => self.place.dir.join(relative),
                    None => self.place.dir.clone(),
                };
                let flat = dir.join(format!("{name}.rs"));
                let folder = dir.join(name).join("mod.rs");
                if folder.is_file() && !flat.is_file() { (folder, None) } else { (flat, Some(name.to_owned())) }
            }
        };
        self.another_file(file, relative);
    }

    fn another_file(&mut self, file: PathBuf, relative: Option<String>) {
        let Some(dir) = file.parent() else {
            return;
        };
        let outer_place = std::mem::replace(&mut self.place, Place { dir: dir.to_owned(), relative });
        let outer_file = std::mem::replace(&mut self.file, file);
        self.file();
        self.place = outer_place;
        self.file = outer_file;
    }

    fn place_of_inline_module(&self, name: &str, path: Option<String>) -> Place {
        let mut dir = self.place.dir.clone();
        match path {
            Some(path) => dir.push(path),
            None => {
                dir.extend(self.place.relative.as_deref());
                dir.push(name);
            }
        }
        Place { dir, relative: None }
    }
}

impl<'ast> Visit<'ast> for Walker<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if attributes_of(item).is_none_or(|attributes| self.cfg.active(attributes).is_some()) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        let Some(attributes) = self.cfg.active(&module.attrs) else {
            return;
        };
        self.note_prelude(&attributes);
        let name = module.ident.unraw().to_string();
        let path = attributes.iter().find_map(path_of);
        let Some((_, items)) = &module.content else {
            return self.file_of_module(&name, path);
        };
        let inner = self.place_of_inline_module(&name, path);
        let outer = std::mem::replace(&mut self.place, inner);
        for item in items {
            self.visit_item(item);
        }
        self.place = outer;
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        let Some(attributes) = self.cfg.active(&function.attrs) else {
            return;
        };
        for attribute in attributes {
            let Meta::List(list) = attribute else {
                continue;
            };
            let Some(last) = list.path.segments.last() else {
                continue;
            };
            self.walked.candidates.push(Candidate {
                name: last.ident.unraw().to_string(),
                annotation: Annotated {
                    options: list.tokens.clone(),
                    function: function.sig.ident.unraw().to_string(),
                    file: self.file.clone(),
                },
            });
        }
        visit::visit_item_fn(self, function);
    }

    /// `include!("file.rs");` of items: its modules lie beside the file.
    fn visit_item_macro(&mut self, item: &'ast ItemMacro) {
        let is_include = item.mac.path.segments.last().is_some_and(|last| last.ident == "include");
        if let (true, Ok(path)) = (is_include, item.mac.parse_body::<LitStr>()) {
            let dir = self.file.parent().unwrap_or(&self.file);
            self.another_file(dir.join(path.value()), None);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        renames(&item.tree, &mut self.walked.attribute_names);
    }
}

/// The attributes of an item that a `cfg` may take out; functions and modules look at their own.
fn attributes_of(item: &Item) -> Option<&[Attribute]> {
    Some(match item {
        Item::Const(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => return None,
    })
}

/// `use idempotent::idempotent as once;`
fn renames(tree: &UseTree, names: &mut BTreeSet<String>) {
    match tree {
        UseTree::Path(path) => renames(&path.tree, names),
        UseTree::Group(group) => group.items.iter().for_each(|item| renames(item, names)),
        UseTree::Rename(rename) if rename.ident == ATTRIBUTE => {
            names.insert(rename.rename.unraw().to_string());
        }
        _ => {}
    }
}

fn path_of(attribute: &Meta) -> Option<String> {
    match attribute {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(path), .. }) => Some(path.value()),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Walks a crate made of these files, from `src/lib.rs`; gives the names of its annotated functions.
    fn functions(files: &[(&str, &str)]) -> Vec<String> {
        let (_dir, walked) = walk(files);
        walked.into_annotated().into_iter().map(|one| one.function).collect()
    }

    fn walk(files: &[(&str, &str)]) -> (tempfile::TempDir, Walked) {
        let dir = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        let vars = [("CARGO_CFG_UNIX", ""), ("CARGO_FEATURE_EXTRA", "1")];
        let cfg = CfgSet::from_vars(vars.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let walked = Walked::read(&dir.path().join("src/lib.rs"), &cfg);
        (dir, walked)
    }

    fn handler(name: &str) -> String {
        format!("#[idempotent(method = \"message/send\")]\nasync fn {name}() {{}}\n")
    }

    #[test]
    fn modules_are_found_where_rustc_finds_them() {
        let found = functions(&[
            ("src/lib.rs", "mod flat; mod folder; mod inline { mod below; pub mod deeper { mod end; } } mod r#type;"),
            ("src/flat.rs", &format!("mod child; {}", handler("flat"))),
            ("src/flat/child.rs", &handler("flat_child")),
            ("src/folder/mod.rs", &format!("mod child; {}", handler("folder"))),
            ("src/folder/child.rs", &handler("folder_child")),
            ("src/inline/below.rs", &handler("below_inline")),
            ("src/inline/deeper/end.rs", &handler("end")),
            ("src/type.rs", &handler("raw")),
            ("src/unreached.rs", &handler("unreached")),
        ]);
        assert_eq!(found, ["flat_child", "flat", "folder_child", "folder", "below_inline", "end", "raw"]);
    }

    #[test]
    fn path_attributes_are_followed_from_files_and_inline_modules() {
        let found = functions(&[
            (
                "src/lib.rs",
                r#"
                #[path = "elsewhere/a.rs"] mod a;
                mod b;
                #[path = "threads"] mod inline { #[path = "tls.rs"] mod local; mod plain; }
                #[cfg_attr(unix, path = "u.rs")] #[cfg_attr(not(unix), path = "w.rs")] mod os;
                "#,
            ),
            ("src/elsewhere/a.rs", &format!("mod next; {}", handler("a"))),
            ("src/elsewhere/next.rs", &handler("next_of_a")),
            ("src/b.rs", "#[path = \"c.rs\"] mod c; mod i { #[path = \"d.rs\"] mod d; }"),
            ("src/c.rs", &handler("beside_b")),
            ("src/b/i/d.rs", &handler("under_b")),
            ("src/threads/tls.rs", &handler("tls")),
            ("src/threads/plain.rs", &handler("plain")),
            ("src/u.rs", &handler("unix")),
            ("src/w.rs", &handler("windows")),
        ]);
        assert_eq!(found, ["next_of_a", "a", "beside_b", "under_b", "tls", "plain", "unix"]);
    }

    #[test]
    fn what_is_configured_out_is_not_there() {
        let found = functions(&[(
            "src/lib.rs",
            r#"
            #[cfg(test)] mod tests { #[idempotent(method = "a")] async fn in_tests() {} }
            #[cfg(feature = "extra")] #[idempotent(method = "a")] async fn extra() {}
            #[cfg(not(feature = "extra"))] #[idempotent(method = "a")] async fn not_extra() {}
            #[cfg(windows)] const _: () = { #[idempotent(method = "a")] async fn in_const() {} };
            #[cfg_attr(unix, idempotent(method = "a"))] async fn on_unix() {}
            #[cfg_attr(windows, idempotent(method = "a"))] async fn on_windows() {}
            mod gone { #![cfg(windows)] }
            "#,
        )]);
        assert_eq!(found, ["extra", "on_unix"]);
    }

    #[test]
    fn a_file_can_configure_itself_out() {
        let found = functions(&[
            ("src/lib.rs", "mod windows;"),
            ("src/windows.rs", &format!("#![cfg(windows)]\n{}", handler("gone"))),
        ]);
        assert!(found.is_empty());
    }

    #[test]
    fn the_attribute_is_known_by_path_and_by_the_names_it_is_given() {
        let found = functions(&[(
            "src/lib.rs",
            r#"
                mod prelude { pub use idempotent::{idempotent as once, Params}; }
                #[idempotent::idempotent(method = "a")] async fn by_path() {}
                #[::renamed::idempotent(method = "a")] async fn by_renamed_crate() {}
                #[once(method = "a")] async fn renamed() {}
                #[tokio::test(flavor = "x")] async fn another() {}
                fn outer() { #[idempotent(method = "a")] async fn nested() {} }
                "#,
        )]);
        assert_eq!(found, ["by_path", "by_renamed_crate", "renamed", "nested"]);
    }

    #[test]
    fn a_file_that_does_not_parse_is_left_to_rustc() {
        let (dir, walked) = walk(&[
            ("src/lib.rs", &format!("mod broken; mod missing; {}", handler("fine"))),
            ("src/broken.rs", "fn {"),
        ]);
        assert_eq!(walked.unparsed, [dir.path().join("src/broken.rs")]);
        assert_eq!(walked.files.len(), 2);
        assert_eq!(walked.missing, [dir.path().join("src/missing.rs")]);
        assert_eq!(walked.into_annotated().len(), 1);
    }

    #[test]
    fn a_module_without_prelude_is_noted() {
        let no_prelude =
            |text: &str| walk(&[("src/lib.rs", text), ("src/a.rs", "#![no_implicit_prelude]")]).1.no_prelude;
        assert!(no_prelude("mod a;"));
        assert!(no_prelude("#[no_implicit_prelude] mod b {}"));
        assert!(!no_prelude("mod b {} #[cfg(windows)] mod a;"));
    }

    #[test]
    fn included_items_are_read() {
        let found = functions(&[
            (
                "src/lib.rs",
                "mod a { mod b; } #[cfg(windows)] include!(\"windows.rs\"); include!(concat!(\"x\", \".rs\"));",
            ),
            ("src/a/b.rs", "std::include!(\"../shared/items.rs\");"),
            ("src/shared/items.rs", &format!("mod beside; {}", handler("included"))),
            ("src/shared/beside.rs", &handler("beside")),
            ("src/windows.rs", &handler("gone")),
            ("src/x.rs", &handler("computed")),
        ]);
        assert_eq!(found, ["beside", "included"]);
    }

    #[test]
    fn a_file_that_includes_itself_ends() {
        let found = functions(&[("src/lib.rs", &format!("#[path = \"lib.rs\"] mod again; {}", handler("one")))]);
        assert_eq!(found, ["one"]);
    }
}

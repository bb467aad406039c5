//! Small workspaces that Cargo really builds, each in a folder of its own, all into one target folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) const BASE_CARD: &str = r#"{
  "name": "Travel agent", "description": "Books trips.", "version": "1.0.0",
  "supportedInterfaces": [{"url": "https://a.example/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
  "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"], "skills": []
}"#;

const OF_ANOTHER_PACKAGE: &str = r#"{"format": 1, "package": "another", "dir": "/another", "lib": true,
    "binaries": [], "card": null, "no_prelude": false, "methods": []}"#;

/// A build script that makes a card.
pub(crate) const BUILD_RS: &str = "fn main() { idempotent_build::agent_card(\"base.json\").emit(); }\n";

pub(crate) struct Workspace {
    name: &'static str,
    dir: PathBuf,
}

/// What a run of Cargo has printed.
pub(crate) struct Run {
    pub(crate) success: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Workspace {
    /// An empty workspace, named after its test.
    pub(crate) fn new(name: &'static str) -> Self {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("card").join(name);
        let _ = fs::remove_dir_all(&dir);
        let workspace = Self { name, dir };
        workspace.file(
            "Cargo.toml",
            "[workspace]\nresolver = \"3\"\nmembers = [\"agent\"]\n\n[profile.dev]\ndebug = false\n",
        );
        // The versions are those of this workspace: nothing is looked up anywhere.
        let lock = fs::read_to_string(root().join("Cargo.lock")).expect("the workspace's lock file");
        workspace.file("Cargo.lock", &lock);
        workspace.file("of-another-package.json", OF_ANOTHER_PACKAGE);
        workspace
    }

    /// A package in the folder `agent`, named after the test, that makes a card, with these sources.
    ///
    /// The name matters: the tests share a target folder, where packages of one name and folder are one.
    pub(crate) fn agent(self, files: &[(&str, &str)]) -> Self {
        self.package("agent", self.name, "", "idempotent", "")
            .file("agent/build.rs", BUILD_RS)
            .file("agent/base.json", BASE_CARD);
        for (path, text) in files {
            self.file(&format!("agent/{path}"), text);
        }
        self
    }

    /// A manifest: its folder and name, a line for [package], the facade's name there, further dependencies.
    pub(crate) fn package(&self, folder: &str, name: &str, package: &str, facade: &str, dependencies: &str) -> &Self {
        let (root, build) = (root(), root().join("idempotent-build"));
        let manifest = format!(
            "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n{package}\n\n\
             [features]\nextra = []\n\n\
             [dependencies]\n{facade} = {{ package = \"idempotent\", path = {root:?}, default-features = false }}\n{dependencies}\n\n\
             [build-dependencies]\nidempotent-build = {{ path = {build:?} }}\n"
        );
        self.file(&format!("{folder}/Cargo.toml"), &manifest)
    }

    pub(crate) fn file(&self, path: &str, text: &str) -> &Self {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, text).expect("a file");
        self
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.dir.join(path)
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).expect("a file")
    }

    pub(crate) fn cargo(&self, arguments: &[&str]) -> Run {
        let output = Command::new(env!("CARGO"))
            .args(arguments)
            .current_dir(&self.dir)
            .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("card-target"))
            .env("CARGO_NET_OFFLINE", "true")
            .env("CARGO_TERM_COLOR", "never")
            .env_remove("RUSTFLAGS")
            // A test that runs in a package with a card sees this variable, and so does what it builds.
            .env("IDEMPOTENT_CARD", self.path("of-another-package.json"))
            .output()
            .expect("cargo runs");
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        Run { success: output.status.success(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    /// What Cargo refuses, in its words.
    pub(crate) fn refused(&self, arguments: &[&str]) -> String {
        let run = self.cargo(arguments);
        assert!(!run.success, "compiled:\n{}", run.stderr);
        run.stderr
    }

    /// What a program prints that compiles and runs.
    pub(crate) fn accepted(&self, arguments: &[&str]) -> Run {
        let run = self.cargo(arguments);
        assert!(run.success, "{arguments:?} failed:\n{}{}", run.stdout, run.stderr);
        run
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

//! Cards of small packages, made as a build script makes them but without Cargo.

use std::collections::BTreeMap;
use std::fs;

use super::*;

const BASE: &str = r#"{"name": "A", "description": "B", "version": "1", "defaultInputModes": [],
    "defaultOutputModes": [], "skills": [], "url": "https://a/", "protocolVersion": "0.3.0"}"#;
const SEND: &str = "#[idempotent(method = \"message/send\")] async fn send() {}\n";
const STREAM: &str = "#[idempotent(method = \"SendStreamingMessage\")] async fn stream() {}\n";

struct Small {
    dir: tempfile::TempDir,
    package: Package,
}

fn package(files: &[(&str, &str)]) -> Small {
    let dir = tempfile::tempdir().expect("a folder");
    for (name, text) in [("base.json", BASE)].iter().chain(files) {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    let variables = BTreeMap::from([("CARGO_PKG_NAME".to_owned(), "travel-agent".to_owned())]);
    let package = Package { dir: dir.path().to_owned(), out_dir: dir.path().join("out"), variables };
    Small { dir, package }
}

impl Small {
    fn run(&self, card: AgentCard) -> Result<Vec<String>, Vec<String>> {
        card.0.run(&self.package)
    }

    fn listing(&self) -> Listing {
        Listing::read(&self.dir.path().join("out/idempotent/listing.json")).expect("a listing")
    }

    fn card(&self) -> String {
        fs::read_to_string(self.dir.path().join("out/idempotent/agent-card.json")).expect("a card")
    }
}

fn methods(listing: &Listing) -> Vec<(&str, &str)> {
    listing.methods.iter().map(|one| (one.method.as_str(), one.place.as_str())).collect()
}

#[test]
fn library_and_binaries_make_one_card() {
    let small = package(&[
        ("src/lib.rs", "mod handlers;"),
        ("src/handlers.rs", SEND),
        ("src/main.rs", STREAM),
        ("src/bin/other.rs", STREAM),
        ("src/bin/folder/main.rs", "fn main() {}"),
        ("src/unreached.rs", STREAM),
    ]);
    let directives = small.run(agent_card("base.json")).expect("a card");
    assert_eq!(
        directives,
        [
            "rerun-if-changed=src/lib.rs".to_owned(),
            "rerun-if-changed=src/handlers.rs".to_owned(),
            "rerun-if-changed=src/main.rs".to_owned(),
            "rerun-if-changed=src/bin/folder/main.rs".to_owned(),
            "rerun-if-changed=src/bin/other.rs".to_owned(),
            "rerun-if-changed=src/bin".to_owned(),
            "rerun-if-changed=base.json".to_owned(),
            format!("rustc-env=IDEMPOTENT_CARD={}", small.dir.path().join("out/idempotent/listing.json").display()),
        ]
    );
    let listing = small.listing();
    assert_eq!(
        methods(&listing),
        [
            ("message/send", "fn send in src/handlers.rs"),
            ("message/stream", "fn stream in src/bin/other.rs"),
            ("message/stream", "fn stream in src/main.rs"),
        ]
    );
    assert!(listing.lib);
    assert_eq!(listing.binaries, ["travel-agent", "folder", "other"]);
    assert!(small.card().contains("\"required\": true"));
}

#[test]
fn named_crates_are_the_only_ones_read() {
    let small = package(&[("src/lib.rs", SEND), ("agent/main.rs", STREAM)]);
    small.run(agent_card("base.json").example("agent", "agent/main.rs")).expect("a card");
    assert_eq!(methods(&small.listing()), [("message/stream", "fn stream in agent/main.rs")]);
    assert!(!small.listing().lib);

    let wrong = small.run(agent_card("base.json").bin("x", "x.rs")).expect_err("no such root");
    assert_eq!(wrong, ["the crate root x.rs is not there"]);
}

#[test]
fn a_method_with_two_handlers_is_refused_under_either_name() {
    let small = package(&[
        ("src/lib.rs", "mod a;"),
        ("src/a.rs", SEND),
        ("src/main.rs", "#[idempotent(method = \"SendMessage\")] async fn again() {}"),
    ]);
    let wrong = small.run(agent_card("base.json")).expect_err("twice");
    assert_eq!(
        wrong,
        [
            "`message/send` has 2 handlers: fn send in src/a.rs; fn again in src/main.rs; one method has one handler, remove the others"
        ]
    );
    let small = package(&[("src/lib.rs", SEND)]);
    let wrong = small.run(agent_card("base.json").declare("SendMessage")).expect_err("twice");
    assert!(wrong[0].contains("declared in build.rs"), "{wrong:?}");
}

#[test]
fn all_mistakes_of_card_and_sources_are_told_with_their_file() {
    let small = package(&[("bad.json", "{}")]);
    let wrong = small.run(agent_card("bad.json").cfg("not(x)")).expect_err("mistakes");
    assert!(wrong[0].starts_with("bad.json: `/name`: is missing"), "{wrong:?}");
    assert!(wrong.iter().any(|line| line.contains("not a cfg")), "{wrong:?}");
    assert!(wrong.iter().any(|line| line.contains("neither src/lib.rs")), "{wrong:?}");

    let wrong = small.run(agent_card("none.json")).expect_err("no base card");
    assert!(wrong[0].starts_with("cannot read the base card none.json"), "{wrong:?}");
}

#[test]
fn a_file_that_does_not_parse_is_a_warning() {
    let small = package(&[("src/lib.rs", "mod broken;"), ("src/broken.rs", "fn {"), ("src/main.rs", SEND)]);
    let directives = small.run(agent_card("base.json")).expect("a card");
    assert!(directives.iter().any(|line| line.starts_with("warning=src/broken.rs does not parse")), "{directives:?}");
    assert!(directives.contains(&"rerun-if-changed=src/broken.rs".to_owned()));
}

#[test]
fn a_wrong_annotation_is_left_to_the_macro() {
    let small = package(&[(
        "src/lib.rs",
        "#[idempotent(method = \"tasks/get\")] async fn get() {} #[idempotent(nonsense)] fn x() {}",
    )]);
    small.run(agent_card("base.json")).expect("a card");
    assert!(small.listing().methods.is_empty());
}

#[test]
fn other_extensions_methods_are_listed_under_their_uri() {
    let small = package(&[(
        "src/lib.rs",
        r#"#[idempotent(method = "jobs/start", extension = "https://e.example/jobs/v1", key = "/id")] async fn start() {}"#,
    )]);
    small.run(agent_card("base.json").declare_of("https://e.example/jobs/v1", "jobs/abort")).expect("a card");
    let card: serde_json::Value = serde_json::from_str(&small.card()).expect("JSON");
    assert_eq!(card["capabilities"]["extensions"][1]["uri"], "https://e.example/jobs/v1");
    assert_eq!(
        card["capabilities"]["extensions"][1]["params"]["idempotency"]["methods"],
        serde_json::json!(["jobs/abort", "jobs/start"])
    );
}

#[test]
fn what_build_rs_declares_follows_the_rules_of_the_annotation() {
    let small = package(&[("src/lib.rs", "")]);
    let card = agent_card("base.json").declare("tasks/get").declare("jobs/start").declare_of("jobs", "jobs/stop");
    let wrong = small.run(card).expect_err("three mistakes");
    assert_eq!(wrong.len(), 3, "{wrong:?}");
    assert!(wrong.iter().all(|line| line.starts_with("declared in build.rs: ")), "{wrong:?}");
}

#[test]
fn the_base_card_is_not_written_over() {
    let small = package(&[("src/lib.rs", SEND)]);
    let wrong = small.run(agent_card("base.json").also_write("base.json")).expect_err("its own base");
    assert_eq!(wrong, ["base.json: the card cannot be written over its own base card"]);
}

#[test]
fn a_module_without_a_file_is_looked_for_at_every_build() {
    let small = package(&[("src/lib.rs", "mod later;")]);
    let directives = small.run(agent_card("base.json")).expect("a card");
    assert!(directives.contains(&"rerun-if-changed=src/later.rs".to_owned()), "{directives:?}");
}

#[test]
fn an_unchanged_card_keeps_its_time_stamp() {
    let small = package(&[("src/lib.rs", SEND)]);
    let card = agent_card("base.json").also_write("cards/agent-card.json");
    small.run(card.clone()).expect("a card");
    let path = small.dir.path().join("cards/agent-card.json");
    assert_eq!(fs::read_to_string(&path).expect("written"), small.card());
    let old = std::time::SystemTime::UNIX_EPOCH;
    fs::File::options().write(true).open(&path).and_then(|file| file.set_modified(old)).expect("a time");
    small.run(card.clone()).expect("a card");
    assert_eq!(fs::metadata(&path).and_then(|data| data.modified()).expect("a time"), old);
    small.run(card.required(false)).expect("a card");
    assert!(fs::read_to_string(&path).expect("written").contains("\"required\": false"));
}

#[test]
fn fragments_of_dependencies_are_taken_up() {
    let mut skills = package(&[("src/lib.rs", SEND), ("src/main.rs", STREAM)]);
    let wrong = emit::run_fragment(&fragment().0, &skills.package).expect_err("no links");
    assert!(wrong[0].contains("add `links = "), "{wrong:?}");
    skills.package.variables.insert("CARGO_MANIFEST_LINKS".to_owned(), "skills".to_owned());
    let directives = emit::run_fragment(&fragment().0, &skills.package).expect("a fragment");
    let path = directives
        .iter()
        .find_map(|line| line.strip_prefix("metadata=IDEMPOTENT_FRAGMENT="))
        .expect("told to dependents");

    let mut agent = package(&[("src/main.rs", STREAM)]);
    agent.package.variables.insert("DEP_SKILLS_IDEMPOTENT_FRAGMENT".to_owned(), path.to_owned());
    let directives = agent.run(agent_card("base.json")).expect("a card");
    assert!(directives.contains(&format!("rerun-if-changed={path}")));
    let listing = agent.listing();
    assert_eq!(
        methods(&listing),
        [("message/send", "fn send in src/lib.rs of `travel-agent`"), ("message/stream", "fn stream in src/main.rs"),]
    );
    assert_eq!(listing.methods[0].origin, Origin::Fragment("travel-agent".to_owned()));

    fs::write(agent.dir.path().join("src/main.rs"), SEND).expect("a file");
    let wrong = agent.run(agent_card("base.json")).expect_err("two packages answer one method");
    assert!(wrong[0].contains("of `travel-agent`"), "{wrong:?}");
}

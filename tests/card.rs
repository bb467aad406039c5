//! The card of packages that Cargo really builds: made, kept up to date, and proven to agree with the code both ways.

#[path = "card/fixture.rs"]
mod fixture;

use fixture::{BASE_CARD, BUILD_RS, Workspace};

const SEND: &str =
    "#[idempotent::idempotent(method = \"message/send\")]\npub async fn send() -> &'static str { \"\" }\n";
const STREAM: &str =
    "#[idempotent::idempotent(method = \"SendStreamingMessage\")]\npub async fn stream() -> &'static str { \"\" }\n";
const PRINT: &str = r#"
fn main() {
    let card = idempotent::agent_card!();
    println!("{}", card.build_json());
    for method in card.methods() {
        println!("method {}", method.method);
    }
}
"#;

fn methods(stdout: &str) -> Vec<&str> {
    stdout.lines().filter_map(|line| line.strip_prefix("method ")).collect()
}

#[test]
fn the_card_follows_the_annotations_and_nothing_else() {
    let main = format!("mod handlers;\n{PRINT}");
    let agent =
        Workspace::new("follows").agent(&[("src/main.rs", &main), ("src/handlers.rs", SEND), ("notes.md", "a")]);
    let first = agent.accepted(&["run"]).stdout;
    assert_eq!(methods(&first), ["message/send"]);
    let json: serde_json::Value =
        serde_json::from_str(&first[..first.find("method ").expect("a method")]).expect("JSON");
    assert_eq!(
        json["capabilities"]["extensions"][0]["params"],
        serde_json::json!({"ttl_seconds": 86400, "canonicalization": "jcs-rfc8785", "hash_algorithm": "sha-256", "max_cache_entries": 100_000})
    );

    // An edit that concerns no handler builds nothing.
    agent.file("agent/notes.md", "b").file("agent/src/unreached.rs", STREAM).file("agent/base.json.orig", "{}");
    let unrelated = agent.accepted(&["build", "-v"]).stderr;
    assert!(unrelated.contains("Fresh follows"), "{unrelated}");
    assert!(!unrelated.contains("Compiling") && !unrelated.contains("Running"), "{unrelated}");

    // An edited annotation, one more of them, an edited base card: each is in the next card.
    agent.file("agent/src/handlers.rs", &SEND.replace("message/send", "message/stream"));
    assert_eq!(methods(&agent.accepted(&["run"]).stdout), ["message/stream"]);
    agent.file("agent/src/handlers.rs", &format!("{SEND}{STREAM}"));
    assert_eq!(methods(&agent.accepted(&["run"]).stdout), ["message/send", "message/stream"]);
    agent.file("agent/base.json", &BASE_CARD.replace("Travel", "Time travel"));
    assert!(agent.accepted(&["run"]).stdout.contains("\"name\": \"Time travel agent\""));
}

#[test]
fn modules_are_followed_whatever_their_privacy_and_place() {
    let main = format!(
        "mod private {{ mod deep {{ {SEND} }} }}\n#[path = \"elsewhere/x.rs\"] mod x;\n#[cfg(feature = \"extra\")] mod extra;\n{PRINT}"
    );
    let extra = "#[idempotent::idempotent(method = \"jobs/start\", extension = \"https://e.example/jobs/v1\", key = \"/id\")]\nasync fn start() -> &'static str { \"\" }\n";
    let agent = Workspace::new("modules").agent(&[
        ("src/main.rs", &main),
        ("src/elsewhere/x.rs", STREAM),
        ("src/extra.rs", &format!("{extra}#[cfg(windows)]\n{}", SEND.replace("send()", "second()"))),
    ]);
    assert_eq!(methods(&agent.accepted(&["run"]).stdout), ["message/send", "message/stream"]);
    let with_extra = agent.accepted(&["run", "--features", "extra"]).stdout;
    assert_eq!(methods(&with_extra), ["jobs/start", "message/send", "message/stream"]);
    assert!(with_extra.contains("https://e.example/jobs/v1"));
}

#[test]
fn a_card_entry_without_a_handler_does_not_compile() {
    let main = format!("#[cfg(not(told))]\n{SEND}\n{PRINT}");
    let agent = Workspace::new("missing").agent(&[("src/main.rs", &main)]);
    // The helper does not know this cfg, which only rustc is told.
    let build = BUILD_RS.replace("fn main() {", "fn main() { println!(\"cargo::rustc-cfg=told\");");
    agent.file("agent/build.rs", &build);
    let told = agent.refused(&["check"]);
    assert!(
        told.contains("the AgentCard lists `message/send`, but no handler of it is part of this program"),
        "{told}"
    );
    assert!(told.contains("build.rs found: fn send in src/main.rs"), "{told}");
    assert!(!told.contains("AnnotatedBy"), "rustc's own words are in the way:\n{told}");

    agent.file("agent/build.rs", &build.replace(".emit()", ".cfg(\"told\").emit()"));
    agent.accepted(&["check"]);
}

#[test]
fn a_handler_that_the_card_lacks_does_not_compile() {
    let main = format!(
        "macro_rules! handler {{ ($method:literal) => {{ #[idempotent::idempotent(method = $method)] pub async fn made() -> &'static str {{ \"\" }} }} }}\n\
         handler!(\"SendMessage\");\n{PRINT}"
    );
    let agent = Workspace::new("unlisted").agent(&[("src/main.rs", &main)]);
    let told = agent.refused(&["check"]);
    assert!(told.contains("the AgentCard lacks `message/send`: build.rs did not find this handler"), "{told}");
    assert!(told.contains("`agent_card(…).declare(\"message/send\")`"), "{told}");

    agent.file("agent/build.rs", &BUILD_RS.replace(".emit()", ".declare(\"message/send\").emit()"));
    agent.accepted(&["check"]);
}

#[test]
fn a_method_with_two_handlers_does_not_compile() {
    let main = format!("mod a {{ {SEND} }}\nmod b;\n{PRINT}");
    let again = SEND.replace("message/send", "SendMessage").replace("send()", "again()");
    let agent = Workspace::new("twice").agent(&[("src/main.rs", &main), ("src/b.rs", &again)]);
    let told = agent.refused(&["check"]);
    assert!(told.contains("`message/send` has 2 handlers: fn again in src/b.rs; fn send in src/main.rs"), "{told}");

    // One of them made by a macro: what the build script cannot see, the compiler does.
    let made = format!("macro_rules! make {{ () => {{ {again} }} }}\nmake!();\n");
    agent.file("agent/src/b.rs", &made);
    let told = agent.refused(&["check"]);
    assert!(told.contains("src/b.rs") && told.contains("src/main.rs"), "{told}");
}

#[test]
fn a_handler_that_is_written_next_is_in_the_next_card() {
    let agent = Workspace::new("next").agent(&[("src/main.rs", &format!("mod later;{PRINT}"))]);
    let told = agent.refused(&["build"]);
    assert!(told.contains("file not found for module `later`"), "{told}");
    agent.file("agent/src/later.rs", SEND);
    assert_eq!(methods(&agent.accepted(&["run"]).stdout), ["message/send"]);
    // A file becomes a folder.
    std::fs::remove_file(agent.path("agent/src/later.rs")).expect("a file");
    agent.file("agent/src/later/mod.rs", "mod inner;").file("agent/src/later/inner.rs", STREAM);
    assert_eq!(methods(&agent.accepted(&["run"]).stdout), ["message/stream"]);
}

#[test]
fn generated_code_bears_the_strictest_lints_and_no_prelude() {
    let strict = "#![no_implicit_prelude]\n#![deny(warnings, missing_docs, unreachable_pub, unused, clippy::all, clippy::pedantic, clippy::nursery)]\n#![allow(clippy::unused_async, unexpected_cfgs)]\n#![forbid(unsafe_code)]\n";
    let lib = format!(
        "//! Strict.\n{strict}mod core {{}}\n/// Handlers.\npub mod handlers {{ {} }}\n/// The card.\npub const CARD: ::idempotent::Card = ::idempotent::agent_card!();\n",
        SEND.replace("#[idempotent::", "#[::idempotent::")
            .replace("pub async", "/// Sends.\npub async")
            .replace("{ \"\" }", "{ CARD }\nconst CARD: &str = \"\";")
    );
    let agent = Workspace::new("strict").agent(&[("src/lib.rs", &lib)]);
    agent.accepted(&["clippy"]);
    // There, rustc knows no `diagnostic` attributes: the words are plainer, and still words.
    agent.file("agent/src/lib.rs", &lib.replace("pub mod handlers", "#[cfg(told)] pub mod handlers"));
    agent.file("agent/build.rs", &BUILD_RS.replace(".emit()", ".cfg(\"told\").emit()"));
    let told = agent.refused(&["check"]);
    assert!(told.contains("the AgentCard lists a method that no `#[idempotent]` handler"), "{told}");
}

#[test]
fn mistakes_in_the_base_card_are_told_with_their_file() {
    let agent = Workspace::new("base").agent(&[("src/main.rs", PRINT), ("base.json", "{\"name\": 1}")]);
    let told = agent.refused(&["check"]);
    assert!(told.contains("error: base@0.1.0: base.json: `/name`: is a number; it must be a string"), "{told}");
    assert!(told.contains("base.json: `/skills`: is missing; add \"skills\""), "{told}");
}

#[test]
fn a_file_that_does_not_parse_is_reported_by_rustc() {
    let main = format!("mod broken;\n{SEND}{PRINT}");
    let agent = Workspace::new("broken").agent(&[("src/main.rs", &main), ("src/broken.rs", "pub fn {")]);
    let told = agent.refused(&["check"]);
    assert!(told.contains("src/broken.rs does not parse; the AgentCard leaves its handlers out"), "{told}");
    assert!(told.contains("error: this file contains an unclosed delimiter"), "{told}");
}

#[test]
fn without_a_build_script_handlers_compile_and_a_card_says_what_is_missing() {
    let agent = Workspace::new("no-card");
    agent.package("agent", "no-card", "", "idempotent", "").file("agent/src/main.rs", &format!("{SEND}fn main() {{}}"));
    agent.accepted(&["check"]);
    agent.file("agent/src/main.rs", PRINT);
    let told = agent.refused(&["check"]);
    assert!(told.contains("this package makes no AgentCard: give it a build.rs"), "{told}");
}

#[test]
fn a_library_in_another_package_adds_its_methods() {
    let main = format!("{SEND}{PRINT}").replace("fn main", "use skills as _; fn main");
    let agent = Workspace::new("several").agent(&[("src/main.rs", &main)]);
    agent.package("agent", "several", "", "idempotent", "skills = { path = \"../skills\" }");
    agent
        .package("skills", "skills", "links = \"skills\"", "idempotent", "")
        .file("skills/build.rs", "fn main() { idempotent_build::fragment().emit(); }")
        .file("skills/src/lib.rs", STREAM);
    assert_eq!(methods(&agent.accepted(&["run"]).stdout), ["message/send", "message/stream"]);

    // An annotation edited there is in the card here.
    agent.file("skills/src/lib.rs", "pub fn stream() {}");
    assert_eq!(methods(&agent.accepted(&["run"]).stdout), ["message/send"]);
    agent.file("skills/src/lib.rs", &SEND.replace("send()", "stream()"));
    let told = agent.refused(&["check"]);
    assert!(told.contains("`message/send` has 2 handlers"), "{told}");
    assert!(told.contains("fn stream in src/lib.rs of `skills`"), "{told}");

    // A library that the program never uses is not part of it.
    agent.file("skills/src/lib.rs", STREAM).file("agent/src/main.rs", &format!("{SEND}{PRINT}"));
    let told = agent.refused(&["check"]);
    assert!(
        told.contains("the AgentCard lists `message/stream`, but no handler of it is part of this program"),
        "{told}"
    );

    agent.package("skills", "skills", "", "idempotent", "");
    let told = agent.refused(&["check"]);
    assert!(told.contains("add `links = "), "{told}");

    // Without a fragment, two handlers of one method are still one too many.
    std::fs::remove_file(agent.path("skills/build.rs")).expect("a file");
    agent.file("skills/src/lib.rs", SEND).file("agent/src/main.rs", &main);
    let told = agent.refused(&["check"]);
    assert!(told.contains("found in the `skills` crate") && told.contains("agent/src/main.rs"), "{told}");
    assert!(told.contains("`by_exactly_one_handler`"), "{told}");
}

#[test]
fn a_renamed_dependency_makes_the_same_card() {
    let handler =
        "#[gate::idempotent(method = \"message/send\", crate = gate)]\nasync fn send() -> &'static str { \"\" }\n";
    let agent = Workspace::new("renamed")
        .agent(&[("src/main.rs", &format!("{handler}{}", PRINT.replace("idempotent::", "gate::")))]);
    agent.package("agent", "renamed", "", "gate", "");
    assert_eq!(methods(&agent.accepted(&["run"]).stdout), ["message/send"]);
}

#[test]
fn check_clippy_doc_and_test_agree_with_build() {
    let lib = format!(
        "//! ```\n//! #[idempotent::idempotent(method = \"message/send\")]\n//! async fn of_the_docs() -> &'static str {{ \"\" }}\n//! ```\n\
         {SEND}\npub const CARD: idempotent::Card = idempotent::agent_card!();\n\
         #[cfg(test)] mod tests {{ {} #[test] fn one() {{ assert_eq!(super::CARD.methods().len(), 2); }} }}\n",
        STREAM.replace("stream()", "of_tests()")
    );
    let test = format!("{SEND}\n#[test] fn card() {{ assert_eq!(commands::CARD, idempotent::agent_card!()); }}\n");
    let agent = Workspace::new("commands").agent(&[
        ("src/lib.rs", &lib),
        ("src/main.rs", &format!("{STREAM}fn main() {{ let _ = (commands::CARD, idempotent::agent_card!()); }}")),
        ("tests/card.rs", &test),
    ]);
    for command in [&["check", "--all-targets"][..], &["clippy", "--", "-Dwarnings"], &["doc", "--no-deps"], &["test"]]
    {
        agent.accepted(command);
    }
}

#[test]
fn the_card_is_also_written_where_it_is_wanted() {
    let agent = Workspace::new("also").agent(&[("src/main.rs", &format!("{SEND}{PRINT}"))]);
    agent.file(
        "agent/build.rs",
        &BUILD_RS.replace(".emit()", ".required(false).also_write(\"card/agent-card.json\").emit()"),
    );
    agent.accepted(&["check"]);
    let written = agent.read("agent/card/agent-card.json");
    assert!(written.contains("\"required\": false"), "{written}");
}

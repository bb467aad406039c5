//! The card that the running example agent serves: the build's card with the process's own values.

mod support;

use std::process::Command;

use reqwest::{Method, StatusCode, header};
use serde_json::{Value, json};

use support::{Agent, URI};

const PATH: &str = "/.well-known/agent-card.json";

fn declaration(card: &Value) -> &Value {
    let extensions = card["capabilities"]["extensions"].as_array().expect("a list");
    let own: Vec<_> = extensions.iter().filter(|one| one["uri"] == URI).collect();
    assert_eq!(own.len(), 1, "{extensions:?}");
    own[0]
}

/// What `cargo run --example agent_card` prints: the file for a registry.
fn printed() -> String {
    let output = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--example", "agent_card"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[tokio::test]
async fn the_served_card_is_the_printed_one_with_run_time_params() {
    let printed = printed();
    let mut expected: Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(
        declaration(&expected)["params"],
        json!({"ttl_seconds": 86_400, "canonicalization": "jcs-rfc8785", "hash_algorithm": "sha-256", "max_cache_entries": 100_000})
    );
    assert_eq!(declaration(&expected)["required"], true);

    let agent = Agent::start(&[]);
    assert_eq!(agent.get(PATH).await.text(), printed, "with the spec's values it is the same, byte for byte");

    let agent = Agent::start(&["--ttl-seconds", "60", "--max-entries", "7", "--required", "false"]);
    let served: Value = agent.get(PATH).await.json();
    let extensions = expected["capabilities"]["extensions"].as_array_mut().expect("a list");
    let own = extensions.iter_mut().find(|one| one["uri"] == URI).expect("the declaration");
    own["params"]["ttl_seconds"] = json!(60);
    own["params"]["max_cache_entries"] = json!(7);
    own["required"] = json!(false);
    assert_eq!(served, expected);
}

#[tokio::test]
async fn both_dialects_find_their_endpoint_in_it() {
    let card: Value = Agent::start(&[]).get(PATH).await.json();
    assert!(card["url"].is_string() && card["protocolVersion"] == "0.3.0" && card["preferredTransport"] == "JSONRPC");
    let interfaces = card["supportedInterfaces"].as_array().expect("a list");
    assert!(interfaces.iter().any(|one| one["protocolBinding"] == "JSONRPC" && one["protocolVersion"] == "1.0"));
    serde_json::from_value::<a2a::AgentCard>(card).expect("a card as the official Rust SDK reads it");
}

#[tokio::test]
async fn a_client_that_has_the_card_need_not_load_it_again() {
    let agent = Agent::start(&[]);
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let ask = |method: Method, tag: Option<&str>| {
        let mut request = client.request(method, format!("{}{PATH}", agent.url));
        if let Some(tag) = tag {
            request = request.header(header::IF_NONE_MATCH, tag);
        }
        async { request.send().await.expect("an answer") }
    };

    let card = ask(Method::GET, None).await;
    assert_eq!(card.status(), StatusCode::OK);
    assert_eq!(card.headers()[header::CONTENT_TYPE], "application/json");
    let tag = card.headers()[header::ETAG].to_str().expect("text").to_owned();
    assert!(tag.starts_with('"'), "a strong tag: {tag}");

    let again = ask(Method::GET, Some(&tag)).await;
    assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    assert!(again.bytes().await.expect("no body").is_empty());
    assert_eq!(ask(Method::GET, Some("\"another\"")).await.status(), StatusCode::OK);

    let head = ask(Method::HEAD, None).await;
    assert_eq!((head.status(), head.headers()[header::ETAG].to_str().expect("text")), (StatusCode::OK, tag.as_str()));
}

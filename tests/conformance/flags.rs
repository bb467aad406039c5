//! The agent's command line: what it refuses, and how it says so.

use crate::support::{Agent, launch::run_to_its_end};

#[test]
fn a_bad_value_is_a_message_and_exit_code_2() {
    let bad: &[&[&str]] = &[
        &["--ttl-seconds", "0"],
        &["--ttl-seconds", "-1"],
        &["--ttl-seconds", "1.5"],
        &["--ttl-seconds", "1h"],
        &["--ttl-seconds", ""],
        &["--ttl-seconds", "99999999999999999999"],
        &["--max-entries", "0"],
        &["--max-entries", "many"],
        &["--lease-ms", "0"],
        &["--lease-ms", "soon"],
        &["--wait-ms", "-1"],
        &["--required", "maybe"],
        &["--replay-id", "mine"],
        &["--max-request-bytes", "1k"],
        &["--max-response-bytes", "-1"],
        &["--listen", "nowhere"],
        &["--listen", "127.0.0.1"],
        &["--listen", ":3000"],
        &["--listen", "127.0.0.1:70000"],
        &["--no-such-flag"],
        &["surplus"],
        &["--ttl-seconds"],
    ];
    for flags in bad {
        // Twice the same flag would be a mistake of its own.
        let listen: &[&str] = if flags[0] == "--listen" { &[] } else { &["--listen", "127.0.0.1:0"] };
        let ended = run_to_its_end(&[listen, *flags].concat(), &[]);
        assert_eq!(ended.code, Some(2), "{flags:?}: {ended:?}");
        let named = flags[0].trim_start_matches("--").replace('-', "_");
        let message = ended.stderr.replace('-', "_");
        let value = flags.last().expect("a flag").replace('-', "_");
        assert!(message.contains(&named) || message.contains(&value), "{flags:?}: {ended:?}");
        assert_eq!(ended.stdout, "");
    }
}

#[test]
fn a_bad_variable_is_a_message_and_exit_code_2() {
    for (variable, value) in [
        ("AIWG_IDEMPOTENCY_TTL", "0"),
        ("AIWG_IDEMPOTENCY_TTL", "24h"),
        ("AIWG_IDEMPOTENCY_TTL", "-1"),
        ("AIWG_IDEMPOTENCY_MAX_ENTRIES", "0"),
        ("AIWG_IDEMPOTENCY_MAX_ENTRIES", "1e5"),
    ] {
        let ended = run_to_its_end(&["--listen", "127.0.0.1:0"], &[(variable, value)]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(variable) && ended.stderr.contains(value), "{ended:?}");
        assert_eq!(ended.stdout, "");
    }
}

#[test]
fn a_port_in_use_is_a_message_and_exit_code_1() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let ended = run_to_its_end(&["--listen", &address], &[]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains(&address), "{ended:?}");
    assert_eq!(ended.stdout, "");
}

#[test]
fn a_store_that_cannot_be_opened_is_a_message_and_exit_code_1() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let no_database = folder.path().join("text.db");
    std::fs::write(&no_database, "this is no database at all".repeat(100)).expect("a file");
    let missing = folder.path().join("missing/agent.db");
    for path in [folder.path(), &missing, &no_database] {
        let path = path.to_str().expect("text");
        for url in [path.to_owned(), format!("sqlite:{path}")] {
            let ended = run_to_its_end(&["--listen", "127.0.0.1:0", "--database-url", &url], &[]);
            assert_eq!(ended.code, Some(1), "{ended:?}");
            assert!(ended.stderr.contains(path), "{ended:?}");
            assert_eq!(ended.stdout, "");
        }
    }
    assert_eq!(std::fs::read(&no_database).expect("a file").len(), 2600, "it is left alone");
}

#[test]
fn a_database_that_is_not_supported_is_a_message_and_exit_code_1() {
    for scheme in ["postgres", "mysql"] {
        let url = format!("{scheme}://user:secret@127.0.0.1/agent");
        let ended = run_to_its_end(&["--listen", "127.0.0.1:0", "--database-url", &url], &[]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{ended:?}");
        assert!(ended.stderr.contains("only SQLite") && !ended.stderr.contains("secret"), "{ended:?}");
    }
}

#[tokio::test]
async fn a_database_of_a_newer_program_is_a_message_and_exit_code_1() {
    let mut agent = Agent::start(&[]);
    agent.kill();
    agent.execute("INSERT INTO idempotency_schema (version) VALUES (999)");
    let path = agent.database().to_str().expect("text");
    let ended = run_to_its_end(&["--listen", "127.0.0.1:0", "--database-url", path], &[]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("999"), "{ended:?}");
}

#[tokio::test]
async fn a_database_may_be_named_by_path_or_by_url() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("it's an agent.db");
    let request = crate::send(&crate::fresh_id(), "hello", serde_json::json!({}));
    let mut agent = Agent::start_on(&path, &[]);
    let first = agent.call(&request).await;
    assert_eq!(agent.terminate(), Some(0));
    let mut url = std::ffi::OsString::from("sqlite:");
    url.push(&path);
    let agent = Agent::start_on(url.as_ref(), &[]);
    crate::assert_replays(&agent.call(&request).await, &first);
}

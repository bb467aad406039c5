//! What a response's headers say, and that a replay's say the same.

use serde_json::json;

use crate::{
    assert_error, assert_executed, assert_replays,
    support::{Agent, URI, fresh_id, raw::RawAnswer, send},
};

/// What each response has of its own.
const OWN: [&str; 2] = ["date", "idempotent-replayed"];

fn activation() -> Vec<u8> {
    format!("A2A-Extensions: {URI}").into_bytes()
}

#[track_caller]
fn assert_raw_replay(replay: &RawAnswer, first: &RawAnswer) {
    assert_eq!(first.all("idempotent-replayed"), Vec::<&[u8]>::new());
    assert_eq!(replay.all("idempotent-replayed"), [b"true"]);
    assert_eq!(replay.clone().without(&OWN), first.clone().without(&OWN));
    for answer in [first, replay] {
        assert_eq!(answer.all("date").len(), 1);
        assert_eq!(answer.all("content-length"), [answer.body.len().to_string().as_bytes()]);
    }
}

#[tokio::test]
async fn headers_are_replayed_in_order_with_repeats_and_every_byte() {
    let agent = Agent::start(&[]);
    let mut running = agent;
    let headers = json!([
        ["x-z", "1"],
        ["Set-Cookie", "a=1; Path=/"],
        ["x-bytes", "caf\u{e9} \u{ff}\u{80}\""],
        ["set-cookie", "b=2"],
        ["x-empty", ""],
        ["x-a", "2"],
        ["x-utf8", "\u{c3}\u{a9}"],
        ["link", "</a>; rel=\"x\", </b>"],
        ["x-a", "2"],
        ["vary", "accept"],
        ["etag", "\"e\""],
        ["www-authenticate", "Bearer"],
        ["cache-control", "no-store"],
    ]);
    let request = send(&fresh_id(), "hello", json!({"headers": headers})).to_string();
    let first = running.post_raw(&[&activation()], &request).await;
    assert!(first.status_line.ends_with(" 200 OK"), "{}", first.status_line);
    assert_eq!(first.all("set-cookie"), [b"a=1; Path=/".as_slice(), b"b=2"]);
    assert_eq!(first.all("x-bytes"), [b"caf\xe9 \xff\x80\"".as_slice()]);
    assert_eq!(first.all("x-utf8"), ["é".as_bytes()]);
    assert_eq!(first.all("x-empty"), [b""]);
    assert_eq!(first.all("x-a"), [b"2", b"2"]);
    let names = ["x-z", "set-cookie", "x-bytes", "x-empty", "x-a", "x-utf8", "link", "vary", "etag"];
    let places = names.map(|name| first.headers.iter().position(|(other, _)| other == name).expect(name));
    assert!(places.is_sorted(), "{:?}", first.headers);

    assert_raw_replay(&running.post_raw(&[&activation()], &request).await, &first);
    running.restart();
    assert_raw_replay(&running.post_raw(&[&activation()], &request).await, &first);
    assert_eq!(running.executions().await, 1);
}

#[tokio::test]
async fn headers_of_a_failure_are_replayed_too() {
    let agent = Agent::start(&[]);
    let headers = json!([["retry-after", "7"], ["set-cookie", "a=1"], ["set-cookie", "b=2"], ["location", "/there"]]);
    let request = send(&fresh_id(), "hello", json!({"http_status": 503, "headers": headers})).to_string();
    let first = agent.post_raw(&[&activation()], &request).await;
    assert!(first.status_line.contains(" 503 "), "{}", first.status_line);
    assert_eq!(first.all("retry-after"), [b"7"]);
    assert_eq!(first.all("set-cookie").len(), 2);
    assert_eq!(first.all("location"), [b"/there"]);
    assert_raw_replay(&agent.post_raw(&[&activation()], &request).await, &first);
}

#[tokio::test]
async fn hop_by_hop_headers_and_the_servers_own_are_not_the_handlers() {
    let agent = Agent::start(&[]);
    let headers = json!([
        ["connection", "x-hop, close"],
        ["x-hop", "1"],
        ["keep-alive", "timeout=5"],
        ["transfer-encoding", "gzip"],
        ["te", "trailers"],
        ["trailer", "x-t"],
        ["upgrade", "h2c"],
        ["proxy-authenticate", "Basic"],
        ["content-length", "3"],
        ["date", "Thu, 01 Jan 1970 00:00:00 GMT"],
        ["idempotent-replayed", "true"],
        ["idempotent-replayed", "false"],
        ["x-end", "kept"],
    ]);
    let request = send(&fresh_id(), "hello", json!({"headers": headers})).to_string();
    let first = agent.post_raw(&[&activation()], &request).await;
    let replay = agent.post_raw(&[&activation()], &request).await;
    for answer in [&first, &replay] {
        let dropped = ["x-hop", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "proxy-authenticate"];
        for name in dropped {
            assert_eq!(answer.all(name), Vec::<&[u8]>::new(), "{name}");
        }
        assert_ne!(answer.all("date"), [b"Thu, 01 Jan 1970 00:00:00 GMT"]);
        assert_eq!(answer.all("x-end"), [b"kept"]);
    }
    assert_raw_replay(&replay, &first);
}

#[tokio::test]
async fn a_content_type_of_the_handler_is_replayed() {
    let agent = Agent::start(&[]);
    let demo = json!({"headers": [["content-type", "application/vnd.x+json"]]});
    let request = send(&fresh_id(), "hello", demo);
    let first = agent.call(&request).await;
    assert_eq!(first.header("content-type"), Some("application/vnd.x+json"));
    assert_replays(&agent.call(&request).await, &first);
}

#[tokio::test]
async fn the_echo_is_merged_with_what_the_handler_put_there() {
    let agent = Agent::start(&[]);
    let spaced = format!("urn:b,{URI} ,urn:a");
    // What the handler sets, and what is echoed before our own URI under either name.
    type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, Option<&'a str>);
    let cases: &[Case<'_>] = &[
        (&[], "", None),
        (&[("a2a-extensions", "urn:a")], "urn:a", None),
        (&[("a2a-extensions", "urn:a"), ("a2a-extensions", "urn:b,urn:a")], "urn:a, urn:b", None),
        (&[("a2a-extensions", &spaced)], "urn:b, urn:a", None),
        (&[("a2a-extensions", URI), ("a2a-extensions", URI)], "", None),
        (&[("x-a2a-extensions", "urn:a")], "urn:a", Some("urn:a")),
    ];
    for (headers, extensions, legacy) in cases {
        let line = |others: &str| if others.is_empty() { URI.to_owned() } else { format!("{others}, {URI}") };
        let request = send(&fresh_id(), "hello", json!({"headers": headers}));
        let first = agent.call(&request).await;
        assert_executed(&first);
        assert_eq!(first.header("a2a-extensions"), Some(line(extensions).as_str()), "{headers:?}");
        assert_eq!(first.header("x-a2a-extensions"), legacy.map(line).as_deref(), "{headers:?}");
        assert_replays(&agent.call(&request).await, &first);

        // A client of 0.3 gets the same list under its own name too.
        let old = agent.post(&[("x-a2a-extensions", URI)], request.to_string()).await;
        assert!(old.is_replay());
        assert_eq!(old.header("a2a-extensions"), Some(line(extensions).as_str()));
        assert_eq!(old.header("x-a2a-extensions"), Some(line(extensions).as_str()));
    }
}

#[tokio::test]
async fn the_echo_is_on_refusals_of_an_activated_request_under_the_names_it_used() {
    let agent = Agent::start(&["--wait-ms", "0"]);
    let id = fresh_id();
    let request = send(&id, "hello", json!({}));
    agent.call(&request).await;
    let mut other = request.clone();
    other["params"]["x"] = json!(1);
    let malformed = send("no uuid", "hello", json!({}));
    let misfit = send(&fresh_id(), "hello", json!(7));
    let failed = send(&fresh_id(), "hello", json!({"http_status": 404}));
    let panicked = send(&fresh_id(), "hello", json!({"panic": true}));
    for (request, status) in
        [(&request, 200), (&other, 422), (&malformed, 400), (&misfit, 200), (&failed, 404), (&panicked, 500)]
    {
        let new = agent.post(&[("a2a-extensions", URI)], request.to_string()).await;
        assert_eq!((new.status.as_u16(), new.header("a2a-extensions")), (status, Some(URI)), "{request}");
        assert_eq!(new.header("x-a2a-extensions"), None);
        let old = agent.post(&[("x-a2a-extensions", URI)], request.to_string()).await;
        assert_eq!((old.status.as_u16(), old.header("a2a-extensions")), (status, Some(URI)));
        assert_eq!(old.header("x-a2a-extensions"), Some(URI));
    }
}

#[tokio::test]
async fn headers_that_http_does_not_allow_fail_the_operation() {
    let agent = Agent::start(&[]);
    for headers in [json!([["x y", "1"]]), json!([["x", "\n"]]), json!([["x", "\u{100}"]])] {
        let request = send(&fresh_id(), "hello", json!({"headers": headers}));
        let first = agent.call(&request).await;
        assert_error(&first, 200, -32602, "");
        // The handler said so, not an extractor: it is the operation's answer.
        assert_replays(&agent.call(&request).await, &first);
    }
    assert_eq!(agent.executions().await, 0);
}

//! Payloads without a canonical form, and those that a JSON parser would misread.

use serde_json::json;

use crate::{
    REUSED, assert_error, assert_executed, assert_replays,
    support::{Agent, Answer, URI, fresh_id, send},
};

const NOT_CANONICALIZABLE: &str = "IDEMPOTENCY_PAYLOAD_NOT_CANONICALIZABLE";

/// A send whose `params` also hold `more`, members as text.
fn with(id: &str, more: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"message/send","params":{{"message":{{"role":"user","messageId":"{id}","parts":[{{"text":"x"}}]}}{more}}}}}"#
    )
}

async fn post(agent: &Agent, body: String) -> Answer {
    agent.post(&[("a2a-extensions", URI)], body).await
}

fn nested(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

#[tokio::test]
async fn params_that_are_not_i_json_are_refused_with_reason_and_place() {
    let agent = Agent::start(&[]);
    let id = fresh_id();
    let long = format!(r#","n":0.{}"#, "1".repeat(1023));
    // The root, `params` and `n`'s own arrays: 128 in all.
    let deep = format!(r#","n":{}"#, nested(126));
    let abyss = format!(r#","n":{}"#, nested(50_000));
    let place_of_depth = format!("/params/n{}", "/0".repeat(125));
    let cases: &[(&str, &str, &str)] = &[
        (r#","a":1,"a":1"#, "duplicate_member", "/params/a"),
        (r#","é":1,"\u00e9":1"#, "duplicate_member", "/params/é"),
        (r#","m":{"a/b":[0,{"~":1,"~":2}]}"#, "duplicate_member", "/params/m/a~1b/1/~0"),
        (r#","message":{}"#, "duplicate_member", "/params/message"),
        (r#","n":9007199254740993"#, "lossy_integer", "/params/n"),
        (r#","n":[-9007199254740993]"#, "lossy_integer", "/params/n/0"),
        (r#","n":18446744073709551615"#, "lossy_integer", "/params/n"),
        (r#","n":1e400"#, "number_overflow", "/params/n"),
        (r#","n":-1e400"#, "number_overflow", "/params/n"),
        (&long, "number_too_long", "/params/n"),
        (r#","s":"\ud800""#, "lone_surrogate", "/params/s"),
        (r#","s":"\udc00\ud800""#, "lone_surrogate", "/params/s"),
        (&deep, "nesting_too_deep", &place_of_depth),
        (&abyss, "nesting_too_deep", &place_of_depth),
    ];
    for (more, reason, pointer) in cases {
        let answer = post(&agent, with(&id, more)).await;
        assert_error(&answer, 400, -32602, NOT_CANONICALIZABLE);
        let data = json!({"code": NOT_CANONICALIZABLE, "message_id": id, "reason": reason, "pointer": pointer});
        assert_eq!(answer.json()["error"]["data"], data);
        assert_eq!(answer.header("a2a-extensions"), Some(URI));
    }
    assert_eq!(agent.executions().await, 0);
    assert_executed(&post(&agent, with(&id, r#","n":1"#)).await);
}

#[tokio::test]
async fn the_limits_of_i_json_are_within_it() {
    let agent = Agent::start(&[]);
    let long = format!(r#","n":0.{}"#, "1".repeat(1022));
    let deep = format!(r#","n":{}"#, nested(125));
    for more in [
        r#","n":9007199254740992"#,
        r#","n":9007199254740993.0"#,
        r#","n":-0"#,
        r#","n":18446744073709551616"#,
        r#","n":1e-400"#,
        r#","n":1.7976931348623157e308"#,
        r#","s":"\ud83d\ude00","t":"\ufffe""#,
        &long,
        &deep,
    ] {
        let id = fresh_id();
        let first = post(&agent, with(&id, more)).await;
        assert_executed(&first);
        assert_replays(&post(&agent, with(&id, more)).await, &first);
    }
}

#[tokio::test]
async fn a_message_id_twice_has_no_canonical_form() {
    let agent = Agent::start(&[]);
    let (id, other) = (fresh_id(), fresh_id());
    let body = with(&id, "").replace(r#""role""#, &format!(r#""messageId":"{other}","role""#));
    let answer = post(&agent, body).await;
    assert_error(&answer, 400, -32602, NOT_CANONICALIZABLE);
    assert_eq!(answer.json()["error"]["data"]["pointer"], "/params/message/messageId");
    assert_eq!(agent.executions().await, 0);
}

#[tokio::test]
async fn a_violation_outside_params_is_an_invalid_request() {
    let agent = Agent::start(&[]);
    let id = fresh_id();
    let body = with(&id, "");
    for envelope in [
        body.replacen('{', r#"{"id":1,"#, 1),
        body.replace(r#""id":1"#, r#""id":9007199254740993,"id":1"#),
        body.replace(r#""id":1"#, r#""trace":9007199254740993,"id":1"#),
        body.replacen('{', r#"{"method":"message/send","#, 1),
        body.replacen('{', r#"{"params":{},"#, 1),
        body.replacen('{', r#"{"trace":"\ud800","#, 1),
        body.replacen('{', &format!(r#"{{"trace":{},"#, nested(127)), 1),
    ] {
        let answer = post(&agent, envelope).await;
        assert_error(&answer, 200, -32600, "");
    }
    assert_executed(&post(&agent, body).await);
}

#[tokio::test]
async fn names_that_the_parser_keeps_for_itself_are_refused_and_not_stored() {
    let agent = Agent::start(&[]);
    let id = fresh_id();
    for more in [
        r#","metadata":{"$serde_json::private::RawValue":"{\"demo\":{\"http_status\":500}}"}"#,
        r#","metadata":{"\u0024serde_json::private::Number":"1"}"#,
        r#","metadata":{"x":[{"a":1,"$serde_json::private::RawValue":"1"}]}"#,
    ] {
        let answer = post(&agent, with(&id, more)).await;
        assert_error(&answer, 200, -32602, "");
        assert_eq!(answer.header("a2a-extensions"), Some(URI));
    }
    // As a value such a text is harmless.
    let more = r#","metadata":{"x":"$serde_json::private::RawValue"}"#;
    let first = post(&agent, with(&id, more)).await;
    assert_executed(&first);
    assert_replays(&post(&agent, with(&id, more)).await, &first);
    // To the hash it is a name like any other.
    let more = r#","metadata":{"$serde_json::private::RawValue":"1"}"#;
    assert_error(&post(&agent, with(&id, more)).await, 422, -32422, REUSED);
}

#[tokio::test]
async fn params_that_do_not_fit_are_refused_and_not_stored() {
    let agent = Agent::start(&[]);
    let id = fresh_id();
    let activated: &[(&str, &str)] = &[("a2a-extensions", URI)];
    let mut misfits = vec![send(&id, "x", json!("no object")), send(&id, "x", json!({"delay_ms": "long"}))];
    for parts in [json!("text"), json!([7]), json!(null)] {
        let mut request = send(&id, "x", json!({}));
        request["params"]["message"]["parts"] = parts;
        misfits.push(request);
    }
    for request in &misfits {
        let answer = agent.post(activated, request.to_string()).await;
        assert_error(&answer, 200, -32602, "");
        assert_eq!(answer.json()["id"], 1);
        assert_eq!(answer.header("a2a-extensions"), Some(URI));
    }
    assert_eq!(agent.metric("message/send", "refused").await, misfits.len() as u64);
    let mut stream = send(&id, "x", json!({"events": -1}));
    stream["method"] = json!("message/stream");
    assert_error(&agent.call(&stream).await, 200, -32602, "");
    assert_eq!(agent.count_rows("SELECT count(*) AS n FROM idempotency_claim"), 0);
    assert_executed(&agent.call(&send(&id, "x", json!({}))).await);
    assert_eq!(agent.executions().await, 1);
}

#[tokio::test]
async fn bytes_that_are_not_json_are_a_parse_error() {
    let agent = Agent::start(&[]);
    let id = fresh_id();
    let body = with(&id, "");
    let mut bodies = vec![
        Vec::new(),
        b"{".to_vec(),
        b"nonsense".to_vec(),
        format!("\u{feff}{body}").into_bytes(),
        format!("{body}x").into_bytes(),
        body.replace(r#""id":1"#, r#""id":01"#).into_bytes(),
        body.replace("\"x\"", "\"a\tb\"").into_bytes(),
        // A violation does not hide what follows.
        with(&id, r#","a":1,"a":1,"#).into_bytes(),
        with(&id, &format!(r#","n":{},"#, nested(200))).into_bytes(),
    ];
    let mut not_utf8 = body.clone().into_bytes();
    let text = not_utf8.iter().rposition(|&byte| byte == b'x').expect("the text");
    not_utf8[text] = 0xff;
    bodies.push(not_utf8);
    for bytes in bodies {
        let answer = agent.post(&[("a2a-extensions", URI)], bytes.clone()).await;
        assert_error(&answer, 200, -32700, "");
        assert_eq!(answer.json()["id"], json!(null), "{}", String::from_utf8_lossy(&bytes));
    }
    assert_executed(&post(&agent, body).await);
    assert_eq!(agent.executions().await, 1);
}

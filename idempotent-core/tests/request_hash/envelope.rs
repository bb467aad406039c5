//! What the envelope says can be told even of a body that has no hash.

use idempotent_core::json::{Kind, Numbers, Scanner};

use crate::differential::with;

#[test]
fn members_are_found_by_their_decoded_names() {
    let body = br#" {"\u0069d" : {"a":[1 ,2]}, "jsonrpc":"2.0","m\u0065thod":"a\/b\n","params": [ ] } "#;
    with(body, Numbers::Strict, |document| {
        let envelope = document.envelope();
        assert!(envelope.is_object() && !envelope.is_batch());
        assert_eq!(envelope.id().unwrap().raw(), r#"{"a":[1 ,2]}"#);
        assert_eq!(&body[envelope.id().unwrap().span()], br#"{"a":[1 ,2]}"#);
        assert_eq!(envelope.jsonrpc().unwrap(), "2.0");
        assert_eq!(envelope.method().unwrap(), "a/b\n");
        assert_eq!(envelope.params().unwrap().kind(), Kind::Array);
    })
    .unwrap();
}

#[test]
fn an_envelope_is_no_more_than_its_body_says() {
    with(br#"{"method":7,"jsonrpc":null}"#, Numbers::Strict, |document| {
        let envelope = document.envelope();
        assert!(envelope.method().is_none() && envelope.jsonrpc().is_none());
        assert!(envelope.id().is_none() && envelope.params().is_none());
    })
    .unwrap();
    for (body, is_batch) in [("[{\"id\":1}]", true), ("null", false), ("\"id\"", false), ("17", false)] {
        with(body.as_bytes(), Numbers::Strict, |document| {
            let envelope = document.envelope();
            assert_eq!((envelope.is_object(), envelope.is_batch()), (false, is_batch), "{body}");
            assert!(envelope.id().is_none() && envelope.method().is_none(), "{body}");
        })
        .unwrap();
    }
}

#[test]
fn a_body_with_a_violation_still_tells_its_id_method_and_key() {
    let body = br#"{"id":"first","id":"second","method":"m","params":{"message":{"messageId":"k","messageId":"l","x":1e999}}}"#;
    with(body, Numbers::Strict, |document| {
        let envelope = document.envelope();
        assert_eq!(envelope.id().unwrap().string().unwrap(), "first");
        assert_eq!(envelope.method().unwrap(), "m");
        let key = envelope.params().unwrap().pointer("/message/messageId").unwrap();
        assert_eq!(key.string().unwrap(), "k");
        assert!(document.violation().is_some());
    })
    .unwrap();
}

#[test]
fn the_first_of_equal_members_is_found_wherever_it_sorts() {
    let repeated: Vec<String> = (0..50).map(|value| format!("\"n\":{value},\"{value}\":0")).collect();
    with(format!("{{{}}}", repeated.join(",")).as_bytes(), Numbers::Strict, |document| {
        assert_eq!(document.root().member("n").unwrap().raw(), "0");
    })
    .unwrap();
}

#[test]
fn pointers_lead_where_rfc_6901_says() {
    // The examples of RFC 6901 section 5.
    let body = br#"{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8}"#;
    with(body, Numbers::Strict, |document| {
        let at = |pointer: &str| document.root().pointer(pointer).map(|node| node.raw());
        assert_eq!(at("").unwrap().len(), body.len());
        for (pointer, expected) in [
            ("/foo", r#"["bar","baz"]"#),
            ("/foo/0", r#""bar""#),
            ("/foo/1", r#""baz""#),
            ("/", "0"),
            ("/a~1b", "1"),
            ("/c%d", "2"),
            ("/e^f", "3"),
            ("/g|h", "4"),
            ("/i\\j", "5"),
            ("/k\"l", "6"),
            ("/ ", "7"),
            ("/m~0n", "8"),
        ] {
            assert_eq!(at(pointer), Some(expected), "{pointer}");
        }
        for nowhere in ["foo", "/foo/2", "/foo/-", "/foo/00", "/foo/01", "/foo/+1", "/foo/", "/bar", "/foo/0/0", "/a/b"]
        {
            assert_eq!(at(nowhere), None, "{nowhere}");
        }
    })
    .unwrap();
}

#[test]
fn any_member_or_element_can_be_left_out() {
    let body = br#"{"b":[1,{"id":"x","y":2},3],"a":"\u0041"}"#;
    with(body, Numbers::Strict, |document| {
        let without = |pointer| {
            let mut canonical = Vec::new();
            let excluded = document.root().pointer(pointer);
            document.write_canonical_excluding(document.root(), excluded, &mut canonical).unwrap();
            String::from_utf8(canonical).unwrap()
        };
        assert_eq!(without("/nowhere"), r#"{"a":"A","b":[1,{"id":"x","y":2},3]}"#);
        assert_eq!(without("/b/1/id"), r#"{"a":"A","b":[1,{"y":2},3]}"#);
        assert_eq!(without("/b/1"), r#"{"a":"A","b":[1,3]}"#);
        assert_eq!(without("/b/0"), r#"{"a":"A","b":[{"id":"x","y":2},3]}"#);
        assert_eq!(without("/a"), r#"{"b":[1,{"id":"x","y":2},3]}"#);
        assert_eq!(without("/b"), r#"{"a":"A"}"#);
        assert_eq!(without(""), "");
    })
    .unwrap();
}

#[test]
fn names_like_serde_jsons_private_tokens_are_noticed_inside_params() {
    for (body, mentioned) in [
        (r#"{"params":{"a":[{"$serde_json::private::RawValue":"1"}]}}"#, true),
        (r#"{"params":{"a":1,"\u0024serde_json::private::Number":"1"}}"#, true),
        (r#"{"params":{"$serde_json::private":1,"x":"$serde_json::private::Number"}}"#, false),
        (r#"{"$serde_json::private::Number":"1","params":{}}"#, false),
    ] {
        let found = with(body.as_bytes(), Numbers::Strict, |document| document.mentions_serde_json_private_names());
        assert_eq!(found, Some(mentioned), "{body}");
    }
}

#[test]
fn a_scanner_lent_within_a_scanner_is_another_one() {
    let outer = Scanner::with(|outer| {
        let document = outer.scan(b"[1,2]", Numbers::Strict).unwrap();
        Scanner::with(|inner| assert!(inner.scan(b"{}", Numbers::Strict).is_ok()));
        document.root().elements().count()
    });
    assert_eq!(outer, 2);
}

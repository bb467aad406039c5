//! A violation is told with its reason and its place, and a text that is not JSON is never taken for one.

use idempotent_core::json::{MAX_DEPTH, Numbers, Scanner, SyntaxErrorReason, Violation, ViolationReason};

use crate::differential::with;

fn violation(body: &str) -> Option<Violation> {
    with(body.as_bytes(), Numbers::Strict, |document| document.violation())
        .unwrap_or_else(|| panic!("{body}: not JSON"))
}

fn assert_violation(body: &str, reason: ViolationReason, pointer: &str, is_in_params: bool) {
    let violation = violation(body).unwrap_or_else(|| panic!("{body}: no violation"));
    assert_eq!((violation.reason(), violation.pointer()), (reason, pointer), "{body}");
    assert_eq!(violation.is_in_params(), is_in_params, "{body}");
}

#[test]
fn every_reason_comes_with_its_place() {
    use ViolationReason::*;
    for (metadata, reason, place) in [
        (r#"{"a/b":{"x":1,"y":2,"x":3}}"#, DuplicateMember, "/a~1b/x"),
        (r#"{"\u0061":1,"a":2}"#, DuplicateMember, "/a"),
        ("[1,[9007199254740993]]", LossyInteger, "/1/0"),
        (r#"{"~":-1e400}"#, NumberOverflow, "/~0"),
        (r#"["\ud83d\ude00","x\ud800"]"#, LoneSurrogate, "/1"),
        (r#"{"a":{"\udc00":1}}"#, LoneSurrogate, "/a"),
    ] {
        let body = format!(r#"{{"method":"m","params":{{"message":{{"metadata":{metadata}}}}}}}"#);
        assert_violation(&body, reason, &format!("/params/message/metadata{place}"), true);
    }
    let long = format!(r#"{{"params":[1.{}]}}"#, "0".repeat(1023));
    assert_violation(&long, NumberTooLong, "/params/0", true);
    assert_eq!(violation(&format!(r#"{{"params":[1.{}]}}"#, "0".repeat(1022))), None);
}

#[test]
fn a_violation_of_the_envelope_comes_before_one_of_the_params() {
    use ViolationReason::*;
    assert_violation(r#"{"params":{"a":1,"a":2},"id":1,"id":2}"#, DuplicateMember, "/id", false);
    assert_violation(r#"{"params":{"a":1},"\u0070arams":{"a":1e999}}"#, DuplicateMember, "/params", false);
    assert_violation(r#"{"id":1e999,"params":{"a":1,"a":2}}"#, NumberOverflow, "/id", false);
    assert_violation(r#"[{"params":1e999}]"#, NumberOverflow, "/0/params", false);
    assert_violation(r#"{"x":{"params":1e999}}"#, NumberOverflow, "/x/params", false);
}

#[test]
fn of_several_violations_the_first_in_the_text_is_told() {
    use ViolationReason::*;
    assert_violation(r#"{"params":{"a":1,"a":2,"b":1e999}}"#, DuplicateMember, "/params/a", true);
    assert_violation(r#"{"params":{"a":1,"b":1e999,"a":2}}"#, NumberOverflow, "/params/b", true);
    assert_violation(r#"{"params":{"b":1,"a":1,"b":2,"a":2,"a":3}}"#, DuplicateMember, "/params/b", true);
}

#[test]
fn numbers_that_rfc_8785_rounds_are_its_configurations_business() {
    let body = br#"{"params":[9007199254740993]}"#;
    assert_eq!(with(body, Numbers::Rfc8785, |document| document.violation()), Some(None));
    for exact in ["9007199254740992", "-9007199254740994", "18446744073709551616", "-0", "9007199254740993.0", "1e23"] {
        assert_eq!(violation(&format!(r#"{{"params":[{exact}]}}"#)), None, "{exact}");
    }
}

#[test]
fn a_pointer_that_would_be_too_long_names_a_container_around() {
    let long = "n".repeat(1000);
    let body = format!(r#"{{"params":{{"a":{{"{long}":{{"{long}":1e999}}}}}}}}"#);
    assert_violation(&body, ViolationReason::NumberOverflow, &format!("/params/a/{long}"), true);
}

#[test]
fn nesting_is_counted_from_the_root() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let body = |depth: usize| format!(r#"{{"params":{{"x":{}}}}}"#, nested(depth));
    assert_eq!(violation(&body(MAX_DEPTH - 2)), None);
    assert_violation(
        &body(MAX_DEPTH - 1),
        ViolationReason::NestingTooDeep,
        &format!("/params/x{}", "/0".repeat(MAX_DEPTH - 2)),
        true,
    );
    assert_eq!(violation(&nested(MAX_DEPTH)), None);
    assert!(violation(&nested(MAX_DEPTH + 1)).is_some());
}

#[test]
fn what_is_nested_too_deep_is_still_read_for_its_grammar() {
    let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(200), "]".repeat(200));
    let repeated = |inner: &str, close: usize| format!("{}{inner}{}", r#"{"a" :"#.repeat(50), "}".repeat(close));
    for inner in [
        "",
        "1,2,[]",
        "[[]],[[ ] , [1]],{}",
        r#"{"a":{"b":[{}],"c":{"d":1},"e":"\n"}},{"":[[[[[[[[[[[[]]]]]]]]]]]]}"#,
        r#"{"a":{"a":{"a":{"a":{"a":[{"a":{"a":null}}]}}}}}"#,
        r#" { "a longer name than most" : true } , -1.5e3 "#,
        r#""\ud800""#,
        &repeated("1", 50),
        &repeated("{}", 50),
        &repeated(r#"[{"a" :1}]"#, 50),
        &repeated(r#"{"b" :1},"c":{"d":2}"#, 50),
    ] {
        let violation = violation(&deep(inner)).expect("too deep");
        assert_eq!((violation.reason(), violation.offset()), (ViolationReason::NestingTooDeep, 127), "{inner}");
    }
    for (inner, reason) in [
        ("[", SyntaxErrorReason::UnexpectedEnd),
        ("]", SyntaxErrorReason::TrailingData),
        ("{]", SyntaxErrorReason::UnexpectedByte),
        ("[}", SyntaxErrorReason::UnexpectedByte),
        ("1,", SyntaxErrorReason::UnexpectedByte),
        (r#"{"a"}"#, SyntaxErrorReason::UnexpectedByte),
        (r#"{"a":1,}"#, SyntaxErrorReason::UnexpectedByte),
        (r#"{"a":{"a":{"a":1}}}}"#, SyntaxErrorReason::UnexpectedByte),
        (r#"{"a":[{"a":1]}}"#, SyntaxErrorReason::UnexpectedByte),
        (r#""\x""#, SyntaxErrorReason::InvalidEscape),
        ("01", SyntaxErrorReason::InvalidNumber),
        ("nul", SyntaxErrorReason::UnexpectedByte),
        (&repeated("1", 49), SyntaxErrorReason::UnexpectedByte),
        (&repeated("1", 51), SyntaxErrorReason::UnexpectedByte),
        (&repeated(r#"{"a" 1"#, 51), SyntaxErrorReason::UnexpectedByte),
    ] {
        let mut scanner = Scanner::new();
        let error = scanner.scan(deep(inner).as_bytes(), Numbers::Strict).expect_err(inner);
        assert_eq!(error.reason(), reason, "{inner}");
    }
}

#[test]
fn ten_megabytes_of_brackets_are_read_without_recursion() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[{\"\":", "}]")] {
        let levels = 10_000_000 / (open.len() + close.len());
        let body = format!("{}1{}", open.repeat(levels), close.repeat(levels));
        assert_eq!(violation(&body).map(|violation| violation.reason()), Some(ViolationReason::NestingTooDeep));
        let mut scanner = Scanner::new();
        let error = scanner.scan(&body.as_bytes()[..body.len() - 1], Numbers::Strict).expect_err("unclosed");
        assert_eq!((error.reason(), error.offset()), (SyntaxErrorReason::UnexpectedEnd, body.len() - 1));
    }
}

#[test]
fn a_violation_does_not_hide_that_the_text_is_no_json() {
    for body in [r#"{"a":1,"a":2"#, r#"{"params":1e999}x"#, "[\"\\ud800\",01]", "[1e999\u{feff}]"] {
        assert_eq!(with(body.as_bytes(), Numbers::Strict, |_| ()), None, "{body}");
    }
}

#[test]
fn syntax_errors_tell_where_and_what() {
    use SyntaxErrorReason::*;
    for (body, offset, reason) in [
        (&b""[..], 0, UnexpectedEnd),
        (b"  ", 2, UnexpectedEnd),
        (b"\xef\xbb\xbf{}", 0, ByteOrderMark),
        (b"[\"\xff\"]", 2, InvalidUtf8),
        (b"[1 2]", 3, UnexpectedByte),
        (b"[1]]", 3, TrailingData),
        (b"\"a\nb\"", 2, ControlCharacter),
        (b"\"a\\v\"", 2, InvalidEscape),
        (b"\"a\\u12\"", 2, InvalidEscape),
        (b"\"a", 2, UnexpectedEnd),
        (b"[01]", 1, InvalidNumber),
        (b"[1.]", 1, InvalidNumber),
        (b"[-", 2, UnexpectedEnd),
        (b"[trve]", 3, UnexpectedByte),
        (b"{a:1}", 1, UnexpectedByte),
    ] {
        let mut scanner = Scanner::new();
        let error = scanner.scan(body, Numbers::Strict).expect_err("not JSON");
        assert_eq!((error.offset(), error.reason()), (offset, reason), "{}", String::from_utf8_lossy(body));
    }
}

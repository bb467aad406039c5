//! Once warm, hashing a request allocates nothing; and what one huge body needed is not kept.

use idempotent_core::{
    RequestHash,
    json::{Numbers, Scanner},
    request_hash::MESSAGE_ID_POINTER,
};

fn hash(body: &[u8]) -> Option<RequestHash> {
    Scanner::with(|scanner| {
        let document = scanner.scan(body, Numbers::Strict).ok()?;
        let envelope = document.envelope();
        envelope.id()?;
        envelope.method()?;
        let params = envelope.params()?;
        document.request_hash(params, params.pointer(MESSAGE_ID_POINTER)).ok()
    })
}

/// A request with everything that makes the scanner do more than copy: unsorted members, escapes, numbers to rewrite.
fn request(size: usize) -> String {
    let mut parts = String::from("0");
    while parts.len() < size {
        parts.push_str(concat!(
            r#",{"kind":"data","data":{"z":1.50,"a":[1,2,{"b":1e3,"a":-0.0,"a\u0062c":"\u00e9\/"}],"text":"line\n\u20ac","#,
            r#""n":123456789.25,"deep":{"y":{"x":{"w":[true,false,null]}}}}}"#,
        ));
    }
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"message/send","params":{{"message":{{"messageId":"m","parts":[{parts}]}}}}}}"#
    )
}

#[test]
fn a_warm_call_does_not_allocate() {
    for size in [500, 10_000, 1_000_000] {
        let body = request(size);
        let first = hash(body.as_bytes());
        assert!(first.is_some());
        let allocations = allocation_counter::measure(|| assert_eq!(hash(body.as_bytes()), first));
        assert_eq!(allocations.count_total, 0, "{size} bytes");
    }
}

#[test]
fn the_memory_for_one_huge_body_is_given_back() {
    let held = |body: &str| allocation_counter::measure(|| assert!(hash(body.as_bytes()).is_some())).bytes_current;
    let values = "1,".repeat(4_000_000);
    let huge = format!(r#"{{"id":1,"method":"m","params":[{values}1]}}"#);
    assert!(held(&huge) <= 0, "the scanner keeps what one body needed");
    assert!(held(&request(100_000)) <= Scanner::RETAINED_BYTES as i64);
}

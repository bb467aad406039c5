//! The scanner reads any bytes as the reference reader reads them.

#![no_main]

use idempotent_core::json::{Numbers, Scanner};
use libfuzzer_sys::fuzz_target;

#[allow(dead_code)]
#[path = "../../idempotent-core/tests/request_hash/reference.rs"]
mod reference;

use reference::{Broken, Reading};

fuzz_target!(|body: &[u8]| {
    for (numbers, strict) in [(Numbers::Strict, true), (Numbers::Rfc8785, false)] {
        let expected = reference::read(body, strict);
        Scanner::with(|scanner| {
            let Ok(document) = scanner.scan(body, numbers) else {
                assert_eq!(expected, Reading::NotJson);
                return assert!(serde_json::from_slice::<serde_json::Value>(body).is_err());
            };
            let mut canonical = Vec::new();
            match (document.write_canonical(document.root(), &mut canonical), expected) {
                (Ok(()), Reading::Document(tree)) => {
                    assert_eq!(canonical, tree.canonical());
                    assert!(serde_json::from_slice::<serde_json::Value>(body).is_ok());
                    // The canonical form is its own.
                    let mut scanner = Scanner::new();
                    let document = scanner.scan(&canonical, Numbers::Rfc8785).expect("canonical text is JSON");
                    let mut again = Vec::new();
                    document.write_canonical(document.root(), &mut again).expect("canonical text is I-JSON");
                    assert_eq!(again, canonical);
                }
                (Err(violation), Reading::Violation(expected)) => {
                    let pointer = violation.pointer().to_owned();
                    assert!(pointer == expected.pointer || expected.pointer.len() > 1024);
                    let in_params = violation.is_in_params();
                    let found = Broken { in_params, offset: violation.offset(), reason: violation.reason(), pointer };
                    assert_eq!(Broken { pointer: found.pointer.clone(), ..expected }, found);
                }
                (found, expected) => panic!("{found:?}, {expected:?}"),
            }
        });
    }
});

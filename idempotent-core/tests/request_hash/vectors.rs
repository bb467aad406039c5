//! Every published vector has the hash, or the refusal, that independent implementations computed for it.

use idempotent_core::json::{Numbers, Scanner, ViolationReason};
use idempotent_core::request_hash::{MESSAGE_ID_POINTER, RequestHash};
use serde::Deserialize;

#[derive(Deserialize)]
struct Vector {
    name: String,
    input: Option<String>,
    input_hex: Option<String>,
    canonical: Option<String>,
    sha256: Option<String>,
    #[serde(default)]
    error: bool,
}

impl Vector {
    fn body(&self) -> Vec<u8> {
        match (&self.input, &self.input_hex) {
            (Some(text), None) => text.clone().into_bytes(),
            (None, Some(hex)) => {
                (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
            }
            _ => panic!("{}: one of input and input_hex", self.name),
        }
    }
}

fn vectors(text: &str, expected: usize) -> Vec<Vector> {
    let vectors: Vec<Vector> = serde_json::from_str(text).unwrap();
    assert_eq!(vectors.len(), expected);
    vectors
}

/// The canonical form and the hash, of the `params` of a request or of the document itself.
fn canonicalize(body: &[u8], is_request: bool) -> Option<(String, RequestHash)> {
    let mut scanner = Scanner::new();
    let document = scanner.scan(body, Numbers::Rfc8785).ok()?;
    let node = if is_request { document.envelope().params()? } else { document.root() };
    let key = if is_request { node.pointer(MESSAGE_ID_POINTER) } else { None };
    let hash = document.request_hash(node, key).ok()?;
    let mut canonical = Vec::new();
    document.write_canonical_excluding(node, key, &mut canonical).unwrap();
    Some((String::from_utf8(canonical).unwrap(), hash))
}

fn check(vectors: &[Vector], is_request: bool) {
    for vector in vectors {
        let found = canonicalize(&vector.body(), is_request);
        if vector.error {
            assert!(found.is_none(), "{}: accepted as {found:?}", vector.name);
            continue;
        }
        let (canonical, hash) = found.unwrap_or_else(|| panic!("{}: refused", vector.name));
        assert_eq!(Some(&canonical), vector.canonical.as_ref(), "{}", vector.name);
        assert_eq!(Some(hash.to_string()), vector.sha256, "{}", vector.name);
    }
}

#[test]
fn every_document_has_the_canonical_form_of_the_other_implementations() {
    check(&vectors(include_str!("vectors/jcs.json"), 132), false);
}

#[test]
fn every_request_has_the_hash_of_the_other_implementations() {
    check(&vectors(include_str!("vectors/requests.json"), 30), true);
}

#[test]
fn strict_mode_refuses_the_integers_that_no_double_equals_and_nothing_else() {
    let mut scanner = Scanner::new();
    let mut refused = Vec::new();
    for vector in vectors(include_str!("vectors/jcs.json"), 132).iter().filter(|vector| !vector.error) {
        if let Some(violation) = scanner.scan(&vector.body(), Numbers::Strict).unwrap().violation() {
            assert_eq!(violation.reason(), ViolationReason::LossyInteger, "{}", vector.name);
            refused.push(vector.name.clone());
        }
    }
    let expected = ["num-int-2p53+1", "num-int-u64max", "num-int-30digits", "num-int-20digits-1ulp"];
    assert_eq!(refused, expected);
}

//! Whatever somebody sends, the scanner reads what the reference reads and writes what serde_jcs writes.
//!
//! `IDEMPOTENT_HASH_CASES` sets how many documents are generated; the default is enough for every change, a million for a
//! change of the scanner.

use idempotent_core::{
    RequestHash,
    json::{Document, Node, Numbers, Scanner, Violation},
    request_hash::MESSAGE_ID_POINTER,
};
use proptest::prelude::*;
use sha2::{Digest, Sha256};

use crate::{
    generator::{self, Random},
    reference::{self, Broken, Reading, Tree},
};

/// How many documents one seed stands for: more than one, because a generator is cheaper than a test case.
const DOCUMENTS_PER_CASE: u64 = 100;

fn config() -> ProptestConfig {
    let documents =
        std::env::var("IDEMPOTENT_HASH_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(100_000u64);
    let cases = documents.div_ceil(DOCUMENTS_PER_CASE).try_into().unwrap_or(u32::MAX);
    ProptestConfig { max_shrink_iters: 0, ..ProptestConfig::with_cases(cases) }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn generated_documents_have_the_canonical_form_that_serde_jcs_writes(seed in any::<u64>()) {
        let mut random = Random::new(seed);
        for _ in 0..DOCUMENTS_PER_CASE {
            let tree = generator::tree(&mut random, 3);
            let text = generator::write(&mut random, &tree);
            check_canonical(&text, &tree)?;
            if random.one_in(4) {
                check_reading(text.as_bytes())?;
            }
        }
    }

    #[test]
    fn generated_requests_have_the_hash_of_params_without_the_message_id(seed in any::<u64>()) {
        let mut random = Random::new(seed);
        for _ in 0..DOCUMENTS_PER_CASE / 4 {
            let request = generator::request(&mut random);
            let text = generator::write(&mut random, &request);
            check_request(&text, &request)?;
        }
    }

    #[test]
    fn damaged_documents_are_refused_as_the_reference_refuses_them(seed in any::<u64>()) {
        let mut random = Random::new(seed);
        for _ in 0..DOCUMENTS_PER_CASE / 4 {
            let tree = if random.one_in(2) { generator::request(&mut random) } else { generator::tree(&mut random, 3) };
            let mut text = generator::write(&mut random, &tree).into_bytes();
            for _ in 0..=random.below(3) {
                damage(&mut random, &mut text);
            }
            check_reading(&text)?;
        }
    }
}

fn check_canonical(text: &str, tree: &Tree) -> Result<(), TestCaseError> {
    let canonical = with(text.as_bytes(), Numbers::Rfc8785, |document| canonical(document, document.root(), None));
    prop_assert_eq!(canonical, Some(Ok(tree.canonical())), "{}", text);
    Ok(())
}

fn check_request(text: &str, request: &Tree) -> Result<(), TestCaseError> {
    let expected = request.member("params").unwrap().without_message_id().canonical();
    let hash = with(text.as_bytes(), Numbers::Rfc8785, |document| {
        let params = document.envelope().params().unwrap();
        document.request_hash(params, params.pointer(MESSAGE_ID_POINTER))
    });
    prop_assert_eq!(hash, Some(Ok(RequestHash::from_bytes(Sha256::digest(&expected).into()))), "{}", text);
    Ok(())
}

/// Both readers agree about a text: that it is not JSON, where it is not I-JSON, or how it is canonically written.
fn check_reading(text: &[u8]) -> Result<(), TestCaseError> {
    for (numbers, strict) in [(Numbers::Strict, true), (Numbers::Rfc8785, false)] {
        let found = with(text, numbers, |document| canonical(document, document.root(), None));
        let shown = String::from_utf8_lossy(text);
        match reference::read(text, strict) {
            Reading::NotJson => prop_assert_eq!(found, None, "{}", shown),
            Reading::Document(tree) => prop_assert_eq!(found, Some(Ok(tree.canonical())), "{}", shown),
            Reading::Violation(broken) => {
                let mut found = found.and_then(Result::err).map(Broken::from);
                if let Some(found) = &mut found
                    && broken.pointer.len() > 1024
                {
                    // Which one of the containers around it is named is for another test.
                    prop_assert!(broken.pointer.starts_with(&found.pointer));
                    found.pointer.clone_from(&broken.pointer);
                }
                prop_assert_eq!(found, Some(broken), "{}", shown);
            }
        }
    }
    Ok(())
}

impl From<Violation> for Broken {
    fn from(violation: Violation) -> Self {
        Broken {
            in_params: violation.is_in_params(),
            offset: violation.offset(),
            reason: violation.reason(),
            pointer: violation.pointer().to_owned(),
        }
    }
}

/// `None` if the text is not JSON.
pub fn with<R>(text: &[u8], numbers: Numbers, look: impl FnOnce(Document<'_>) -> R) -> Option<R> {
    Scanner::with(|scanner| scanner.scan(text, numbers).ok().map(look))
}

pub fn canonical<'a>(document: Document<'a>, node: Node<'a>, excluded: Option<Node<'a>>) -> Result<Vec<u8>, Violation> {
    let mut canonical = Vec::new();
    document.write_canonical_excluding(node, excluded, &mut canonical)?;
    Ok(canonical)
}

/// Changes, removes, repeats or exchanges a bit of a text.
fn damage(random: &mut Random, text: &mut Vec<u8>) {
    const PIECES: [&[u8]; 22] = [
        b"\"",
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"0",
        b"1e999",
        b"9007199254740993",
        b"-",
        b".",
        b"\\ud800",
        b"\\udc00",
        b"\\u",
        b" ",
        b"\x01",
        b"\x80",
        b"\xef\xbb\xbf",
        b"\"a\":1,",
        b"null",
    ];
    let at = random.below(text.len() + 1);
    let end = (at + random.below(12)).min(text.len());
    match random.below(5) {
        0 => drop(text.drain(at..end)),
        1 => {
            let copy = text[at..end].to_vec();
            text.splice(at..at, copy);
        }
        2 => {
            text.splice(at..at, PIECES[random.below(PIECES.len())].iter().copied());
        }
        3 if at < text.len() => text[at] ^= 1 << random.below(8),
        _ => {
            let from = random.below(text.len() + 1);
            let until = (from + random.below(20)).min(text.len());
            let copy = text[from..until].to_vec();
            text.splice(at..end, copy);
        }
    }
}

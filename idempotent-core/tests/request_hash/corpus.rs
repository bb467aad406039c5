//! What the fuzzers have found worth keeping is read again by every test run.

use std::{fs, path::Path};

use idempotent_core::json::Numbers;

use crate::{
    differential::{canonical, with},
    reference::{self, Reading},
};

#[test]
fn the_fuzzers_corpus_reads_as_the_reference_reads_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().find(|path| path.join("fuzz/corpus").is_dir());
    let corpus = root.expect("the repository has a corpus").join("fuzz/corpus");
    let mut read = 0;
    for target in ["scanner", "envelope"] {
        for entry in fs::read_dir(corpus.join(target)).unwrap() {
            let path = entry.unwrap().path();
            let body = fs::read(&path).unwrap();
            for (numbers, strict) in [(Numbers::Strict, true), (Numbers::Rfc8785, false)] {
                let found = with(&body, numbers, |document| canonical(document, document.root(), None));
                match (reference::read(&body, strict), found) {
                    (Reading::NotJson, None) | (Reading::Violation(_), Some(Err(_))) => {}
                    (Reading::Document(tree), Some(Ok(canonical))) => {
                        assert_eq!(canonical, tree.canonical(), "{}", path.display());
                    }
                    (expected, found) => panic!("{}: {expected:?}, {found:?}", path.display()),
                }
            }
            read += 1;
        }
    }
    assert!(read > 0, "the corpus is empty");
}

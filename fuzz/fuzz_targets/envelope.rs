//! What the envelope and the hash of a request say is what the reference reader finds in it.

#![no_main]

use idempotent_core::{
    json::{Numbers, Scanner},
    request_hash::MESSAGE_ID_POINTER,
};
use libfuzzer_sys::fuzz_target;
use sha2::{Digest, Sha256};

#[allow(dead_code)]
#[path = "../../idempotent-core/tests/request_hash/reference.rs"]
mod reference;

use reference::{Reading, Tree};

fuzz_target!(|body: &[u8]| {
    Scanner::with(|scanner| {
        let Ok(document) = scanner.scan(body, Numbers::Strict) else { return };
        // These can be looked at even where there is a violation.
        let envelope = document.envelope();
        let params = envelope.params();
        let key = params.and_then(|params| params.pointer(MESSAGE_ID_POINTER));
        let hash = params.map(|params| document.request_hash(params, key));
        let (id, method) = (envelope.id(), envelope.method());
        for node in [id, params, key].into_iter().flatten() {
            assert_eq!(body[node.span()], *node.raw().as_bytes());
            let _ = (node.string(), node.members().count(), node.elements().count());
        }

        let Reading::Document(tree) = reference::read(body, true) else {
            return assert!(hash.is_none_or(|hash| hash.is_err()));
        };
        let text = |name: &str| match tree.member(name) {
            Some(Tree::String(text)) => Some(text.as_str()),
            _ => None,
        };
        assert_eq!(method.as_deref(), text("method"));
        assert_eq!(envelope.jsonrpc().as_deref(), text("jsonrpc"));
        assert_eq!(id.is_some(), tree.member("id").is_some());
        assert_eq!(params.is_some(), tree.member("params").is_some());
        let message_id = tree.member("params").and_then(|params| params.member("message")?.member("messageId"));
        assert_eq!(key.is_some(), message_id.is_some());
        let expected = tree.member("params").map(|params| Sha256::digest(params.without_message_id().canonical()));
        let hash = hash.map(|hash| *hash.expect("I-JSON has a hash").as_bytes());
        assert_eq!(hash, expected.map(Into::into));
    });
});

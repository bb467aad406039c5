//! A client's hash of what it is about to send is the server's hash of what arrives.

use idempotent_core::{
    RequestHash,
    json::{Numbers, ViolationReason},
    request_hash::{MESSAGE_ID_POINTER, RequestHashError},
};
use proptest::prelude::*;
use sha2::{Digest, Sha256};

use crate::{
    generator::{self, Random},
    reference::Tree,
};

proptest! {
    #[test]
    fn params_hash_to_what_serde_jcs_writes_of_them(seed in any::<u64>()) {
        let mut random = Random::new(seed);
        for _ in 0..20 {
            let request = generator::request(&mut random);
            let params = request.member("params").unwrap();
            let expected: [u8; 32] = Sha256::digest(params.without_message_id().canonical()).into();
            match RequestHash::of(params) {
                Ok(hash) => prop_assert_eq!(hash.as_bytes(), &expected),
                // serde_json writes some large doubles as integer tokens.
                Err(error) => prop_assert!(matches!(&error, RequestHashError::NotCanonicalizable(violation)
                    if violation.reason() == ViolationReason::LossyInteger), "{}", error),
            }
            let text = generator::write(&mut random, params);
            let hash = RequestHash::of_json(text.as_bytes(), MESSAGE_ID_POINTER, Numbers::Rfc8785).unwrap();
            prop_assert_eq!(hash.as_bytes(), &expected);
        }
    }
}

#[test]
fn a_value_hashes_like_the_text_that_is_sent() {
    // With `arbitrary_precision`, a number in a `Value` is its token; with `preserve_order`, members keep their places.
    let text = r#"{"z":1.50,"message":{"messageId":"x","n":[1e2,-0.0,123456789012345680]},"a":"\u00e9"}"#;
    let value: serde_json::Value = serde_json::from_str(text).unwrap();
    let sent = RequestHash::of_json(text.as_bytes(), MESSAGE_ID_POINTER, Numbers::Strict).unwrap();
    assert_eq!(RequestHash::of(&value).unwrap(), sent);
}

#[test]
fn what_a_server_would_refuse_has_no_hash() {
    let lossy = Tree::Object(vec![("n".to_owned(), Tree::Null)]);
    assert!(RequestHash::of(&lossy).is_ok());
    let error = RequestHash::of(&std::collections::BTreeMap::from([("n", u64::MAX)])).unwrap_err();
    assert!(matches!(error, RequestHashError::NotCanonicalizable(violation) if violation.pointer() == "/n"));
    let error = RequestHash::of_json(b"{", MESSAGE_ID_POINTER, Numbers::Strict).unwrap_err();
    assert!(matches!(error, RequestHashError::Syntax(_)));
}

#[test]
fn a_hash_reads_as_it_prints() {
    let hash = RequestHash::of(&[1, 2, 3]).unwrap();
    let text = hash.to_string();
    assert_eq!(text.parse(), Ok(hash));
    assert_eq!(RequestHash::from_bytes(*hash.as_bytes()), hash);
    for wrong in [
        text.to_uppercase(),
        text[1..].to_owned(),
        format!("{text}0"),
        text.replacen(&text[..1], "g", 1),
        String::new(),
    ] {
        assert!(wrong.parse::<RequestHash>().is_err(), "{wrong}");
    }
}

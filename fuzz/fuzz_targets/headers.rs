//! Activation headers of any bytes activate exactly if one of them lists the extension.

#![no_main]

use http::{HeaderMap, HeaderValue};
use idempotent_core::extension::{A2A_EXTENSIONS, Activation, URI, X_A2A_EXTENSIONS};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (Vec<(bool, Vec<u8>)>, u8)| {
    let (lines, ours) = input;
    let mut headers = HeaderMap::new();
    for (index, (legacy, mut line)) in lines.into_iter().enumerate() {
        if index == usize::from(ours) {
            line.extend_from_slice(URI.as_bytes());
        }
        let Ok(value) = HeaderValue::from_bytes(&line) else { continue };
        headers.append(if legacy { X_A2A_EXTENSIONS } else { A2A_EXTENSIONS }, value);
    }
    let listed = headers.values().any(|value| {
        let text = String::from_utf8_lossy(value.as_bytes());
        text.split(',').any(|uri| uri.trim_matches([' ', '\t']) == URI)
    });
    let activation = Activation::of(&headers);
    assert_eq!(activation.activated, listed);
    assert_eq!(activation.legacy_header, headers.contains_key(X_A2A_EXTENSIONS));
});

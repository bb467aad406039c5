//! The order of member names: by UTF-16 code units (RFC 8785 section 3.2.3), computed on UTF-8.
//!
//! UTF-8 sorts like code points. UTF-16 differs from that in one place: U+E000 to U+FFFF (UTF-8 lead bytes `EE`, `EF`)
//! come after the supplementary planes (lead bytes `F0` to `F4`), whose code units are surrogates. So it is enough to
//! exchange these lead bytes' ranks.

use std::cmp::Ordering;

#[inline]
const fn rank(byte: u8) -> u8 {
    match byte {
        0xEE..=0xEF => byte + 5,
        0xF0..=0xF4 => byte - 2,
        _ => byte,
    }
}

/// Compares two names by their UTF-16 code units.
#[inline]
pub(super) fn compare(a: &[u8], b: &[u8]) -> Ordering {
    match a.iter().zip(b).find(|(x, y)| x != y) {
        Some((x, y)) => rank(*x).cmp(&rank(*y)),
        None => a.len().cmp(&b.len()),
    }
}

/// The first eight bytes of a name as a number that sorts like it: where the numbers of two names differ, they compare as
/// the names do.
///
/// `text` begins with the name and may go on after `length`, which lets most names be read as one word.
#[inline]
pub(super) fn prefix(text: &[u8], length: usize) -> u64 {
    let word = match text.first_chunk::<8>() {
        Some(first) => u64::from_be_bytes(*first) & mask(length),
        None => {
            let mut first = [0; 8];
            let kept = length.min(text.len()).min(8);
            first[..kept].copy_from_slice(&text[..kept]);
            u64::from_be_bytes(first)
        }
    };
    if word & 0x8080_8080_8080_8080 == 0 { word } else { u64::from_be_bytes(word.to_be_bytes().map(rank)) }
}

/// Keeps the `length` most significant bytes.
#[inline]
fn mask(length: usize) -> u64 {
    if length >= 8 { u64::MAX } else { !(u64::MAX >> (8 * length)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn by_utf16(a: &str, b: &str) -> Ordering {
        a.encode_utf16().cmp(b.encode_utf16())
    }

    proptest! {
        #[test]
        fn names_compare_as_their_utf16_code_units_do(
            a in "[a\u{0}\u{7f}\u{d7ff}\u{e000}\u{fb33}\u{ffff}\u{10000}\u{1f600}\u{10ffff}]{0,5}",
            b in "[a\u{0}\u{7f}\u{d7ff}\u{e000}\u{fb33}\u{ffff}\u{10000}\u{1f600}\u{10ffff}]{0,5}",
            tail in "[a-z]{0,9}",
        ) {
            let (a, b) = (a + &tail, b + &tail);
            prop_assert_eq!(compare(a.as_bytes(), b.as_bytes()), by_utf16(&a, &b));
            let prefixes = prefix(a.as_bytes(), a.len()).cmp(&prefix(b.as_bytes(), b.len()));
            prop_assert!(prefixes == Ordering::Equal || prefixes == by_utf16(&a, &b));
        }

        #[test]
        fn a_prefix_ignores_what_follows_the_name(name in "[a-z\u{e9}\u{1f600}]{0,6}", rest in "[a-z\"]{0,12}") {
            let text = format!("{name}{rest}");
            prop_assert_eq!(prefix(text.as_bytes(), name.len()), prefix(name.as_bytes(), name.len()));
        }
    }
}

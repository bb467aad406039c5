//! Number tokens: their grammar, their double, and whether that double is the number that was written.

use super::error::{SyntaxError, SyntaxErrorReason, ViolationReason};

/// What to do with integers that no double equals.
///
/// RFC 8785 writes every number as its nearest double, so that `9007199254740993` and `9007199254740992` have one
/// canonical form: a client that sends 64-bit identifiers as JSON numbers could see two different requests taken for
/// one.
///
/// This concerns *integer tokens*, numbers written without fraction and exponent. Whoever writes `9007199254740993.0` or
/// `1e23` writes a floating point number and gets the nearest one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Numbers {
    /// Refuse an integer token whose double is another integer. `9007199254740992` passes, as every exactly representable
    /// integer does (and `-0`, which is 0); `9007199254740993` is a
    /// [`LossyInteger`](ViolationReason::LossyInteger).
    #[default]
    Strict,
    /// Round integers as RFC 8785 does.
    Rfc8785,
}

/// The longest number token that is converted, in bytes.
///
/// The double nearest to a longer one can differ between parsers: some stop reading, some saturate the exponent.
const MAX_LENGTH: usize = 1024;

/// Integers below this (2^53) equal their double, and so do all between.
const FIRST_GAP: f64 = 9_007_199_254_740_992.0;

/// A token that follows the grammar.
pub(super) struct Token {
    /// The offset after it.
    pub(super) end: usize,
    /// It is known to be its own canonical form; if not, it may still be.
    pub(super) canonical: bool,
    /// It has neither fraction nor exponent.
    integer: bool,
}

/// What a token stands for.
pub(super) enum Value {
    /// A number whose token is canonical.
    AsWritten,
    /// A number that its canonical form writes otherwise.
    Double(f64),
    /// No number that a double holds.
    Refused(ViolationReason),
}

/// Reads the number token at `start`, which begins with a minus sign or a digit.
#[inline]
pub(super) fn scan(bytes: &[u8], start: usize) -> Result<Token, SyntaxError> {
    let negative = bytes.get(start) == Some(&b'-');
    let whole = start + usize::from(negative);
    let mut end = skip_digits(bytes, whole);
    let zero = bytes.get(whole) == Some(&b'0');
    let whole_digits = end - whole;
    if whole_digits == 0 || (zero && whole_digits > 1) {
        return Err(invalid(bytes, start, end));
    }
    // Up to 15 significant digits survive the way through a double unchanged, and 0 has no sign.
    let mut token = Token { end, canonical: whole_digits <= 15 && !(zero && negative), integer: true };
    if bytes.get(end) == Some(&b'.') {
        let fraction = end + 1;
        end = skip_digits(bytes, fraction);
        if end == fraction {
            return Err(invalid(bytes, start, end));
        }
        token.integer = false;
        token.canonical = bytes[end - 1] != b'0'
            && if zero {
                // From 0.000001 on; smaller numbers have an exponent.
                end - fraction <= 15 && bytes[fraction..end].iter().take_while(|&&digit| digit == b'0').count() < 6
            } else {
                whole_digits + (end - fraction) <= 15
            };
        token.end = end;
    }
    if let Some(b'e' | b'E') = bytes.get(end) {
        end += 1;
        if let Some(b'+' | b'-') = bytes.get(end) {
            end += 1;
        }
        let exponent = end;
        end = skip_digits(bytes, exponent);
        if end == exponent {
            return Err(invalid(bytes, start, end));
        }
        token = Token { end, canonical: false, integer: false };
    }
    Ok(token)
}

#[cold]
fn invalid(bytes: &[u8], start: usize, end: usize) -> SyntaxError {
    if end >= bytes.len() {
        SyntaxError::new(end, SyntaxErrorReason::UnexpectedEnd)
    } else {
        SyntaxError::new(start, SyntaxErrorReason::InvalidNumber)
    }
}

#[inline]
fn skip_digits(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(u8::is_ascii_digit) {
        at += 1;
    }
    at
}

/// The value of a token that [`scan`] did not find canonical; `text` is the token.
pub(super) fn value(token: &Token, text: &str, numbers: Numbers) -> Value {
    if text.len() > MAX_LENGTH {
        return Value::Refused(ViolationReason::NumberTooLong);
    }
    let Ok(double) = text.parse::<f64>() else {
        return Value::Refused(ViolationReason::NumberOverflow);
    };
    if !double.is_finite() {
        return Value::Refused(ViolationReason::NumberOverflow);
    }
    if token.integer && double != 0.0 && double.abs() < FIRST_GAP {
        return Value::AsWritten;
    }
    if token.integer && numbers == Numbers::Strict && !is_exact(text.trim_start_matches('-').as_bytes()) {
        return Value::Refused(ViolationReason::LossyInteger);
    }
    Value::Double(double)
}

/// Whether a double equals the integer with these decimal digits, which must be within a double's range: the integer may
/// have any number of trailing zero bits, and 53 bits before them.
fn is_exact(digits: &[u8]) -> bool {
    /// As many words as the largest double has, and the decimal digits that fit one.
    const WORDS: usize = 1024 / 64;
    const DIGITS: usize = 19;

    let mut words = [0u64; WORDS];
    let mut used = 0;
    for chunk in digits.chunks(DIGITS) {
        let scale = 10u64.pow(chunk.len() as u32);
        let mut carry = chunk.iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0'));
        for word in &mut words[..used] {
            let product = u128::from(*word) * u128::from(scale) + u128::from(carry);
            *word = product as u64;
            carry = (product >> 64) as u64;
        }
        if carry != 0 {
            let Some(word) = words.get_mut(used) else {
                return false;
            };
            *word = carry;
            used += 1;
        }
    }
    let lowest = words.iter().position(|&word| word != 0);
    let highest = words.iter().rposition(|&word| word != 0);
    let (Some(lowest), Some(highest)) = (lowest, highest) else {
        return true;
    };
    let lowest_bit = 64 * lowest + words[lowest].trailing_zeros() as usize;
    let highest_bit = 64 * highest + 63 - words[highest].leading_zeros() as usize;
    highest_bit - lowest_bit < 53
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn integers_around_the_first_gap_are_told_apart() {
        for (digits, exact) in [
            ("9007199254740991", true),
            ("9007199254740992", true),
            ("9007199254740993", false),
            ("9007199254740994", true),
            ("18446744073709551615", false),
            ("18446744073709551616", true),
            ("100000000000000000000000", false),
            ("99999999999999991611392", true),
            ("0", true),
        ] {
            assert_eq!(is_exact(digits.as_bytes()), exact, "{digits}");
        }
    }

    #[test]
    fn the_largest_double_is_exact_and_its_neighbours_are_not() {
        let largest = format!("{:.0}", f64::MAX);
        assert!(is_exact(largest.as_bytes()));
        let below = format!("{}7", &largest[..largest.len() - 1]);
        assert!(!is_exact(below.as_bytes()));
    }

    proptest! {
        #[test]
        fn an_integer_is_exact_if_its_double_prints_the_same_digits(
            double in (53u32..1023, 0u64..1 << 52).prop_map(|(exponent, mantissa)| {
                f64::from_bits(u64::from(exponent + 1023) << 52 | mantissa)
            }),
            off_by in 0u8..3,
        ) {
            let mut digits = format!("{double:.0}").into_bytes();
            if let Some(last) = digits.last_mut() && *last < b'9' - off_by {
                *last += off_by;
            }
            let text = String::from_utf8(digits).unwrap();
            let nearest: f64 = text.parse().unwrap();
            prop_assert_eq!(is_exact(text.as_bytes()), format!("{nearest:.0}") == text);
        }
    }
}

//! String tokens: where they end, whether they are canonical, and what they say.

use super::error::{SyntaxError, SyntaxErrorReason};

/// A string token that follows the grammar.
pub(super) struct Token {
    /// The offset after the closing quote.
    pub(super) end: usize,
    /// The token is its own canonical form.
    pub(super) canonical: bool,
    /// It contains a backslash.
    pub(super) escaped: bool,
    /// Where it has an escaped surrogate without its other half.
    pub(super) lone_surrogate: Option<u32>,
}

/// Reads the string token whose opening quote stands at `start`.
#[inline]
pub(super) fn scan(bytes: &[u8], start: usize) -> Result<Token, SyntaxError> {
    let end = skip_plain(bytes, start + 1);
    if bytes.get(end) == Some(&b'"') {
        return Ok(Token { end: end + 1, canonical: true, escaped: false, lone_surrogate: None });
    }
    scan_escaped(bytes, end)
}

/// Goes on from the first byte of a string that is not plain.
fn scan_escaped(bytes: &[u8], mut at: usize) -> Result<Token, SyntaxError> {
    let mut token = Token { end: 0, canonical: true, escaped: false, lone_surrogate: None };
    loop {
        match bytes.get(at) {
            Some(b'"') => {
                token.end = at + 1;
                return Ok(token);
            }
            Some(b'\\') => {
                token.escaped = true;
                match bytes.get(at + 1) {
                    Some(b'n' | b'"' | b'\\' | b't' | b'r' | b'b' | b'f') => at += 2,
                    Some(b'/') => {
                        token.canonical = false;
                        at += 2;
                    }
                    Some(b'u') => at = unicode_escape(bytes, at, &mut token)?,
                    Some(_) => return Err(SyntaxError::new(at, SyntaxErrorReason::InvalidEscape)),
                    None => return Err(SyntaxError::new(at + 1, SyntaxErrorReason::UnexpectedEnd)),
                }
            }
            Some(_) => return Err(SyntaxError::new(at, SyntaxErrorReason::ControlCharacter)),
            None => return Err(SyntaxError::new(at, SyntaxErrorReason::UnexpectedEnd)),
        }
        at = skip_plain(bytes, at);
    }
}

/// Reads the `\uXXXX` at `at`, with its other half if it has one; returns the offset after it.
fn unicode_escape(bytes: &[u8], at: usize, token: &mut Token) -> Result<usize, SyntaxError> {
    let unit = hex4(bytes, at + 2).ok_or_else(|| SyntaxError::new(at, SyntaxErrorReason::InvalidEscape))?;
    match unit {
        HIGH_FIRST..=HIGH_LAST if low_half(bytes, at + 6).is_some() => {
            token.canonical = false;
            Ok(at + 12)
        }
        HIGH_FIRST..=LOW_LAST => {
            token.canonical = false;
            token.lone_surrogate.get_or_insert(at as u32);
            Ok(at + 6)
        }
        // RFC 8785 section 3.2.2.2: control characters without a short escape are `\u00xx`, in lower case.
        0x00..=0x07 | 0x0B | 0x0E..=0x1F => {
            token.canonical &= !bytes[at + 2..at + 6].iter().any(u8::is_ascii_uppercase);
            Ok(at + 6)
        }
        _ => {
            token.canonical = false;
            Ok(at + 6)
        }
    }
}

const HIGH_FIRST: u16 = 0xD800;
const HIGH_LAST: u16 = 0xDBFF;
const LOW_FIRST: u16 = 0xDC00;
const LOW_LAST: u16 = 0xDFFF;

/// The escaped low surrogate at `at`, if that is what stands there.
fn low_half(bytes: &[u8], at: usize) -> Option<u16> {
    let escape = bytes.get(at..at + 2)?;
    let unit = hex4(bytes, at + 2)?;
    (escape == b"\\u" && (LOW_FIRST..=LOW_LAST).contains(&unit)).then_some(unit)
}

fn hex4(bytes: &[u8], at: usize) -> Option<u16> {
    let digits: &[u8; 4] = bytes.get(at..)?.first_chunk()?;
    let [a, b, c, d] = digits.map(|digit| HEX[digit as usize]);
    // An invalid digit is 0xFF: one look at the high nibbles tells all four.
    ((a | b | c | d) & 0xF0 == 0).then_some(u16::from(a) << 12 | u16::from(b) << 8 | u16::from(c) << 4 | u16::from(d))
}

const HEX: [u8; 256] = {
    let mut table = [0xFF; 256];
    let mut value = 0;
    while value < 16 {
        table[b"0123456789abcdef"[value] as usize] = value as u8;
        table[b"0123456789ABCDEF"[value] as usize] = value as u8;
        value += 1;
    }
    table
};

/// The offset of the first byte from `at` on that is a quote, a backslash or a control character; the end if none is.
#[inline]
pub(super) fn skip_plain(bytes: &[u8], mut at: usize) -> usize {
    // Most strings are short: look at eight bytes at a time as one word ...
    for _ in 0..8 {
        let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) else {
            return skip_plain_end(bytes, at);
        };
        let special = special_bytes(u64::from_le_bytes(*word));
        if special != 0 {
            return at + (special.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    skip_plain_long(bytes, at)
}

/// ... and in long ones at blocks that the compiler turns into vector instructions.
fn skip_plain_long(bytes: &[u8], mut at: usize) -> usize {
    while let Some(block) = bytes.get(at..).and_then(|rest| rest.first_chunk::<64>()) {
        let special = block.iter().fold(false, |any, &byte| any | (byte < 0x20) | (byte == b'"') | (byte == b'\\'));
        if special {
            break;
        }
        at += 64;
    }
    while let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let special = special_bytes(u64::from_le_bytes(*word));
        if special != 0 {
            return at + (special.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    skip_plain_end(bytes, at)
}

#[cold]
fn skip_plain_end(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\').unwrap_or(rest.len())
}

/// Marks (with its high bit) the lowest byte of a word that is a quote, a backslash or a control character.
///
/// Bytes above the lowest one may be marked wrongly, by the borrow of the subtractions.
#[inline(always)]
fn special_bytes(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let quote = word ^ (ONES * b'"' as u64);
    let backslash = word ^ (ONES * b'\\' as u64);
    ((word.wrapping_sub(ONES * 0x20) & !word)
        | (quote.wrapping_sub(ONES) & !quote)
        | (backslash.wrapping_sub(ONES) & !backslash))
        & HIGHS
}

/// The content of a string token, between its quotes, in pieces.
pub(super) struct Pieces<'a> {
    rest: &'a str,
}

/// A part of a string.
pub(super) enum Piece<'a> {
    /// Text that stands for itself.
    Plain(&'a str),
    /// A character that was escaped, U+FFFD for a lone surrogate, and the length of the escape sequence in bytes.
    Escaped { character: char, length: u8 },
}

impl<'a> Pieces<'a> {
    /// `content` must be what [`scan`] accepted, without the quotes.
    pub(super) fn new(content: &'a str) -> Self {
        Self { rest: content }
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        let bytes = self.rest.as_bytes();
        if *bytes.first()? != b'\\' {
            let (plain, rest) = self.rest.split_at(skip_plain(bytes, 0).max(1));
            self.rest = rest;
            return Some(Piece::Plain(plain));
        }
        let (character, length) = match bytes.get(1)? {
            b'n' => ('\n', 2),
            b't' => ('\t', 2),
            b'r' => ('\r', 2),
            b'b' => ('\u{8}', 2),
            b'f' => ('\u{c}', 2),
            b'u' => unescape_unicode(bytes),
            &itself => (char::from(itself), 2),
        };
        self.rest = self.rest.get(usize::from(length)..).unwrap_or_default();
        Some(Piece::Escaped { character, length })
    }
}

/// The character of the `\u` escape that `bytes` begin with, and the escape's length.
fn unescape_unicode(bytes: &[u8]) -> (char, u8) {
    let unit = hex4(bytes, 2).unwrap_or(HIGH_FIRST);
    if let HIGH_FIRST..=HIGH_LAST = unit
        && let Some(low) = low_half(bytes, 6)
    {
        let code = 0x10000 + (u32::from(unit - HIGH_FIRST) << 10) + u32::from(low - LOW_FIRST);
        return (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 12);
    }
    (char::from_u32(u32::from(unit)).unwrap_or(char::REPLACEMENT_CHARACTER), 6)
}

/// Appends the decoded content of a string token.
pub(super) fn unescape_into(content: &str, out: &mut String) {
    for piece in Pieces::new(content) {
        match piece {
            Piece::Plain(text) => out.push_str(text),
            Piece::Escaped { character, .. } => out.push(character),
        }
    }
}

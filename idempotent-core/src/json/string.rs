//! String tokens: where they end, whether they are canonical, and what they say.

use std::ops::Range;

use wide::u8x16;

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
                // Not a `match` over the letters: which one comes is hard to predict for a processor, and for most of them
                // it makes no difference.
                let Some(&letter) = bytes.get(at + 1) else {
                    return Err(SyntaxError::new(at + 1, SyntaxErrorReason::UnexpectedEnd));
                };
                if SHORT_ESCAPES[usize::from(letter)] {
                    at += 2;
                } else if letter == b'u' {
                    at = unicode_escape(bytes, at, &mut token)?;
                } else if letter == b'/' {
                    token.canonical = false;
                    at += 2;
                } else {
                    return Err(SyntaxError::new(at, SyntaxErrorReason::InvalidEscape));
                }
            }
            Some(_) => return Err(SyntaxError::new(at, SyntaxErrorReason::ControlCharacter)),
            None => return Err(SyntaxError::new(at, SyntaxErrorReason::UnexpectedEnd)),
        }
        // Escapes often follow each other: whole texts in `\u` escapes are how some clients send what is not ASCII.
        if bytes.get(at) != Some(&b'\\') {
            at = skip_plain(bytes, at);
        }
    }
}

/// The letters of the escapes that are canonical.
const SHORT_ESCAPES: [bool; 256] = {
    let mut table = [false; 256];
    let letters = b"\"\\bfnrt";
    let mut index = 0;
    while index < letters.len() {
        table[letters[index] as usize] = true;
        index += 1;
    }
    table
};

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

#[inline]
fn hex4(bytes: &[u8], at: usize) -> Option<u16> {
    let digits: &[u8; 4] = bytes.get(at..)?.first_chunk()?;
    let value = |digit: usize| HEX[usize::from(digits[digit])];
    let (a, b, c, d) = (value(0), value(1), value(2), value(3));
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
pub(super) fn skip_plain(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    let (blocks, last) = rest.as_chunks::<16>();
    for (index, block) in blocks.iter().enumerate() {
        let special = special_bytes(u8x16::new(*block));
        if special != 0 {
            return at + 16 * index + special.trailing_zeros() as usize;
        }
    }
    at + rest.len() - last.len() + skip_plain_end(last)
}

/// A bit for each byte, set if it is a quote, a backslash or a control character.
#[inline(always)]
fn special_bytes(block: u8x16) -> u32 {
    const LAST_CONTROL: u8x16 = u8x16::new([0x1F; 16]);
    const QUOTE: u8x16 = u8x16::new([b'"'; 16]);
    const BACKSLASH: u8x16 = u8x16::new([b'\\'; 16]);
    (block.min(LAST_CONTROL).simd_eq(block) | block.simd_eq(QUOTE) | block.simd_eq(BACKSLASH)).to_bitmask()
}

#[cold]
fn skip_plain_end(bytes: &[u8]) -> usize {
    bytes.iter().position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\').unwrap_or(bytes.len())
}

/// The content of a string token, between its quotes, in pieces.
pub(super) struct Pieces<'a> {
    content: &'a [u8],
    at: usize,
}

/// A part of a string.
pub(super) enum Piece {
    /// Text that stands for itself.
    Plain,
    /// A character that was escaped; U+FFFD for a lone surrogate.
    Escaped(char),
}

impl<'a> Pieces<'a> {
    /// `content` must be what [`scan`] accepted, without the quotes.
    pub(super) fn new(content: &'a str) -> Self {
        Self { content: content.as_bytes(), at: 0 }
    }
}

impl Iterator for Pieces<'_> {
    /// A piece, and where it stands in the content.
    type Item = (Piece, Range<usize>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let start = self.at;
        let rest = self.content.get(start..)?;
        let (piece, length) = match rest {
            [] => return None,
            [b'\\', b'u', ..] => unescape_unicode(rest),
            [b'\\', letter, ..] => (Piece::Escaped(unescape_short(*letter)), 2),
            _ => (Piece::Plain, skip_plain(rest, 0).max(1)),
        };
        self.at += length;
        Some((piece, start..self.at))
    }
}

/// The character of a backslash and one more.
fn unescape_short(letter: u8) -> char {
    match letter {
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        itself => char::from(itself),
    }
}

/// The `\u` escape that `bytes` begin with, and its length.
#[inline]
fn unescape_unicode(bytes: &[u8]) -> (Piece, usize) {
    let unit = hex4(bytes, 2).unwrap_or(HIGH_FIRST);
    let (code, length) = match unit {
        HIGH_FIRST..=HIGH_LAST => match low_half(bytes, 6) {
            Some(low) => (0x10000 + (u32::from(unit - HIGH_FIRST) << 10) + u32::from(low - LOW_FIRST), 12),
            None => (u32::from(unit), 6),
        },
        _ => (u32::from(unit), 6),
    };
    (Piece::Escaped(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)), length)
}

/// Appends the decoded content of a string token.
pub(super) fn unescape_into(content: &str, out: &mut String) {
    for (piece, span) in Pieces::new(content) {
        match piece {
            Piece::Plain => out.push_str(&content[span]),
            Piece::Escaped(character) => out.push(character),
        }
    }
}

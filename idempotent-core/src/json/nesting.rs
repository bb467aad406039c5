//! What lies deeper than the scanner goes: read for its grammar only, without recursion.
//!
//! A body that is nested too deep has no hash, but it can still turn out not to be JSON at all, which is another error.
//! Ten megabytes of brackets are an easy thing to send, so this has to be as fast as hashing, and the call stack must not
//! grow with them.

use super::error::SyntaxError;
use super::{number, pass, string};

/// The containers that are open: one bit each, set for an object.
#[derive(Default)]
struct Open {
    bits: Vec<u64>,
    depth: usize,
}

impl Open {
    #[inline]
    fn push(&mut self, is_object: bool) {
        let (word, bit) = (self.depth / 64, self.depth % 64);
        if word == self.bits.len() {
            self.bits.push(0);
        }
        self.bits[word] = self.bits[word] & !(1 << bit) | u64::from(is_object) << bit;
        self.depth += 1;
    }

    /// Whether the innermost one is an object.
    #[inline]
    fn in_object(&self) -> bool {
        let top = self.depth.wrapping_sub(1);
        self.bits.get(top / 64).is_some_and(|word| word >> (top % 64) & 1 != 0)
    }
}

/// The offset after the container that begins at `start`.
pub(super) fn skip(bytes: &[u8], start: usize) -> Result<usize, SyntaxError> {
    let mut open = Open::default();
    let mut at = start;
    loop {
        // A value begins at `at`.
        match bytes.get(at) {
            Some(b'[') => {
                open.push(false);
                at = pass::skip_whitespace(bytes, at + 1);
                if bytes.get(at) != Some(&b']') {
                    continue;
                }
            }
            Some(b'{') => {
                open.push(true);
                at = pass::skip_whitespace(bytes, at + 1);
                if bytes.get(at) != Some(&b'}') {
                    at = name(bytes, at)?;
                    continue;
                }
            }
            _ => at = scalar(bytes, at)?,
        }
        // A value ended before `at`, or a container that is empty ends there.
        loop {
            at = pass::skip_whitespace(bytes, at);
            match (bytes.get(at), open.in_object()) {
                (Some(b']'), false) | (Some(b'}'), true) => {
                    open.depth -= 1;
                    at += 1;
                    if open.depth == 0 {
                        return Ok(at);
                    }
                }
                (Some(b','), false) => {
                    at = pass::skip_whitespace(bytes, at + 1);
                    break;
                }
                (Some(b','), true) => {
                    at = name(bytes, pass::skip_whitespace(bytes, at + 1))?;
                    break;
                }
                _ => return Err(SyntaxError::unexpected(bytes, at)),
            }
        }
    }
}

/// Reads a member's name and colon; returns where its value begins.
#[inline]
fn name(bytes: &[u8], at: usize) -> Result<usize, SyntaxError> {
    if bytes.get(at) != Some(&b'"') {
        return Err(SyntaxError::unexpected(bytes, at));
    }
    let colon = pass::skip_whitespace(bytes, string::scan(bytes, at)?.end);
    if bytes.get(colon) != Some(&b':') {
        return Err(SyntaxError::unexpected(bytes, colon));
    }
    Ok(pass::skip_whitespace(bytes, colon + 1))
}

fn scalar(bytes: &[u8], at: usize) -> Result<usize, SyntaxError> {
    match bytes.get(at) {
        Some(b'"') => Ok(string::scan(bytes, at)?.end),
        Some(b'-' | b'0'..=b'9') => Ok(number::scan(bytes, at)?.end),
        _ => pass::literal(bytes, at).map(|(end, _)| end),
    }
}

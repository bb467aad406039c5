//! What lies deeper than the scanner goes: read for its grammar only, without recursion.
//!
//! A body that is nested too deep has no hash, but it can still turn out not to be JSON at all, which is another error.
//! Ten megabytes of brackets are an easy thing to send, so this has to be as fast as hashing them would be, and the call
//! stack must not grow with them.

use super::error::SyntaxError;
use super::{number, pass, string};

/// The containers that are open. Arrays are only counted; of objects it is known how deep they are, as runs of objects
/// that are directly in each other.
///
/// The runs around the innermost one are in a vector of their own, not in a field, because then the compiler would keep
/// all of this in memory instead of in registers.
#[derive(Default, Clone, Copy)]
struct Open {
    depth: u32,
    objects: Run,
}

/// Objects from one depth to another; none before there is a first one.
#[derive(Clone, Copy)]
struct Run {
    outermost: u32,
    innermost: u32,
}

impl Default for Run {
    fn default() -> Self {
        Self { outermost: 1, innermost: 0 }
    }
}

impl Open {
    /// How many arrays are open that are in no object further inside; 0 where the innermost container is an object.
    #[inline(always)]
    fn arrays(self) -> usize {
        (self.depth - self.objects.innermost) as usize
    }

    #[inline(always)]
    fn push_object(&mut self, outer: &mut Vec<Run>) {
        if self.objects.innermost != self.depth {
            outer.push(self.objects);
            self.objects.outermost = self.depth + 1;
        }
        self.depth += 1;
        self.objects.innermost = self.depth;
    }

    /// Opens as many more, each directly in the one before it.
    #[inline(always)]
    fn push_inner_objects(&mut self, count: usize) {
        self.depth += count as u32;
        self.objects.innermost += count as u32;
    }

    /// How many objects are open that are directly in each other, from the innermost container on.
    #[inline(always)]
    fn objects(self) -> usize {
        if self.arrays() == 0 { (self.objects.innermost + 1 - self.objects.outermost) as usize } else { 0 }
    }

    /// Closes some of these.
    #[inline(always)]
    fn pop_objects(&mut self, count: usize, outer: &mut Vec<Run>) {
        self.depth -= count as u32;
        self.objects.innermost -= count as u32;
        if self.objects.innermost < self.objects.outermost {
            self.objects = outer.pop().unwrap_or_default();
        }
    }
}

/// The offset after the container that begins at `start`.
pub(super) fn skip(bytes: &[u8], start: usize) -> Result<usize, SyntaxError> {
    let mut open = Open::default();
    let mut outer = Vec::new();
    let mut at = start;
    loop {
        // A value begins at `at`.
        match bytes.get(at) {
            Some(b'[') => {
                let brackets = run(bytes, at, b'[', usize::MAX);
                open.depth += brackets as u32;
                at = skip_whitespace(bytes, at + brackets);
                if bytes.get(at) != Some(&b']') {
                    continue;
                }
            }
            Some(b'{') => {
                let brace = at;
                open.push_object(&mut outer);
                at = skip_whitespace(bytes, at + 1);
                if bytes.get(at) != Some(&b'}') {
                    at = name(bytes, at)?;
                    if bytes.get(at) == Some(&b'{') {
                        let repeats = repeats(bytes, brace, at);
                        open.push_inner_objects(repeats);
                        at += repeats * (at - brace);
                    }
                    continue;
                }
            }
            _ => at = scalar(bytes, at)?,
        }
        // A value ended before `at`, or a container that is empty ends there.
        loop {
            at = skip_whitespace(bytes, at);
            let arrays = open.arrays();
            match bytes.get(at) {
                Some(b']') if arrays > 0 => {
                    let brackets = run(bytes, at, b']', arrays);
                    open.depth -= brackets as u32;
                    at += brackets;
                }
                Some(b'}') if arrays == 0 => {
                    let braces = run(bytes, at, b'}', open.objects());
                    open.pop_objects(braces, &mut outer);
                    at += braces;
                }
                Some(b',') => {
                    at = skip_whitespace(bytes, at + 1);
                    if arrays == 0 {
                        at = name(bytes, at)?;
                    }
                    break;
                }
                _ => return Err(SyntaxError::unexpected(bytes, at)),
            }
            if open.depth == 0 {
                return Ok(at);
            }
        }
    }
}

/// How often the text from `start` to `end`, which opens an object up to a member's value, is repeated after `end`, at least:
/// the same text where a value is expected opens the same object.
fn repeats(bytes: &[u8], start: usize, end: usize) -> usize {
    let (first, shifted) = (bytes[start..].as_chunks::<32>().0, bytes[end..].as_chunks::<32>().0);
    let equal = first.iter().zip(shifted).take_while(|(a, b)| a == b).count() * 32;
    equal / (end - start)
}

/// How often `byte`, which stands at `at`, is repeated there; at most `limit` times.
#[inline(always)]
fn run(bytes: &[u8], at: usize, byte: u8, limit: usize) -> usize {
    if limit > 1 && bytes.get(at + 1) == Some(&byte) { long_run(bytes, at, byte, limit) } else { 1 }
}

fn long_run(bytes: &[u8], at: usize, byte: u8, limit: usize) -> usize {
    let rest = &bytes[at..];
    let rest = &rest[..limit.min(rest.len())];
    let is_byte = |other: &u8| *other == byte;
    let blocks =
        rest.as_chunks::<32>().0.iter().take_while(|block| block.iter().fold(true, |all, other| all & is_byte(other)));
    let length = blocks.count() * 32;
    length + rest[length..].iter().take_while(|other| is_byte(other)).count()
}

#[inline(always)]
fn skip_whitespace(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at) {
        Some(..=b' ') => pass::skip_whitespace(bytes, at),
        _ => at,
    }
}

/// Reads a member's name and colon; returns where its value begins.
#[inline(always)]
fn name(bytes: &[u8], at: usize) -> Result<usize, SyntaxError> {
    if bytes.get(at) != Some(&b'"') {
        return Err(SyntaxError::unexpected(bytes, at));
    }
    // Short names byte by byte: the branches of names that repeat are predicted, so nothing waits for where one ends.
    let mut end = at + 1;
    let end = loop {
        match bytes.get(end) {
            Some(b'"') => break end + 1,
            Some(b' '..=b'[' | b']'..) if end - at <= 8 => end += 1,
            _ => break string::scan(bytes, at)?.end,
        }
    };
    let colon = skip_whitespace(bytes, end);
    if bytes.get(colon) != Some(&b':') {
        return Err(SyntaxError::unexpected(bytes, colon));
    }
    Ok(skip_whitespace(bytes, colon + 1))
}

fn scalar(bytes: &[u8], at: usize) -> Result<usize, SyntaxError> {
    match bytes.get(at) {
        Some(b'"') => Ok(string::scan(bytes, at)?.end),
        Some(b'-' | b'0'..=b'9') => Ok(number::scan(bytes, at)?.end),
        _ => pass::literal(bytes, at).map(|(end, _)| end),
    }
}

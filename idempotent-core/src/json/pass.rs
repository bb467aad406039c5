//! The one pass: recursive descent over the body that writes the tape.

use super::document::Kind;
use super::error::{SyntaxError, SyntaxErrorReason, ViolationReason};
use super::number::{self, Numbers};
use super::tape::{Entry, Found, Object, OpenMember, PLAIN, Tape, name};
use super::{nesting, order, string};

/// How deep arrays and objects may nest, counted from the body's root: `[]` is one deep.
///
/// This is how deep serde_json reads by default, so that what has a hash can also be deserialized.
pub const MAX_DEPTH: usize = 127;

/// How serde_json's private tokens begin: with some of its features turned on, an object whose first member has such a
/// name is not read as an object.
const PRIVATE_NAME: &[u8] = b"$serde_json::private::";

pub(super) struct Pass<'a> {
    text: &'a str,
    bytes: &'a [u8],
    tape: &'a mut Tape,
    numbers: Numbers,
    at: usize,
    /// The value being read belongs to the root object's `params`.
    in_params: bool,
}

/// Whether a value's text is its own canonical form.
type IsCanonical = bool;

impl<'a> Pass<'a> {
    /// Reads all of `text` onto an empty tape.
    pub(super) fn run(text: &'a str, tape: &'a mut Tape, numbers: Numbers) -> Result<(), SyntaxError> {
        let mut pass = Pass { text, bytes: text.as_bytes(), tape, numbers, at: 0, in_params: false };
        pass.skip_whitespace();
        pass.value(0)?;
        pass.skip_whitespace();
        if pass.at == pass.bytes.len() {
            Ok(())
        } else {
            Err(SyntaxError::new(pass.at, SyntaxErrorReason::TrailingData))
        }
    }

    #[inline(always)]
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Returns whether there was none.
    #[inline(always)]
    fn skip_whitespace(&mut self) -> IsCanonical {
        // One look is enough for compact JSON: everything above a space is no white space.
        if self.peek().is_some_and(|byte| byte > b' ') {
            return true;
        }
        let start = self.at;
        self.at = skip_whitespace(self.bytes, start);
        self.at == start
    }

    #[inline(always)]
    fn push(&mut self, start: usize, index: u32, kind: Kind, canonical: bool) {
        self.tape.entries.push(Entry { start: start as u32, end: self.at as u32, index, kind, canonical });
    }

    /// Reads the value that begins here, inside `depth` containers.
    fn value(&mut self, depth: usize) -> Result<IsCanonical, SyntaxError> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'{') if depth < MAX_DEPTH => self.object(depth + 1),
            Some(b'[') if depth < MAX_DEPTH => self.array(depth + 1),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'{' | b'[') => self.too_deep(),
            _ => {
                let start = self.at;
                let (end, kind) = literal(self.bytes, start)?;
                self.at = end;
                self.push(start, 0, kind, true);
                Ok(true)
            }
        }
    }

    #[inline]
    fn string(&mut self) -> Result<IsCanonical, SyntaxError> {
        let start = self.at;
        let token = string::scan(self.bytes, start)?;
        self.at = token.end;
        self.push(start, PLAIN, Kind::String, token.canonical);
        if let Some(offset) = token.lone_surrogate {
            self.violation(ViolationReason::LoneSurrogate, offset);
        }
        Ok(token.canonical)
    }

    fn number(&mut self) -> Result<IsCanonical, SyntaxError> {
        let start = self.at;
        let token = number::scan(self.bytes, start)?;
        self.at = token.end;
        if token.canonical {
            self.push(start, 0, Kind::Number, true);
            return Ok(true);
        }
        match number::value(&token, &self.text[start..token.end], self.numbers) {
            number::Value::AsWritten => {
                self.push(start, 0, Kind::Number, true);
                Ok(true)
            }
            number::Value::Double(double) => {
                self.push(start, self.tape.numbers.len() as u32, Kind::Number, false);
                self.tape.numbers.push(double);
                Ok(false)
            }
            number::Value::Refused(reason) => {
                self.push(start, 0, Kind::Number, true);
                self.violation(reason, start as u32);
                Ok(true)
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<IsCanonical, SyntaxError> {
        let start = self.at;
        let entry = self.tape.entries.len();
        self.push(start, 0, Kind::Array, false);
        self.at += 1;
        let mut canonical = self.skip_whitespace();
        if self.peek() == Some(b']') {
            self.at += 1;
        } else {
            loop {
                canonical &= self.value(depth)?;
                canonical &= self.skip_whitespace();
                match self.peek() {
                    Some(b',') => {
                        self.at += 1;
                        canonical &= self.skip_whitespace();
                    }
                    Some(b']') => {
                        self.at += 1;
                        break;
                    }
                    _ => return Err(SyntaxError::unexpected(self.bytes, self.at)),
                }
            }
        }
        let next = self.tape.entries.len() as u32;
        self.close(entry, next, canonical);
        Ok(canonical)
    }

    fn object(&mut self, depth: usize) -> Result<IsCanonical, SyntaxError> {
        let start = self.at;
        let entry = self.tape.entries.len();
        let object = self.tape.objects.len();
        let first_open = self.tape.open.len();
        self.push(start, 0, Kind::Object, false);
        self.tape.objects.push(Object::default());
        self.at += 1;
        let mut canonical = self.skip_whitespace();
        if self.peek() == Some(b'}') {
            self.at += 1;
        } else {
            loop {
                canonical &= self.name()?;
                canonical &= self.skip_whitespace();
                if self.peek() != Some(b':') {
                    return Err(SyntaxError::unexpected(self.bytes, self.at));
                }
                self.at += 1;
                canonical &= self.skip_whitespace();
                canonical &= if depth == 1 { self.root_member()? } else { self.value(depth)? };
                canonical &= self.skip_whitespace();
                match self.peek() {
                    Some(b',') => {
                        self.at += 1;
                        canonical &= self.skip_whitespace();
                    }
                    Some(b'}') => {
                        self.at += 1;
                        break;
                    }
                    _ => return Err(SyntaxError::unexpected(self.bytes, self.at)),
                }
            }
        }
        canonical &= self.sort_members(first_open);
        let first_member = self.tape.members.len();
        self.tape.members.extend(self.tape.open[first_open..].iter().map(|member| member.name));
        self.tape.open.truncate(first_open);
        self.tape.objects[object] = Object {
            next: self.tape.entries.len() as u32,
            first_member: first_member as u32,
            end_member: self.tape.members.len() as u32,
        };
        self.close(entry, object as u32, canonical);
        Ok(canonical)
    }

    /// Completes the entry of a container that ends here.
    #[inline]
    fn close(&mut self, entry: usize, index: u32, canonical: bool) {
        let entry = &mut self.tape.entries[entry];
        entry.end = self.at as u32;
        entry.index = index;
        entry.canonical = canonical;
    }

    /// Reads a member's name, and opens the member.
    #[inline]
    fn name(&mut self) -> Result<IsCanonical, SyntaxError> {
        let start = self.at;
        if self.peek() != Some(b'"') {
            return Err(SyntaxError::unexpected(self.bytes, start));
        }
        let token = string::scan(self.bytes, start)?;
        self.at = token.end;
        let member = self.tape.entries.len() as u32;
        let (index, prefix) = if token.escaped {
            self.escaped_name(start, &token)
        } else {
            (PLAIN, order::prefix(&self.bytes[start + 1..], token.end - start - 2))
        };
        self.push(start, index, Kind::String, token.canonical);
        self.tape.open.push(OpenMember { prefix, name: member });
        if prefix.to_be_bytes()[0] == PRIVATE_NAME[0] {
            self.note_private_name(member);
        }
        Ok(token.canonical)
    }

    /// Decodes a name; returns its index and its prefix.
    fn escaped_name(&mut self, start: usize, token: &string::Token) -> (u32, u64) {
        let decoded = &mut self.tape.unescaped;
        let from = decoded.len();
        string::unescape_into(&self.text[start + 1..token.end - 1], decoded);
        let prefix = order::prefix(&decoded.as_bytes()[from..], decoded.len() - from);
        let index = self.tape.names.len() as u32;
        self.tape.names.push((from as u32, decoded.len() as u32));
        if let Some(offset) = token.lone_surrogate {
            self.violation(ViolationReason::LoneSurrogate, offset);
        }
        (index, prefix)
    }

    #[cold]
    fn note_private_name(&mut self, member: u32) {
        self.tape.private_names |= self.in_params && self.name_of(member).starts_with(PRIVATE_NAME);
    }

    fn name_of(&self, member: u32) -> &[u8] {
        name(self.bytes, &self.tape.names, &self.tape.unescaped, &self.tape.entries[member as usize])
    }

    /// Reads the value of the root member whose name was read last.
    fn root_member(&mut self) -> Result<IsCanonical, SyntaxError> {
        let member = self.tape.entries.len() as u32 - 1;
        self.in_params = self.name_of(member) == b"params";
        let canonical = self.value(1)?;
        self.in_params = false;
        Ok(canonical)
    }

    /// Brings the members opened since `first` into canonical order; returns whether they were.
    #[inline]
    fn sort_members(&mut self, first: usize) -> IsCanonical {
        let Tape { entries, names, unescaped, open, .. } = &mut *self.tape;
        let members = &mut open[first..];
        let name = |member: &OpenMember| name(self.bytes, names, unescaped, &entries[member.name as usize]);
        let compare =
            |a: &OpenMember, b: &OpenMember| a.prefix.cmp(&b.prefix).then_with(|| order::compare(name(a), name(b)));
        if members.is_sorted_by(|a, b| compare(a, b).is_lt()) {
            return true;
        }
        // Of equal names the first in the text comes first.
        members.sort_unstable_by(|a, b| compare(a, b).then(a.name.cmp(&b.name)));
        let repeated =
            members.windows(2).filter(|pair| compare(&pair[0], &pair[1]).is_eq()).map(|pair| pair[1].name).min();
        if let Some(member) = repeated {
            let offset = entries[member as usize].start;
            self.violation(ViolationReason::DuplicateMember, offset);
        }
        false
    }

    #[cold]
    fn too_deep(&mut self) -> Result<IsCanonical, SyntaxError> {
        let start = self.at;
        self.at = nesting::skip(self.bytes, start)?;
        // Nothing below this can be looked at: an array without elements stands for it.
        let next = self.tape.entries.len() as u32 + 1;
        self.push(start, next, Kind::Array, true);
        self.violation(ViolationReason::NestingTooDeep, start as u32);
        Ok(true)
    }

    /// Keeps the violation that stands first in its part of the body. A repeated member is found only when its object ends,
    /// after what its values violate.
    #[cold]
    fn violation(&mut self, reason: ViolationReason, offset: u32) {
        let kept = if self.in_params { &mut self.tape.in_params } else { &mut self.tape.in_envelope };
        if kept.is_none_or(|found| offset < found.offset) {
            *kept = Some(Found { reason, offset });
        }
    }
}

#[inline]
pub(super) fn skip_whitespace(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(at) {
        at += 1;
    }
    at
}

/// Reads `true`, `false` or `null`; returns the offset after it.
#[inline]
pub(super) fn literal(bytes: &[u8], start: usize) -> Result<(usize, Kind), SyntaxError> {
    let (word, kind): (&[u8], Kind) = match bytes.get(start) {
        Some(b't') => (b"true", Kind::Bool),
        Some(b'f') => (b"false", Kind::Bool),
        Some(b'n') => (b"null", Kind::Null),
        _ => return Err(SyntaxError::unexpected(bytes, start)),
    };
    let matching = bytes[start..].iter().zip(word).take_while(|(a, b)| a == b).count();
    if matching == word.len() {
        Ok((start + matching, kind))
    } else {
        Err(SyntaxError::unexpected(bytes, start + matching))
    }
}

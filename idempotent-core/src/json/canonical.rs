//! The canonical form of a scanned value (RFC 8785), written as far as possible by copying from the body.
//!
//! What is canonical already is taken over as it stands, and pieces that follow each other in the body are handed on as
//! one: of a typical request most reaches the hash function without having been copied.

use super::document::{Kind, Node};
use super::string::{Piece, Pieces};
use super::tape::Entry;

/// Where a canonical form is written to: a buffer, a hash function.
pub trait Sink {
    /// Takes the next bytes.
    fn write(&mut self, bytes: &[u8]);
}

impl Sink for Vec<u8> {
    fn write(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Writes `node` without `excluded`. The document must be I-JSON.
pub(super) fn write<'a, S: Sink>(node: Node<'a>, excluded: Option<Node<'a>>, sink: &mut S) {
    let excluded = excluded.map(|excluded| Excluded { at: excluded.at, start: excluded.entry().start });
    let mut writer = Writer { body: node.document.text.as_bytes(), sink, from: 0, to: 0 };
    if excluded.as_ref().is_none_or(|excluded| excluded.at != node.at) {
        writer.value(node, excluded.as_ref());
    }
    writer.flush();
}

/// The value that is left out.
struct Excluded {
    at: u32,
    start: u32,
}

struct Writer<'a, S> {
    body: &'a [u8],
    sink: &'a mut S,
    /// The part of the body that is to be written next, and may still grow.
    from: usize,
    to: usize,
}

impl<S: Sink> Writer<'_, S> {
    fn flush(&mut self) {
        if self.from < self.to {
            self.sink.write(&self.body[self.from..self.to]);
        }
        self.from = self.to;
    }

    /// Writes a part of the body.
    #[inline]
    fn copy(&mut self, start: u32, end: u32) {
        if self.to != start as usize {
            self.flush();
            self.from = start as usize;
        }
        self.to = end as usize;
    }

    /// Writes a punctuation mark, if possible by taking the one that follows in the body.
    #[inline]
    fn mark(&mut self, mark: u8) {
        if self.from < self.to && self.body.get(self.to) == Some(&mark) {
            self.to += 1;
        } else {
            self.new_text(&[mark]);
        }
    }

    /// Writes something that the body does not have.
    fn new_text(&mut self, text: &[u8]) {
        if !text.is_empty() {
            self.flush();
            self.sink.write(text);
        }
    }

    fn value(&mut self, node: Node<'_>, excluded: Option<&Excluded>) {
        let entry = node.entry();
        let excluded = excluded.filter(|excluded| (entry.start..entry.end).contains(&excluded.start));
        if entry.canonical && excluded.is_none() {
            return self.copy(entry.start, entry.end);
        }
        match entry.kind {
            Kind::Object => self.object(node, excluded),
            Kind::Array => self.array(node, excluded),
            Kind::String => self.string(node),
            Kind::Number => self.new_text(ryu_js::Buffer::new().format_finite(node.double()).as_bytes()),
            Kind::Null | Kind::Bool => self.copy(entry.start, entry.end),
        }
    }

    fn object(&mut self, node: Node<'_>, excluded: Option<&Excluded>) {
        let document = node.document;
        self.mark(b'{');
        let mut separate = false;
        for &at in node.member_entries() {
            let value = Node { document, at: at + 1 };
            if excluded.is_some_and(|excluded| excluded.at == value.at) {
                continue;
            }
            if std::mem::replace(&mut separate, true) {
                self.mark(b',');
            }
            self.string(Node { document, at });
            self.mark(b':');
            self.value(value, excluded);
        }
        self.mark(b'}');
    }

    fn array(&mut self, node: Node<'_>, excluded: Option<&Excluded>) {
        self.mark(b'[');
        let mut separate = false;
        for element in node.elements() {
            if excluded.is_some_and(|excluded| excluded.at == element.at) {
                continue;
            }
            if std::mem::replace(&mut separate, true) {
                self.mark(b',');
            }
            self.value(element, excluded);
        }
        self.mark(b']');
    }

    #[inline]
    fn string(&mut self, node: Node<'_>) {
        let &Entry { start, end, canonical, .. } = node.entry();
        if canonical {
            self.copy(start, end);
        } else {
            self.rewritten_string(start, end, &node.document.text[start as usize + 1..end as usize - 1]);
        }
    }

    fn rewritten_string(&mut self, start: u32, end: u32, content: &str) {
        self.copy(start, start + 1);
        let mut unescaped = Unescaped::default();
        for (piece, span) in Pieces::new(content) {
            match piece {
                Piece::Escaped(character) if !(span.len() == 2 && has_short_escape(character)) => {
                    if unescaped.is_full() {
                        self.new_text(unescaped.take());
                    }
                    unescaped.push(character);
                }
                _ => {
                    self.new_text(unescaped.take());
                    self.copy(start + 1 + span.start as u32, start + 1 + span.end as u32);
                }
            }
        }
        self.new_text(unescaped.take());
        self.copy(end - 1, end);
    }
}

/// RFC 8785 section 3.2.2.2.
fn has_short_escape(character: char) -> bool {
    matches!(character, '"' | '\\' | '\u{8}' | '\u{c}' | '\n' | '\r' | '\t')
}

/// Characters that the body escapes, in their canonical form: written together, because some bodies escape all.
struct Unescaped {
    bytes: [u8; 96],
    used: usize,
}

impl Default for Unescaped {
    fn default() -> Self {
        Self { bytes: [0; 96], used: 0 }
    }
}

impl Unescaped {
    /// The canonical form of a control character, `\u001f`, is the longest.
    fn is_full(&self) -> bool {
        self.used + 6 > self.bytes.len()
    }

    fn take(&mut self) -> &[u8] {
        let used = std::mem::take(&mut self.used);
        &self.bytes[..used]
    }

    /// There must be room.
    #[inline]
    fn push(&mut self, character: char) {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let short = |letter| [b'\\', letter, 0, 0, 0, 0];
        let (form, length) = match character {
            '"' => (short(b'"'), 2),
            '\\' => (short(b'\\'), 2),
            '\u{8}' => (short(b'b'), 2),
            '\u{c}' => (short(b'f'), 2),
            '\n' => (short(b'n'), 2),
            '\r' => (short(b'r'), 2),
            '\t' => (short(b't'), 2),
            '\0'..='\u{1f}' => {
                let code = character as usize;
                ([b'\\', b'u', b'0', b'0', HEX[code >> 4], HEX[code & 15]], 6)
            }
            _ => {
                let mut utf8 = [0; 6];
                let length = character.encode_utf8(&mut utf8).len();
                (utf8, length)
            }
        };
        self.bytes[self.used..self.used + 6].copy_from_slice(&form);
        self.used += length;
    }
}

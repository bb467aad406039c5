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
        self.flush();
        self.sink.write(text);
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

    fn string(&mut self, node: Node<'_>) {
        let &Entry { start, end, canonical, .. } = node.entry();
        if canonical {
            return self.copy(start, end);
        }
        self.copy(start, start + 1);
        let mut at = start + 1;
        for piece in Pieces::new(&node.document.text[at as usize..end as usize - 1]) {
            match piece {
                Piece::Plain(text) => {
                    self.copy(at, at + text.len() as u32);
                    at += text.len() as u32;
                }
                Piece::Escaped { character, length } => {
                    self.escaped(at, character, length);
                    at += u32::from(length);
                }
            }
        }
        self.copy(end - 1, end);
    }

    /// Writes a character that the body escapes, which stands at `at` in `length` bytes.
    fn escaped(&mut self, at: u32, character: char, length: u8) {
        let short = match character {
            '"' | '\\' | '\u{8}' | '\u{c}' | '\n' | '\r' | '\t' if length == 2 => {
                return self.copy(at, at + 2);
            }
            '"' => b'"',
            '\\' => b'\\',
            '\u{8}' => b'b',
            '\u{c}' => b'f',
            '\n' => b'n',
            '\r' => b'r',
            '\t' => b't',
            '\0'..='\u{1f}' => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                let code = character as usize;
                return self.new_text(&[b'\\', b'u', b'0', b'0', HEX[code >> 4], HEX[code & 15]]);
            }
            _ => return self.new_text(character.encode_utf8(&mut [0; 4]).as_bytes()),
        };
        self.new_text(&[b'\\', short]);
    }
}

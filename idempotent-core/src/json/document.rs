//! A scanned body, and handles to its values.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use super::canonical::{self, Sink};
use super::envelope::Envelope;
use super::error::Violation;
use super::pointer;
use super::string;
use super::tape::{Entry, Tape, name};

/// The kinds of JSON values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

/// A body that is JSON, as [`Scanner::scan`](super::Scanner::scan) read it.
#[derive(Clone, Copy)]
pub struct Document<'a> {
    pub(super) text: &'a str,
    pub(super) tape: &'a Tape,
}

/// One value of a [`Document`].
#[derive(Clone, Copy)]
pub struct Node<'a> {
    pub(super) document: Document<'a>,
    pub(super) at: u32,
}

impl<'a> Document<'a> {
    pub(super) fn new(text: &'a str, tape: &'a Tape) -> Self {
        Self { text, tape }
    }

    /// The body's one value.
    pub fn root(self) -> Node<'a> {
        Node { document: self, at: 0 }
    }

    /// The body as a JSON-RPC request.
    pub fn envelope(self) -> Envelope<'a> {
        Envelope::of(self.root())
    }

    /// What keeps the body from being I-JSON: the first violation of the envelope if it has one, else the first inside
    /// `params`. Reading goes on after it, so that the body's members can still be looked at.
    pub fn violation(self) -> Option<Violation> {
        let (found, in_params) = match (self.tape.in_envelope, self.tape.in_params) {
            (Some(found), _) => (found, false),
            (None, Some(found)) => (found, true),
            (None, None) => return None,
        };
        Some(Violation {
            reason: found.reason,
            offset: found.offset as usize,
            pointer: pointer::to(self, found),
            in_params,
        })
    }

    /// Whether a member name anywhere inside `params` begins with `$serde_json::private::`.
    ///
    /// To the hash such a name is like any other. `serde_json::Value` and `RawValue` may read the object as something else,
    /// depending on the features that serde_json was built with: a typed reading of the body would not be of what was
    /// hashed.
    pub fn mentions_serde_json_private_names(self) -> bool {
        self.tape.private_names
    }

    /// Writes the canonical form (RFC 8785) of a value.
    ///
    /// # Errors
    ///
    /// The body is not I-JSON and therefore has no canonical form. Nothing is written then.
    pub fn write_canonical(self, node: Node<'a>, sink: &mut impl Sink) -> Result<(), Violation> {
        self.write_canonical_excluding(node, None, sink)
    }

    /// Writes the canonical form of a value as if `excluded`, a member's value or an element somewhere inside it, were
    /// absent.
    ///
    /// # Errors
    ///
    /// The body is not I-JSON and therefore has no canonical form. Nothing is written then.
    pub fn write_canonical_excluding(
        self,
        node: Node<'a>,
        excluded: Option<Node<'a>>,
        sink: &mut impl Sink,
    ) -> Result<(), Violation> {
        if let Some(violation) = self.violation() {
            return Err(violation);
        }
        canonical::write(node, excluded, sink);
        Ok(())
    }

    pub(super) fn entry(self, at: u32) -> &'a Entry {
        &self.tape.entries[at as usize]
    }

    /// The decoded name at a name's entry.
    pub(super) fn name(self, at: u32) -> &'a [u8] {
        name(self.text.as_bytes(), &self.tape.names, &self.tape.unescaped, self.entry(at))
    }
}

impl<'a> Node<'a> {
    pub(super) fn entry(self) -> &'a Entry {
        self.document.entry(self.at)
    }

    /// Which kind of value it is.
    pub fn kind(self) -> Kind {
        self.entry().kind
    }

    /// Where its text stands in the body.
    pub fn span(self) -> Range<usize> {
        self.entry().start as usize..self.entry().end as usize
    }

    /// Its text, as it stands in the body.
    pub fn raw(self) -> &'a str {
        &self.document.text[self.span()]
    }

    /// What a string says; `None` for other kinds. A lone surrogate reads as U+FFFD.
    pub fn string(self) -> Option<Cow<'a, str>> {
        if self.kind() != Kind::String {
            return None;
        }
        let content = &self.raw()[1..self.raw().len() - 1];
        if !content.contains('\\') {
            return Some(Cow::Borrowed(content));
        }
        let mut decoded = String::with_capacity(content.len());
        string::unescape_into(content, &mut decoded);
        Some(Cow::Owned(decoded))
    }

    /// The value of an object's member, found by its decoded name; the first of equal names. `None` for other kinds.
    pub fn member(self, name: &str) -> Option<Node<'a>> {
        let document = self.document;
        let members = self.member_entries();
        let found = members.partition_point(|&at| super::order::compare(document.name(at), name.as_bytes()).is_lt());
        let &at = members.get(found)?;
        (document.name(at) == name.as_bytes()).then_some(Node { document, at: at + 1 })
    }

    /// The values of an array's elements; none for other kinds.
    pub fn elements(self) -> impl Iterator<Item = Node<'a>> {
        let document = self.document;
        let end = if self.kind() == Kind::Array { self.entry().index } else { 0 };
        let mut at = self.at + 1;
        std::iter::from_fn(move || {
            let element = (at < end).then_some(Node { document, at })?;
            at = document.tape.after(at, element.entry());
            Some(element)
        })
    }

    /// The decoded names and the values of an object's members, in canonical order; none for other kinds.
    pub fn members(self) -> impl Iterator<Item = (Cow<'a, str>, Node<'a>)> {
        let document = self.document;
        self.member_entries().iter().map(move |&at| {
            let name = Node { document, at }.string().unwrap_or_default();
            (name, Node { document, at: at + 1 })
        })
    }

    /// The entries of an object's names in canonical order; none for other kinds.
    pub(super) fn member_entries(self) -> &'a [u32] {
        let tape = self.document.tape;
        if self.kind() == Kind::Object { tape.members_of(tape.object(self.entry())) } else { &[] }
    }

    /// The value that a JSON Pointer (RFC 6901) leads to from here, such as `/message/messageId`; the empty pointer leads
    /// nowhere else. `None` if there is none, or if it is no pointer.
    pub fn pointer(self, pointer: &str) -> Option<Node<'a>> {
        pointer::follow(self, pointer)
    }

    /// The value of a number whose text is not canonical.
    pub(super) fn double(self) -> f64 {
        self.document.tape.numbers.get(self.entry().index as usize).copied().unwrap_or_default()
    }
}

impl fmt::Debug for Document<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document").field("text", &self.text).field("violation", &self.violation()).finish()
    }
}

impl fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("kind", &self.kind()).field("raw", &self.raw()).finish()
    }
}

//! A body seen as a JSON-RPC 2.0 request.

use std::borrow::Cow;

use super::document::{Kind, Node};

/// The members of a JSON-RPC request, as they stand in the body: nothing here is checked yet.
///
/// ```
/// use idempotent_core::json::{Kind, Numbers, Scanner};
///
/// let mut scanner = Scanner::new();
/// let document = scanner.scan(br#"{"id": 1.0, "params": [], "method": "a\u002fb"}"#, Numbers::Strict)?;
/// let envelope = document.envelope();
/// assert_eq!(envelope.id().map(|id| id.raw()), Some("1.0"));
/// assert_eq!(envelope.method().as_deref(), Some("a/b"));
/// assert_eq!(envelope.params().map(|params| params.kind()), Some(Kind::Array));
/// assert!(envelope.jsonrpc().is_none());
/// # Ok::<(), idempotent_core::json::SyntaxError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Envelope<'a> {
    root: Node<'a>,
}

impl<'a> Envelope<'a> {
    pub(super) fn of(root: Node<'a>) -> Self {
        Self { root }
    }

    /// Whether the body is an object; nothing else is a request.
    pub fn is_object(self) -> bool {
        self.root.kind() == Kind::Object
    }

    /// Whether the body is an array: a batch.
    pub fn is_batch(self) -> bool {
        self.root.kind() == Kind::Array
    }

    /// The value of `jsonrpc`, decoded; `None` if it is absent or not a string.
    pub fn jsonrpc(self) -> Option<Cow<'a, str>> {
        self.root.member("jsonrpc")?.string()
    }

    /// The value of `id`, of whatever kind; absent in a notification.
    pub fn id(self) -> Option<Node<'a>> {
        self.root.member("id")
    }

    /// The value of `method`, decoded; `None` if it is absent or not a string.
    pub fn method(self) -> Option<Cow<'a, str>> {
        self.root.member("method")?.string()
    }

    /// The value of `params`, of whatever kind.
    pub fn params(self) -> Option<Node<'a>> {
        self.root.member("params")
    }
}

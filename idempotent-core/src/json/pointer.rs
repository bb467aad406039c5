//! JSON Pointers (RFC 6901): following one into a document, and writing the one that leads to a violation.

use std::borrow::Cow;

use super::document::{Document, Kind, Node};
use super::error::ViolationReason;
use super::tape::Found;

/// The longest pointer that is written, in bytes: it goes into an error's data, and names in a body may be long.
const MAX_WRITTEN: usize = 1024;

/// The value that `pointer` leads to from `node`.
pub(super) fn follow<'a>(node: Node<'a>, pointer: &str) -> Option<Node<'a>> {
    if pointer.is_empty() {
        return Some(node);
    }
    pointer.strip_prefix('/')?.split('/').try_fold(node, |node, token| match node.kind() {
        Kind::Object => node.member(&decode(token)),
        Kind::Array => node.elements().nth(index(token)?),
        _ => None,
    })
}

fn decode(token: &str) -> Cow<'_, str> {
    if token.contains('~') { token.replace("~1", "/").replace("~0", "~").into() } else { token.into() }
}

/// An array index: digits without leading zeros (RFC 6901 section 4).
fn index(token: &str) -> Option<usize> {
    let canonical = token == "0" || (!token.starts_with('0') && token.bytes().all(|byte| byte.is_ascii_digit()));
    canonical.then(|| token.parse().ok())?
}

/// The pointer to where a violation was found: a walk from the root to the value whose text holds it.
pub(super) fn to(document: Document<'_>, found: Found) -> String {
    let mut pointer = String::new();
    let mut node = document.root();
    while let Some((token, child)) = step(node, found) {
        let token = token.replace('~', "~0").replace('/', "~1");
        if pointer.len() + 1 + token.len() > MAX_WRITTEN {
            break;
        }
        pointer.push('/');
        pointer.push_str(&token);
        match child {
            Some(child) => node = child,
            None => break,
        }
    }
    pointer
}

/// The next token of the pointer to `found`, and the value to go on from.
fn step<'a>(node: Node<'a>, found: Found) -> Option<(Cow<'a, str>, Option<Node<'a>>)> {
    let offset = found.offset as usize;
    match node.kind() {
        Kind::Array => {
            let (position, element) =
                node.elements().enumerate().find(|(_, element)| element.span().contains(&offset))?;
            Some((position.to_string().into(), Some(element)))
        }
        Kind::Object => {
            let document = node.document;
            node.member_entries().iter().find_map(|&at| {
                let name = Node { document, at };
                let value = Node { document, at: at + 1 };
                let repeated = found.reason == ViolationReason::DuplicateMember && name.span().start == offset;
                let next = if repeated {
                    None
                } else if value.span().contains(&offset) {
                    Some(value)
                } else {
                    return None;
                };
                Some((name.string()?, next))
            })
        }
        _ => None,
    }
}

//! The key of an operation: whose it is ([`Scope`]) and which one it is ([`MessageId`]).
//!
//! Spec sections 4.2 and 7: a `messageId` is a UUID that the client generates once per logical request and sends again with
//! every retry. It is unique for its sender only, so the whole key is the pair ([`Key`]).

use std::{borrow::Cow, fmt, str::FromStr, sync::Arc};

use uuid::Uuid;

/// A client's `Message.messageId`: a canonical, hyphenated UUID of any version, neither nil nor max (spec section 7.1).
///
/// Compared as a UUID, shown in lower case.
///
/// ```
/// use idempotent_core::MessageId;
///
/// let id: MessageId = "01983A7E-0000-7000-8000-00000000000A".parse()?;
/// assert_eq!(id.to_string(), "01983a7e-0000-7000-8000-00000000000a");
/// assert!("{01983a7e-0000-7000-8000-00000000000a}".parse::<MessageId>().is_err());
/// # Ok::<(), idempotent_core::MalformedMessageId>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId(Uuid);

impl MessageId {
    /// A fresh id as spec section 7.2 recommends it for clients: UUIDv7 (RFC 9562 section 5.7), ordered by time.
    pub fn generate() -> Self {
        Self(Uuid::now_v7())
    }

    /// The id as a UUID.
    pub fn as_uuid(&self) -> &Uuid {
        &self.0
    }
}

/// The text is not a `messageId` that this extension accepts: not the 36-character hyphenated form, or the nil or max UUID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("messageId must be a UUID in its 36-character hyphenated form, neither nil nor max")]
pub struct MalformedMessageId;

impl FromStr for MessageId {
    type Err = MalformedMessageId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // `Uuid` also reads the simple, braced and URN forms; only the hyphenated one has this length and these hyphens.
        let hyphenated = text.len() == 36 && [8, 13, 18, 23].iter().all(|&at| text.as_bytes()[at] == b'-');
        if !hyphenated {
            return Err(MalformedMessageId);
        }
        let uuid = Uuid::try_parse(text).map_err(|_| MalformedMessageId)?;
        if uuid.is_nil() || uuid.is_max() {
            return Err(MalformedMessageId);
        }
        Ok(Self(uuid))
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.0.as_hyphenated(), f)
    }
}

impl fmt::Debug for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MessageId({self})")
    }
}

/// Whose `messageId`s these are: the authenticated principal or tenant, or nobody in particular.
///
/// Two callers who happen to send (or who steal) the same `messageId` never see each other's answers when their scopes differ.
/// [`Scope::global`] is the spec's single key space; no [`Scope::of`] equals it, whatever its text.
///
/// ```
/// use idempotent_core::Scope;
///
/// assert_ne!(Scope::of("alice"), Scope::of("bob"));
/// assert_ne!(Scope::of(""), Scope::global());
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope(Arc<str>);

/// Marks names that would otherwise read as the global scope, or as an already marked name.
const ESCAPE: char = '\u{1}';

impl Scope {
    /// The single key space of the spec, shared by everyone who calls without a principal.
    pub fn global() -> Self {
        Self(Arc::from(""))
    }

    /// The key space of one principal or tenant.
    pub fn of(name: &str) -> Self {
        if name.is_empty() || name.starts_with(ESCAPE) {
            Self(Arc::from(format!("{ESCAPE}{name}")))
        } else {
            Self(Arc::from(name))
        }
    }

    /// Whether this is the key space that all callers without a principal share.
    pub fn is_global(&self) -> bool {
        self.0.is_empty()
    }

    /// The form in which stores keep a scope: empty for the global one, else the name (with a leading U+0001 before a name
    /// that is empty or begins with U+0001 itself, so that no two scopes share a form).
    pub fn as_stored(&self) -> &str {
        &self.0
    }

    /// Reads back what [`Scope::as_stored`] gave.
    pub fn from_stored(stored: &str) -> Self {
        Self(Arc::from(stored))
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A scope is often a credential: it stays out of logs.
        f.write_str(if self.is_global() { "Scope(global)" } else { "Scope(…)" })
    }
}

/// What the `scope = …` option of an annotation may evaluate to.
///
/// Text names a scope; `None` is the global one. Anything else is turned into text first, for instance with
/// `scope = format!("{}/{}", tenant.id, user.id)`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name a scope",
    label = "this must be text, a UUID, or an `Option` of one",
    note = "write for instance `scope = user.tenant`, or `scope = user.id.to_string()` for other types"
)]
pub trait ToScope {
    /// The scope that this value names.
    fn to_scope(&self) -> Scope;
}

impl ToScope for Scope {
    fn to_scope(&self) -> Scope {
        self.clone()
    }
}

impl ToScope for str {
    fn to_scope(&self) -> Scope {
        Scope::of(self)
    }
}

impl ToScope for String {
    fn to_scope(&self) -> Scope {
        Scope::of(self)
    }
}

impl ToScope for Cow<'_, str> {
    fn to_scope(&self) -> Scope {
        Scope::of(self)
    }
}

impl ToScope for Uuid {
    fn to_scope(&self) -> Scope {
        Scope::of(self.as_hyphenated().encode_lower(&mut Uuid::encode_buffer()))
    }
}

impl<T: ToScope + ?Sized> ToScope for &T {
    fn to_scope(&self) -> Scope {
        (**self).to_scope()
    }
}

impl<T: ToScope + ?Sized> ToScope for Arc<T> {
    fn to_scope(&self) -> Scope {
        (**self).to_scope()
    }
}

impl<T: ToScope + ?Sized> ToScope for Box<T> {
    fn to_scope(&self) -> Scope {
        (**self).to_scope()
    }
}

impl<T: ToScope> ToScope for Option<T> {
    fn to_scope(&self) -> Scope {
        self.as_ref().map_or_else(Scope::global, ToScope::to_scope)
    }
}

/// What an operation is stored under: `(scope, messageId)`, the primary key of the cache.
///
/// A strengthening of spec section 4.4, whose key is the `messageId` alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// Whose request it is.
    pub scope: Scope,
    /// Which of that caller's requests it is.
    pub message_id: MessageId,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_canonical_uuids_are_message_ids() {
        for good in [
            "01983a7e-0000-7000-8000-00000000000a",
            "9229e770-767c-417b-a0b0-f0741243c589",
            "9229E770-767C-417B-A0B0-F0741243C589",
            "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
            "00000000-0000-0000-0000-000000000001",
        ] {
            assert!(good.parse::<MessageId>().is_ok(), "{good}");
        }
        for bad in [
            "",
            "1",
            "9229e770767c417ba0b0f0741243c589",
            "{9229e770-767c-417b-a0b0-f0741243c589}",
            "urn:uuid:9229e770-767c-417b-a0b0-f0741243c589",
            " 9229e770-767c-417b-a0b0-f0741243c589",
            "9229e770-767c-417b-a0b0-f0741243c58",
            "9229e770-767c-417b-a0b0-f0741243c58g",
            "9229e770-767c-417b-a0b0f-0741243c589",
            "00000000-0000-0000-0000-000000000000",
            "ffffffff-ffff-ffff-ffff-ffffffffffff",
            "ＦＦ29e770-767c-417b-a0b0-f0741243",
        ] {
            assert_eq!(bad.parse::<MessageId>(), Err(MalformedMessageId), "{bad}");
        }
    }

    #[test]
    fn no_named_scope_is_the_global_one_and_no_two_share_a_form() {
        let names = ["", "\u{1}", "\u{1}\u{1}", "a", "\u{1}a", "A"];
        for (i, a) in names.iter().enumerate() {
            assert!(!Scope::of(a).is_global());
            for b in &names[i + 1..] {
                assert_ne!(Scope::of(a), Scope::of(b), "{a:?} {b:?}");
            }
        }
        assert!(None::<&str>.to_scope().is_global());
        assert_eq!(Some("a").to_scope(), Scope::of("a"));
    }

    #[test]
    fn a_scope_does_not_show_its_name_in_logs() {
        assert!(!format!("{:?}", Scope::of("secret-token")).contains("secret"));
    }
}

//! What one pass over a body leaves behind: a flat list of its values, and the scratch memory that holds it.

use super::document::Kind;
use super::error::ViolationReason;

/// One value, or one member name, of the body.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// Where its text begins in the body.
    pub(super) start: u32,
    /// Where its text ends.
    pub(super) end: u32,
    /// An index; its meaning depends on `kind`. Array: the entry after its subtree. Object: into [`Tape::objects`].
    /// Number that is not canonical: into [`Tape::numbers`]. Name with escapes: into [`Tape::names`], else [`PLAIN`].
    pub(super) index: u32,
    pub(super) kind: Kind,
    /// The text is its own canonical form.
    pub(super) canonical: bool,
}

/// [`Entry::index`] of a string that needs no unescaping to be compared.
pub(super) const PLAIN: u32 = u32::MAX;

/// What an object has beyond an [`Entry`].
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Object {
    /// The entry after its subtree.
    pub(super) next: u32,
    /// Its members: a range of [`Tape::members`].
    pub(super) first_member: u32,
    pub(super) end_member: u32,
}

/// A member of an object that is still open: enough to sort it among its siblings.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenMember {
    /// The first bytes of the name, so ranked that numbers compare like names ([`super::order::prefix`]).
    pub(super) prefix: u64,
    /// The name's entry; the value's is the next one.
    pub(super) name: u32,
}

/// Where the body is not I-JSON.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub(super) reason: ViolationReason,
    pub(super) offset: u32,
}

/// The tape of one body. Its vectors are cleared, not freed, from one body to the next.
#[derive(Debug, Default)]
pub(super) struct Tape {
    /// Values and member names in the order of the text; a name directly before its value.
    pub(super) entries: Vec<Entry>,
    pub(super) objects: Vec<Object>,
    /// The name entries of all objects, each object's in canonical order.
    pub(super) members: Vec<u32>,
    /// Spans of [`Tape::unescaped`].
    pub(super) names: Vec<(u32, u32)>,
    /// Member names that contain escapes, decoded.
    pub(super) unescaped: String,
    /// The values of numbers whose text is not canonical.
    pub(super) numbers: Vec<f64>,
    /// The members of the objects being read, innermost last. Empty after a pass.
    pub(super) open: Vec<OpenMember>,
    /// The first violation outside the root object's `params`.
    pub(super) in_envelope: Option<Found>,
    /// The first violation inside them.
    pub(super) in_params: Option<Found>,
    /// A member name inside `params` begins like serde_json's private tokens.
    pub(super) private_names: bool,
}

impl Tape {
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.objects.clear();
        self.members.clear();
        self.names.clear();
        self.unescaped.clear();
        self.numbers.clear();
        self.open.clear();
        self.in_envelope = None;
        self.in_params = None;
        self.private_names = false;
    }

    /// The memory it holds, in bytes.
    pub(super) fn capacity(&self) -> usize {
        fn bytes<T>(vec: &Vec<T>) -> usize {
            vec.capacity() * size_of::<T>()
        }
        bytes(&self.entries)
            + bytes(&self.objects)
            + bytes(&self.members)
            + bytes(&self.names)
            + self.unescaped.capacity()
            + bytes(&self.numbers)
            + bytes(&self.open)
    }

    /// The entry that follows the subtree of `entry`, which stands at `at`.
    #[inline]
    pub(super) fn after(&self, at: u32, entry: &Entry) -> u32 {
        match entry.kind {
            Kind::Array => entry.index,
            Kind::Object => self.object(entry).next,
            _ => at + 1,
        }
    }

    /// The object part of an entry of that kind.
    #[inline]
    pub(super) fn object(&self, entry: &Entry) -> Object {
        self.objects[entry.index as usize]
    }

    /// The members of an object in canonical order, as the entries of their names.
    #[inline]
    pub(super) fn members_of(&self, object: Object) -> &[u32] {
        &self.members[object.first_member as usize..object.end_member as usize]
    }
}

/// The decoded name at a name's entry. Takes the vectors apart, so that the members can be sorted meanwhile.
#[inline]
pub(super) fn name<'a>(bytes: &'a [u8], names: &[(u32, u32)], unescaped: &'a str, entry: &Entry) -> &'a [u8] {
    if entry.index == PLAIN {
        &bytes[entry.start as usize + 1..entry.end as usize - 1]
    } else {
        let (start, end) = names[entry.index as usize];
        &unescaped.as_bytes()[start as usize..end as usize]
    }
}

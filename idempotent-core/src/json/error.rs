//! Why a body is refused: it is not JSON, or it is JSON without a single meaning.

use std::fmt;

/// The body is not JSON: JSON-RPC's parse error, `-32700`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyntaxError {
    // Both small, so that a `Result` of the scanner's inner functions travels in registers.
    offset: u32,
    reason: SyntaxErrorReason,
}

/// What about the text is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SyntaxErrorReason {
    /// A byte sequence that is not UTF-8.
    InvalidUtf8,
    /// The body begins with a byte order mark, which RFC 8259 section 8.1 forbids to send.
    ByteOrderMark,
    /// The text ends inside a value, or is empty.
    UnexpectedEnd,
    /// A byte that the grammar does not allow where it stands.
    UnexpectedByte,
    /// An unescaped control character (below U+0020) inside a string.
    ControlCharacter,
    /// A backslash that begins no escape sequence of JSON.
    InvalidEscape,
    /// A token that begins like a number and is none, such as `01`, `1.` or `-`.
    InvalidNumber,
    /// More text after the value.
    TrailingData,
    /// The body has 4 GiB or more, which the scanner's 32-bit offsets cannot tell apart.
    TooLarge,
}

impl SyntaxError {
    #[cold]
    pub(super) fn new(offset: usize, reason: SyntaxErrorReason) -> Self {
        Self { offset: u32::try_from(offset).unwrap_or(u32::MAX), reason }
    }

    /// The error for a byte that does not fit, or for the end of the text if it has no byte there.
    #[cold]
    pub(super) fn unexpected(bytes: &[u8], offset: usize) -> Self {
        let ended = offset >= bytes.len();
        Self::new(offset, if ended { SyntaxErrorReason::UnexpectedEnd } else { SyntaxErrorReason::UnexpectedByte })
    }

    /// Where in the body, in bytes from its start.
    pub fn offset(&self) -> usize {
        self.offset as usize
    }

    /// What is wrong there.
    pub fn reason(&self) -> SyntaxErrorReason {
        self.reason
    }
}

impl fmt::Display for SyntaxErrorReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InvalidUtf8 => "invalid UTF-8",
            Self::ByteOrderMark => "a byte order mark",
            Self::UnexpectedEnd => "unexpected end of the text",
            Self::UnexpectedByte => "unexpected character",
            Self::ControlCharacter => "an unescaped control character in a string",
            Self::InvalidEscape => "an invalid escape sequence",
            Self::InvalidNumber => "an invalid number",
            Self::TrailingData => "more text after the value",
            Self::TooLarge => "more than 4 GiB",
        })
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not JSON: {} at byte {}", self.reason, self.offset)
    }
}

impl std::error::Error for SyntaxError {}

/// The body is JSON, but not I-JSON (RFC 7493), so that it has no canonical form and no hash.
///
/// Inside `params` this is the extension's `IDEMPOTENCY_PAYLOAD_NOT_CANONICALIZABLE`; in the envelope around them it is
/// an invalid request, `-32600`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub(super) reason: ViolationReason,
    pub(super) offset: usize,
    pub(super) pointer: String,
    pub(super) in_params: bool,
}

/// What about a body is not I-JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ViolationReason {
    /// An object has two members with one name; names are compared after unescaping.
    DuplicateMember,
    /// An integer that its double does not equal; only with [`Numbers::Strict`](super::Numbers::Strict).
    LossyInteger,
    /// A number beyond the range of a double.
    NumberOverflow,
    /// A number of more than 1,024 bytes.
    NumberTooLong,
    /// An escaped UTF-16 surrogate without its other half.
    LoneSurrogate,
    /// Arrays and objects nested deeper than [`MAX_DEPTH`](super::MAX_DEPTH).
    NestingTooDeep,
}

impl ViolationReason {
    /// A stable name for machines, as `error.data.reason` carries it: `"duplicate_member"`, `"lossy_integer"`, ….
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DuplicateMember => "duplicate_member",
            Self::LossyInteger => "lossy_integer",
            Self::NumberOverflow => "number_overflow",
            Self::NumberTooLong => "number_too_long",
            Self::LoneSurrogate => "lone_surrogate",
            Self::NestingTooDeep => "nesting_too_deep",
        }
    }
}

impl Violation {
    /// What is violated.
    pub fn reason(&self) -> ViolationReason {
        self.reason
    }

    /// Where in the body, in bytes from its start: the second of two equal names, the number, the escape sequence, the
    /// bracket that is one too many.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The same place as a JSON Pointer (RFC 6901) from the body's root, such as `/params/message/metadata/a~1b`.
    ///
    /// A member whose *name* holds the lone surrogate cannot be pointed at; the pointer then names its object. So does a
    /// pointer that would be longer than 1,024 bytes: it names the nearest container that it can reach.
    pub fn pointer(&self) -> &str {
        &self.pointer
    }

    /// Whether it lies inside the value of the root object's `params`, rather than in the envelope around it.
    ///
    /// A second member named `params` is a violation of the envelope.
    pub fn is_in_params(&self) -> bool {
        self.in_params
    }
}

impl fmt::Display for ViolationReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DuplicateMember => "a member name occurs twice in one object",
            Self::LossyInteger => "an integer is not exactly representable as a double",
            Self::NumberOverflow => "a number is beyond the range of a double",
            Self::NumberTooLong => "a number is longer than 1,024 bytes",
            Self::LoneSurrogate => "a string holds a lone surrogate",
            Self::NestingTooDeep => "arrays and objects are nested deeper than 127",
        })
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not I-JSON: {} at {:?} (byte {})", self.reason, self.pointer, self.offset)
    }
}

impl std::error::Error for Violation {}

//! The hash of a request's `params`.

use std::fmt;

/// SHA-256 over the canonical form of a request's `params` without its key (spec section 4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RequestHash([u8; 32]);

impl RequestHash {
    /// A hash from its 32 bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The hash's 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for RequestHash {
    /// Lower-case hex, as the spec asks.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The text is not a request hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a request hash is 64 lower-case hex digits")]
pub struct MalformedRequestHash;

impl std::str::FromStr for RequestHash {
    type Err = MalformedRequestHash;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits: &[u8; 64] = text.as_bytes().try_into().map_err(|_| MalformedRequestHash)?;
        let nibble = |digit: u8| match digit {
            b'0'..=b'9' => Ok(digit - b'0'),
            b'a'..=b'f' => Ok(digit - b'a' + 10),
            _ => Err(MalformedRequestHash),
        };
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        Ok(Self(bytes))
    }
}

//! The request hash: SHA-256 over the canonical form of a request's `params`, without its key.
//!
//! Spec sections 4.3 and 5: `request_hash = lowercase_hex(SHA-256(JCS(params \ {message.messageId})))`. It says whether a
//! retry is a retry of the same request. The server computes it from the raw body
//! ([`Document::request_hash`]), a client from what it is about to send ([`RequestHash::of`]).

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::json::{Document, Node, Numbers, Scanner, Sink, SyntaxError, Violation};

/// Where the key of a request stands in its `params`, unless its method says otherwise (spec section 5).
pub const MESSAGE_ID_POINTER: &str = "/message/messageId";

/// What tells two requests with one key apart: the SHA-256 of their canonical `params` (spec section 4.3).
///
/// Reads and prints as 64 lower-case hexadecimal digits.
///
/// ```
/// use idempotent_core::request_hash::RequestHash;
///
/// let text = "6068fe47ffca1b6dfa007fb3e990a30b35f5e0eb5df87229600ceb05b8b4e11d";
/// let hash: RequestHash = text.parse()?;
/// assert_eq!(hash.to_string(), text);
/// # Ok::<(), idempotent_core::request_hash::ParseRequestHashError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestHash([u8; 32]);

impl RequestHash {
    /// A hash from its bytes, as a store keeps them.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The hash that a server computes for these `params`, whether or not they carry a message id already.
    ///
    /// ```
    /// use idempotent_core::request_hash::RequestHash;
    ///
    /// let params = serde_json::json!({"message": {"messageId": "0b1f6f0e-3a52-4a3e-9d8b-1c2d3e4f5a6b", "role": "user"}});
    /// let without = serde_json::json!({"message": {"role": "user"}});
    /// assert_eq!(RequestHash::of(&params)?, RequestHash::of(&without)?);
    /// # Ok::<(), idempotent_core::request_hash::RequestHashError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The params cannot be serialized, or a server would refuse what they serialize to.
    pub fn of(params: &impl Serialize) -> Result<Self, RequestHashError> {
        // Through the text that goes over the wire, so that whatever the text says, client and server read it with the
        // same eyes.
        Self::of_json(&serde_json::to_vec(params)?, MESSAGE_ID_POINTER, Numbers::Strict)
    }

    /// The hash of `params` that are JSON already, with the key at the JSON Pointer `key`.
    ///
    /// # Errors
    ///
    /// The text is not JSON, or not I-JSON.
    pub fn of_json(params: &[u8], key: &str, numbers: Numbers) -> Result<Self, RequestHashError> {
        Scanner::with(|scanner| {
            let document = scanner.scan(params, numbers)?;
            let params = document.root();
            Ok(document.request_hash(params, params.pointer(key))?)
        })
    }
}

impl<'a> Document<'a> {
    /// The hash of `params` as if `excluded`, the value of the key somewhere inside them, were absent.
    ///
    /// # Errors
    ///
    /// The body is not I-JSON and therefore has no hash.
    pub fn request_hash(self, params: Node<'a>, excluded: Option<Node<'a>>) -> Result<RequestHash, Violation> {
        let mut sink = HashSink::new();
        self.write_canonical_excluding(params, excluded, &mut sink)?;
        Ok(sink.finish())
    }
}

/// Collects small writes, because each call of the hash function costs more than copying a few bytes.
struct HashSink {
    hasher: Sha256,
    buffer: [u8; Self::BUFFER],
    used: usize,
}

impl HashSink {
    const BUFFER: usize = 1024;

    fn new() -> Self {
        Self { hasher: Sha256::new(), buffer: [0; Self::BUFFER], used: 0 }
    }

    fn finish(mut self) -> RequestHash {
        self.hasher.update(&self.buffer[..self.used]);
        RequestHash(self.hasher.finalize().into())
    }
}

impl Sink for HashSink {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        if let Some(free) = self.buffer.get_mut(self.used..self.used + bytes.len()) {
            free.copy_from_slice(bytes);
            self.used += bytes.len();
            return;
        }
        self.hasher.update(&self.buffer[..self.used]);
        self.used = 0;
        match self.buffer.get_mut(..bytes.len()) {
            Some(free) => {
                free.copy_from_slice(bytes);
                self.used = bytes.len();
            }
            None => self.hasher.update(bytes),
        }
    }
}

impl fmt::Display for RequestHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut digits = [0; 64];
        for (pair, byte) in digits.as_chunks_mut::<2>().0.iter_mut().zip(self.0) {
            *pair = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
        }
        f.pad(std::str::from_utf8(&digits).unwrap_or_default())
    }
}

impl fmt::Debug for RequestHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestHash({self})")
    }
}

impl FromStr for RequestHash {
    type Err = ParseRequestHashError;

    fn from_str(text: &str) -> Result<Self, ParseRequestHashError> {
        fn nibble(digit: u8) -> Result<u8, ParseRequestHashError> {
            match digit {
                b'0'..=b'9' => Ok(digit - b'0'),
                b'a'..=b'f' => Ok(digit - b'a' + 10),
                _ => Err(ParseRequestHashError(())),
            }
        }
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        let pairs: &[[u8; 2]; 32] = pairs.try_into().map_err(|_| ParseRequestHashError(()))?;
        if !rest.is_empty() {
            return Err(ParseRequestHashError(()));
        }
        let mut bytes = [0; 32];
        for (byte, &[high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = nibble(high)? << 4 | nibble(low)?;
        }
        Ok(Self(bytes))
    }
}

/// The text is not 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a request hash is 64 lower-case hexadecimal digits")]
pub struct ParseRequestHashError(());

/// Why [`RequestHash::of`] has no hash for these params.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestHashError {
    /// They cannot be serialized.
    #[error("the params cannot be serialized")]
    Serialize(#[from] serde_json::Error),
    /// Their text is not JSON.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// They are not I-JSON: a server would answer `IDEMPOTENCY_PAYLOAD_NOT_CANONICALIZABLE`.
    #[error(transparent)]
    NotCanonicalizable(#[from] Violation),
}

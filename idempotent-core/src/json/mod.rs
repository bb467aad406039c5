//! Strict JSON, read in one pass and written back in one canonical form.
//!
//! Two requests are the same request when the canonical forms ([RFC 8785], JCS) of their `params` are the same bytes.
//! This module decides that straight from the raw body, because every detour through a general JSON value loses
//! something that matters here: `serde_json::Value` keeps the last of two equal members, turns an object with a member
//! named like one of serde_json's private tokens into something else, and holds numbers as whichever Cargo features
//! some other crate of the build has switched on.
//!
//! # One pass
//!
//! [`Scanner::scan`] reads a body once, strictly (RFC 8259 grammar, UTF-8, no byte order mark), and leaves a flat
//! *tape*: one entry per value with the span of its text, and for each object its members in canonical order. From
//! there everything else is a look-up or a copy of spans:
//!
//! - [`Document::envelope`] gives the JSON-RPC `id`, `method`, `jsonrpc` and `params`;
//! - [`Document::request_hash`](Document::request_hash) hashes the canonical form of `params` without its key;
//! - [`Document::violation`] tells what keeps the body from being I-JSON ([RFC 7493]), and where.
//!
//! # What is refused, and how
//!
//! A body that is not JSON is a [`SyntaxError`], wherever in the body that shows. A body that is JSON but has no single
//! meaning (a member twice, a number no double equals, half a surrogate pair, nesting beyond [`MAX_DEPTH`]) is a
//! [`Violation`]: it can be looked at, so that an error can name its `id`, but it has no hash.
//!
//! # Invariants
//!
//! 1. Tape entries stand in the order of the text; an entry's subtree follows it without a gap.
//! 2. An entry marked *canonical* has a text that is its own canonical form, byte for byte.
//! 3. Member names are compared after unescaping, by UTF-16 code units, as RFC 8785 orders them.
//! 4. A body without violation has unique names in every object and every number is finite.
//! 5. Nothing in a body can make the scanner panic, recurse more than [`MAX_DEPTH`] deep, or keep more than
//!    [`Scanner::RETAINED_BYTES`] of memory after it is gone.
//!
//! ```
//! use idempotent_core::json::{Numbers, Scanner};
//!
//! let body = br#"{"id": 7, "method": "message/send", "params": {"b": 1.0, "a": "\u0041"}}"#;
//! let canonical = Scanner::with(|scanner| {
//!     let document = scanner.scan(body, Numbers::Strict)?;
//!     let params = document.envelope().params().expect("there are params");
//!     let mut canonical = Vec::new();
//!     document.write_canonical(params, &mut canonical).expect("I-JSON");
//!     Ok::<_, idempotent_core::json::SyntaxError>(canonical)
//! })?;
//! assert_eq!(canonical, br#"{"a":"A","b":1}"#);
//! # Ok::<(), idempotent_core::json::SyntaxError>(())
//! ```
//!
//! [RFC 8785]: https://www.rfc-editor.org/rfc/rfc8785
//! [RFC 7493]: https://www.rfc-editor.org/rfc/rfc7493

mod canonical;
mod document;
mod envelope;
mod error;
mod nesting;
mod number;
mod order;
mod pass;
mod pointer;
mod scanner;
mod string;
mod tape;

pub use canonical::Sink;
pub use document::{Document, Kind, Node};
pub use envelope::Envelope;
pub use error::{SyntaxError, SyntaxErrorReason, Violation, ViolationReason};
pub use number::Numbers;
pub use pass::MAX_DEPTH;
pub use scanner::Scanner;

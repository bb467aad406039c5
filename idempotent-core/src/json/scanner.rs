//! The scanner: reusable memory for one body after another.

use std::cell::Cell;

use super::document::Document;
use super::error::{SyntaxError, SyntaxErrorReason};
use super::number::Numbers;
use super::pass::Pass;
use super::tape::Tape;

/// Reads JSON bodies, strictly and in one pass, into memory that it keeps for the next one.
///
/// A warm scanner does not allocate. [`Scanner::with`] lends the calling thread's own one.
///
/// ```
/// use idempotent_core::json::{Numbers, Scanner};
///
/// let mut scanner = Scanner::new();
/// let document = scanner.scan(br#"{"method": "tasks/get", "id": "a"}"#, Numbers::Strict)?;
/// assert_eq!(document.envelope().method().as_deref(), Some("tasks/get"));
/// # Ok::<(), idempotent_core::json::SyntaxError>(())
/// ```
#[derive(Debug, Default)]
pub struct Scanner {
    tape: Tape,
}

impl Scanner {
    /// How much memory a scanner keeps between two uses of [`Scanner::with`], in bytes. Bodies up to about a megabyte
    /// need less; what needs more is given back.
    pub const RETAINED_BYTES: usize = 8 * 1024 * 1024;

    /// A scanner without memory yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lends the calling thread's scanner to `use_scanner`.
    ///
    /// A call from within another one on the same thread gets a scanner of its own.
    pub fn with<R>(use_scanner: impl FnOnce(&mut Scanner) -> R) -> R {
        thread_local! {
            static POOLED: Cell<Option<Scanner>> = const { Cell::new(None) };
        }
        // Neither a nested call (which finds the cell empty) nor a thread that is shutting down (which has no cell any
        // more) is an error: both do without the pool.
        let pooled = POOLED.try_with(Cell::take).ok().flatten();
        let mut scanner = pooled.unwrap_or_default();
        let result = use_scanner(&mut scanner);
        if scanner.tape.capacity() <= Self::RETAINED_BYTES {
            let _ = POOLED.try_with(|cell| cell.set(Some(scanner)));
        }
        result
    }

    /// Reads a body.
    ///
    /// # Errors
    ///
    /// The body is not JSON. A body that is JSON but not I-JSON is a document with a
    /// [violation](Document::violation).
    pub fn scan<'a>(&'a mut self, body: &'a [u8], numbers: Numbers) -> Result<Document<'a>, SyntaxError> {
        self.tape.clear();
        if body.len() >= u32::MAX as usize {
            return Err(SyntaxError::new(0, SyntaxErrorReason::TooLarge));
        }
        let Ok(text) = simdutf8::basic::from_utf8(body) else {
            return Err(invalid_utf8(body));
        };
        if text.starts_with('\u{feff}') {
            return Err(SyntaxError::new(0, SyntaxErrorReason::ByteOrderMark));
        }
        Pass::run(text, &mut self.tape, numbers)?;
        Ok(Document::new(text, &self.tape))
    }
}

/// The fast validation does not tell where.
#[cold]
fn invalid_utf8(body: &[u8]) -> SyntaxError {
    let offset = std::str::from_utf8(body).err().map_or(0, |error| error.valid_up_to());
    SyntaxError::new(offset, SyntaxErrorReason::InvalidUtf8)
}

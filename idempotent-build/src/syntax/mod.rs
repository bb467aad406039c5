//! Reads `#[idempotent(…)]` the same way in the macro and in a build script.
//!
//! The attribute macro and the AgentCard helper must never disagree about what an annotation says, so its grammar, its
//! model and its checks live here, in an ordinary library. Reading goes in three steps, each in a file of its own:
//!
//! 1. [`Options`] keeps every option that was written, with its keyword, and knows nothing of methods;
//! 2. [`Declaration`] is what the options mean for the engine and the card: method, key, extension, takeover;
//! 3. [`Handler`] is the annotated function: attributes, visibility, signature, and a body that stays tokens.
//!
//! No step stops at its first mistake: each pushes into [`Mistakes`] and goes on with a default, so that a user reads
//! all mistakes of an annotation at once and the macro can still emit the function.
//!
//! ```
//! use idempotent_build::syntax::Annotation;
//!
//! let attribute: syn::Attribute = syn::parse_quote!(#[idempotent(method = "SendMessage", scope = user.tenant)]);
//! let annotation = Annotation::from_attribute(&attribute);
//!
//! let declaration = annotation.into_result()?;
//! assert_eq!(declaration.method, "message/send");
//! assert_eq!(declaration.key, "/message/messageId");
//! # Ok::<(), syn::Error>(())
//! ```

mod arguments;
mod declaration;
mod handler;
mod method;
mod mistakes;
mod options;
mod pointer;
mod scope;
mod signature;

pub use arguments::{Argument, Reads};
pub use declaration::{Annotation, DEFAULT_KEY, Declaration, EXTENSION_URI, OnTakeover};
pub use handler::Handler;
pub use method::{canonical_method, is_core_method, method_hash};
pub use mistakes::Mistakes;
pub use options::{Given, Options};

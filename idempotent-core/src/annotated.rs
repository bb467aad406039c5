//! Which methods have an annotated handler, as facts that the compiler can compare with the AgentCard.
//!
//! Every `#[idempotent(method = …)]` implements [`AnnotatedBy`] for the [`MethodKey`] of its method. Such an implementation
//! holds for the whole crate whatever the privacy of the module that it stands in, so generated code anywhere in the
//! crate can ask for it.

/// A method as a type: `HASH` is the FNV-1a hash of its canonical name, as `idempotent_build::syntax::method_hash` makes it.
#[derive(Debug, Clone, Copy)]
pub struct MethodKey<const HASH: u64>;

/// The method has a handler, and `Handler` is its operation type.
#[diagnostic::on_unimplemented(
    message = "the AgentCard lists a method that no `#[idempotent]` handler of this program answers",
    label = "no handler is annotated with this method",
    note = "a handler in another crate must be used here, and a cfg that build.rs sets itself must be told there"
)]
pub trait AnnotatedBy<Handler> {}

//! `agent_card!()`, which knows by what name the caller calls this crate.

/// The AgentCard that this package's build script made, as a constant [`Card`](crate::Card).
///
/// The build script is two lines, with `idempotent-build` under `[build-dependencies]`:
///
/// ```ignore
/// fn main() {
///     idempotent_build::agent_card("agent-card.base.json").emit();
/// }
/// ```
///
/// and the router serves what the macro gives: `.agent_card(idempotent::agent_card!())`.
///
/// Each method of the card must have its `#[idempotent]` handler in this crate, in the package's library, or in a library whose build
/// script emits a fragment: a method without one does not compile, nor does one with two. (A handler that the card
/// lacks is refused where it is annotated.) Tests are left out of these proofs, since they may have handlers of their own.
///
/// Call it in the binary where the package has several, in the library or the binary where it has one.
#[macro_export]
macro_rules! agent_card {
    ($($nothing:tt)*) => {
        $crate::__private::agent_card!($crate; $($nothing)*)
    };
}

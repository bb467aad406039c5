//! `agent_card!()`, which knows by what name the caller calls this crate.

/// The AgentCard that this package's build script made, as a constant [`Card`](crate::Card).
///
/// The build script makes it from a base card, which is an AgentCard without this extension, and the package's annotations:
///
/// ```no_run
/// // fn main() of build.rs, with idempotent-build under [build-dependencies]
/// idempotent_build::agent_card("agent-card.base.json").emit();
/// ```
///
/// The router serves what the macro gives, with the run-time `ttl_seconds` and `max_cache_entries`:
/// [`JsonRpcRouter::agent_card`](crate::JsonRpcRouter::agent_card).
///
/// # What is proven
///
/// | mistake | found |
/// |---|---|
/// | an annotated handler that the card lacks | where it is annotated |
/// | a method of the card without a handler in this program | at `agent_card!()` |
/// | a method with two handlers | by the build script, or at the second one |
/// | a handler that is not mounted, or mounted and not in the card | when the router is built |
///
/// The first three do not compile, whatever the privacy of the handler's module, under `cargo check`, `clippy` and `doc`
/// too. Tests are left out of the proofs: they may have handlers of their own.
///
/// # Where to call it
///
/// In the binary, or in the library if all handlers are there. Handlers of other packages are part of the card if their build
/// scripts emit a fragment; how is told in `idempotent_build::card`.
#[macro_export]
macro_rules! agent_card {
    ($($nothing:tt)*) => {
        $crate::__private::agent_card!($crate; $($nothing)*)
    };
}

//! Makes the example agent's card from its base card and its annotated handlers.

fn main() {
    idempotent_build::agent_card("agent/agent-card.base.json")
        .example("agent", "agent/main.rs")
        .example("agent_card", "agent_card.rs")
        .emit();
}

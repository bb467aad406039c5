//! The example agent.

use idempotent::{RuntimeParams, card};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let params = RuntimeParams { ttl_seconds: 86_400, max_cache_entries: 100_000, required: true };
    let card = idempotent::agent_card!().json(&params);
    let app = axum::Router::new().route(card::WELL_KNOWN_PATH, card::serve(card));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    axum::serve(listener, app).await
}

//! A complete A2A agent that is safe to retry: it echoes messages, and writes down every one exactly once.
//!
//! `cargo run --release --example agent` serves it on <http://127.0.0.1:3000> and prints two curl lines to try.

mod flags;
mod handlers;
mod principal;
mod tasks;
mod wire;
mod work;

use std::{process::ExitCode, time::Duration};

use axum::{Router, extract::FromRef, extract::State, routing::get};
use clap::Parser as _;
use idempotent::{Idempotency, JsonRpcRouter, MessageId, SqliteStore, extension, rpc_methods};
use tokio::net::TcpListener;

use crate::{flags::Flags, tasks::Tasks};

/// How long operations that run at SIGTERM have to finish.
const DRAIN: Duration = Duration::from_secs(30);

/// How long connections stay open for clients that read what has been answered.
const LINGER: Duration = Duration::from_secs(2);

/// The router's state.
#[derive(Clone, FromRef)]
struct App {
    tasks: Tasks,
    idempotency: Idempotency,
}

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into()))
        .init();
    let flags = Flags::parse();
    let config = match flags.config() {
        Ok(config) => config,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    match serve(flags, config).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(flags: Flags, config: idempotent::Config) -> Result<(), Box<dyn std::error::Error>> {
    if let Some((scheme @ ("postgres" | "postgresql" | "mysql"), _)) = flags.database_url.split_once("://") {
        return Err(format!("--database-url {scheme}://…: only SQLite is supported so far; give a file's path").into());
    }
    let store = SqliteStore::open(&flags.database_url).await?;
    let tasks = Tasks::open(store.clone()).await?;
    let idempotency = Idempotency::new(store.clone()).config(config);
    let app = App { tasks, idempotency: idempotency.clone() };

    let router = JsonRpcRouter::new()
        .methods(rpc_methods![handlers::send_message, handlers::stream_message])
        .method("tasks/get", handlers::get_task)
        .method("tasks/list", handlers::list_tasks)
        .agent_card(idempotent::agent_card!())
        .try_with_state(app)?
        .route("/healthz", get(|| async { "ok\n" }))
        .merge(Router::new().route("/metrics", get(metrics)).with_state(idempotency.clone()));

    let listener = TcpListener::bind(&flags.listen).await.map_err(|error| format!("{}: {error}", flags.listen))?;
    announce(&format!("http://{}", listener.local_addr()?));

    let stop = shutdown_signal()?;
    let (stopped, stopping) = tokio::sync::oneshot::channel();
    let serving = axum::serve(listener, router).with_graceful_shutdown(async move {
        stop.await;
        // The receiver is gone only when serving has failed.
        let _ = stopped.send(());
    });
    let mut serving = tokio::spawn(async move { serving.await });
    let served = tokio::select! {
        // Also at the signal, when no connection is open; operations may run all the same.
        served = &mut serving => Some(served),
        _ = stopping => None,
    };
    idempotency.drain(DRAIN).await;
    let served = match served {
        Some(served) => Some(served),
        // An open connection does not keep the process alive: what was answered is stored.
        None => tokio::time::timeout(LINGER, serving).await.ok(),
    };
    store.close().await;
    if let Some(served) = served {
        served??;
    }
    Ok(())
}

async fn metrics(State(idempotency): State<Idempotency>) -> String {
    idempotency.metrics().to_prometheus()
}

/// Tells where the agent listens, and how to try it.
fn announce(url: &str) {
    let (message_id, extension) = (MessageId::generate(), extension::URI);
    let request = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"message/send","params":{{"message":{{"role":"user","kind":"message","messageId":"{message_id}","parts":[{{"kind":"text","text":"hello"}}]}}}}}}"#
    );
    let curl =
        format!("curl -i {url}/ -H 'Content-Type: application/json' -H 'A2A-Extensions: {extension}' -d '{request}'");
    println!("listening on {url}");
    println!("{curl}");
    println!("{curl}");
}

/// Resolves at SIGTERM or SIGINT.
fn shutdown_signal() -> std::io::Result<impl Future<Output = ()> + Send> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

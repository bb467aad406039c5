//! The agent's command line.

use std::time::Duration;

use clap::{ArgAction, Parser, ValueEnum};
use idempotent::{Config, ConfigError, ReplayId};

/// An A2A agent that echoes messages and is safe to retry.
#[derive(Debug, Parser)]
#[command(version)]
pub struct Flags {
    /// Address to listen on; port 0 picks a free one.
    #[arg(long, default_value = "127.0.0.1:3000", value_parser = address)]
    pub listen: String,
    /// Database of tasks and answers: a file's path, or `sqlite:PATH`.
    #[arg(long, default_value = "agent.db")]
    pub database_url: String,
    /// Seconds for which an answer is kept [default: AIWG_IDEMPOTENCY_TTL, or 86400].
    #[arg(long)]
    ttl_seconds: Option<u64>,
    /// Number of answers that are kept [default: AIWG_IDEMPOTENCY_MAX_ENTRIES, or 100000].
    #[arg(long)]
    max_entries: Option<u64>,
    /// Whether clients must activate the extension.
    #[arg(long, default_value_t = true, action = ArgAction::Set)]
    required: bool,
    /// Which JSON-RPC id a replay carries.
    #[arg(long, value_enum, default_value_t = Id::Original)]
    replay_id: Id,
    /// Largest request body, in bytes.
    #[arg(long, default_value_t = 16_777_216)]
    max_request_bytes: usize,
    /// Largest response body that is kept, in bytes.
    #[arg(long, default_value_t = 67_108_864)]
    max_response_bytes: u64,
    /// Milliseconds for which a duplicate waits for the first execution.
    #[arg(long, default_value_t = 30_000)]
    wait_ms: u64,
    /// Milliseconds after which a dead owner's operation may be taken over.
    #[arg(long, default_value_t = 30_000)]
    lease_ms: u64,
}

/// A host, by name or number, and a port.
fn address(text: &str) -> Result<String, &'static str> {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(text.to_owned()),
        _ => Err("expected HOST:PORT"),
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Id {
    /// The first request's.
    Original,
    /// The retry's own.
    Request,
}

impl Flags {
    /// The engine's settings: flags, then environment, then defaults.
    pub fn config(&self) -> Result<Config, ConfigError> {
        let overridden = |variable| match variable {
            idempotent::TTL_VARIABLE => self.ttl_seconds.is_some(),
            idempotent::MAX_ENTRIES_VARIABLE => self.max_entries.is_some(),
            _ => false,
        };
        let from_environment = |variable| {
            let value = std::env::var_os(variable).filter(|_| !overridden(variable))?;
            Some(value.to_string_lossy().into_owned())
        };
        let mut config = Config::from_variables(from_environment)?
            .required(self.required)
            .replay_id(match self.replay_id {
                Id::Original => ReplayId::Original,
                Id::Request => ReplayId::Request,
            })
            .max_request_bytes(self.max_request_bytes)
            .max_response_bytes(self.max_response_bytes)
            .wait(Duration::from_millis(self.wait_ms))
            .lease(Duration::from_millis(self.lease_ms))?;
        if let Some(seconds) = self.ttl_seconds {
            config = config.ttl_seconds(seconds)?;
        }
        if let Some(entries) = self.max_entries {
            config = config.max_entries(entries)?;
        }
        Ok(config)
    }
}

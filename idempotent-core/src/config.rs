//! How the engine behaves: one [`Config`] for all annotated methods, since the AgentCard declares one set of params.

use std::{env, time::Duration};

use crate::{card::RuntimeParams, json::Numbers, store::Retention};

/// Environment variable for [`Config::ttl_seconds`] (spec section 9), in seconds.
pub const TTL_VARIABLE: &str = "AIWG_IDEMPOTENCY_TTL";

/// Environment variable for [`Config::max_entries`] (spec section 9).
pub const MAX_ENTRIES_VARIABLE: &str = "AIWG_IDEMPOTENCY_MAX_ENTRIES";

/// Which JSON-RPC `id` a replay carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplayId {
    /// The first request's: the replay equals the first answer byte for byte (the default, spec section 6.1).
    #[default]
    Original,
    /// The retry's own, for clients that refuse any other, such as the JavaScript SDK. Everything else stays as it was.
    Request,
}

/// To whom a replay says that it is one (spec section 7.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplayedHeader {
    /// Every replay carries `Idempotent-Replayed: true` (the default).
    #[default]
    Always,
    /// Callers in the global scope are not told: they could probe for the `messageId`s of others.
    ScopedCallers,
}

/// A value that [`Config`] does not accept. The text names the setting and says what it takes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting} must be {expected}, not `{value}`")]
pub struct ConfigError {
    setting: &'static str,
    expected: &'static str,
    value: String,
}

/// The engine's settings.
///
/// ```
/// use std::time::Duration;
/// use idempotent_core::Config;
///
/// let config = Config::from_env()?.ttl_seconds(3_600)?.wait(Duration::from_secs(5));
/// assert!(Config::default().lease(Duration::ZERO).is_err());
/// # Ok::<(), idempotent_core::ConfigError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    pub(crate) retention: Retention,
    pub(crate) required: bool,
    pub(crate) replay_id: ReplayId,
    pub(crate) replayed_header: ReplayedHeader,
    pub(crate) numbers: Numbers,
    pub(crate) wait: Duration,
    pub(crate) lease: Duration,
    pub(crate) max_request_bytes: usize,
    pub(crate) max_response_bytes: u64,
    pub(crate) recording_memory_bytes: usize,
}

impl Default for Config {
    /// The spec's values, and: required, a wait and a lease of 30 seconds, requests up to 16 MiB, responses up to 64 MiB, of
    /// which a recording holds 1 MiB in memory.
    fn default() -> Self {
        Self {
            retention: Retention::default(),
            required: true,
            replay_id: ReplayId::default(),
            replayed_header: ReplayedHeader::default(),
            numbers: Numbers::default(),
            wait: Duration::from_secs(30),
            lease: Duration::from_secs(30),
            max_request_bytes: 16 << 20,
            max_response_bytes: 64 << 20,
            recording_memory_bytes: 1 << 20,
        }
    }
}

impl Config {
    /// The defaults, with TTL and bound from [`TTL_VARIABLE`] and [`MAX_ENTRIES_VARIABLE`] where these are set and not empty.
    ///
    /// # Errors
    ///
    /// A variable that is not a whole number of at least 1.
    pub fn from_env() -> Result<Self, ConfigError> {
        Self::from_variables(|name| env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
    }

    /// As [`Config::from_env`], with `value_of` in place of the environment.
    ///
    /// # Errors
    ///
    /// A variable that is not a whole number of at least 1.
    pub fn from_variables(value_of: impl Fn(&'static str) -> Option<String>) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        for (variable, setting) in [
            (TTL_VARIABLE, &mut config.retention.ttl_seconds),
            (MAX_ENTRIES_VARIABLE, &mut config.retention.max_entries),
        ] {
            if let Some(value) = value_of(variable).filter(|value| !value.is_empty()) {
                let number = value.trim().parse().map_err(|_| not_a_count(variable, value))?;
                *setting = at_least_one(variable, number)?;
            }
        }
        Ok(config)
    }

    /// Seconds for which an answer is kept (spec section 3.3; 86,400 is the conforming value).
    ///
    /// # Errors
    ///
    /// Zero.
    pub fn ttl_seconds(mut self, seconds: u64) -> Result<Self, ConfigError> {
        self.retention.ttl_seconds = at_least_one("ttl_seconds", seconds)?;
        Ok(self)
    }

    /// Number of answers above which the least recently used ones are evicted.
    ///
    /// # Errors
    ///
    /// Zero.
    pub fn max_entries(mut self, entries: u64) -> Result<Self, ConfigError> {
        self.retention.max_entries = at_least_one("max_entries", entries)?;
        Ok(self)
    }

    /// Whether annotated methods refuse requests that do not activate the extension. When they do not, such a request runs
    /// without a key, as if the method were not annotated.
    pub fn required(mut self, required: bool) -> Self {
        self.required = required;
        self
    }

    /// Which JSON-RPC `id` a replay carries.
    pub fn replay_id(mut self, replay_id: ReplayId) -> Self {
        self.replay_id = replay_id;
        self
    }

    /// To whom a replay says that it is one.
    pub fn replayed_header(mut self, replayed_header: ReplayedHeader) -> Self {
        self.replayed_header = replayed_header;
        self
    }

    /// Which numbers are refused before hashing.
    pub fn numbers(mut self, numbers: Numbers) -> Self {
        self.numbers = numbers;
        self
    }

    /// How long a duplicate waits for the first execution before it gets a 409. Zero: not at all.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// How long a dead owner's claim stands. A living owner renews it three times as often.
    ///
    /// # Errors
    ///
    /// Less than a millisecond, or more than 10^9 seconds.
    pub fn lease(mut self, lease: Duration) -> Result<Self, ConfigError> {
        if lease < Duration::from_millis(1) || lease > Duration::from_secs(1_000_000_000) {
            let value = format!("{lease:?}");
            return Err(ConfigError {
                setting: "lease",
                expected: "at least a millisecond (and under 10^9 seconds)",
                value,
            });
        }
        self.lease = lease;
        Ok(self)
    }

    /// Largest request body, in bytes; a larger one gets HTTP 413. Applied by `JsonRpcRouter`.
    pub fn max_request_bytes(mut self, bytes: usize) -> Self {
        self.max_request_bytes = bytes;
        self
    }

    /// Largest response body that is kept for replay, in bytes. Of a larger one only the fact that the operation ran is kept.
    pub fn max_response_bytes(mut self, bytes: u64) -> Self {
        self.max_response_bytes = bytes;
        self
    }

    /// How many bytes of a streamed response are held in memory while it is recorded; the rest goes to the store in chunks.
    ///
    /// # Errors
    ///
    /// Less than 1,024.
    pub fn recording_memory_bytes(mut self, bytes: usize) -> Result<Self, ConfigError> {
        if bytes < 1024 {
            let (setting, value) = ("recording_memory_bytes", bytes.to_string());
            return Err(ConfigError { setting, expected: "at least 1,024", value });
        }
        self.recording_memory_bytes = bytes;
        Ok(self)
    }

    /// What an AgentCard declares of these settings (spec section 3.3).
    pub fn declared(&self) -> RuntimeParams {
        RuntimeParams {
            ttl_seconds: self.retention.ttl_seconds,
            max_cache_entries: self.retention.max_entries,
            required: self.required,
        }
    }
}

fn at_least_one(setting: &'static str, value: u64) -> Result<u64, ConfigError> {
    // The databases count in signed 64-bit numbers, and `inserted_at + ttl_seconds` must not leave them.
    if (1..=1 << 53).contains(&value) { Ok(value) } else { Err(not_a_count(setting, value.to_string())) }
}

fn not_a_count(setting: &'static str, value: String) -> ConfigError {
    ConfigError { setting, expected: "a whole number from 1 to 2^53", value }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ttl_from(value: &str) -> Result<u64, String> {
        let config = Config::from_variables(|name| (name == TTL_VARIABLE).then(|| value.to_owned()));
        config.map(|config| config.retention.ttl_seconds).map_err(|error| error.to_string())
    }

    #[test]
    fn variables_are_read_and_bad_ones_named() {
        assert_eq!(ttl_from("60"), Ok(60));
        assert_eq!(ttl_from(""), Ok(86_400));
        for bad in ["0", "-1", "1.5", "1h", " ", "99999999999999999999"] {
            let message = ttl_from(bad).expect_err(bad);
            assert!(message.starts_with("AIWG_IDEMPOTENCY_TTL must be a whole number"), "{message}");
        }
    }

    #[test]
    fn nothing_that_would_never_end_or_never_keep_is_accepted() {
        assert!(Config::default().ttl_seconds(0).is_err());
        assert!(Config::default().max_entries(0).is_err());
        assert!(Config::default().lease(Duration::ZERO).is_err());
        assert!(Config::default().recording_memory_bytes(0).is_err());
    }
}

//! Counts of what became of requests, by method and [`Outcome`]; never a key or a principal.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{
        PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

/// What became of a request to an annotated method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// Its operation ran.
    Executed,
    /// It got the answer of an earlier request.
    Replayed,
    /// Its key was used with another payload or operation.
    Collision,
    /// The first request with its key was still running when its wait ran out.
    InProgress,
    /// It was turned down for another reason.
    Refused,
}

impl Outcome {
    const ALL: [Self; 5] = [Self::Executed, Self::Replayed, Self::Collision, Self::InProgress, Self::Refused];

    /// The outcome as a label value.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Executed => "executed",
            Self::Replayed => "replayed",
            Self::Collision => "collision",
            Self::InProgress => "in_progress",
            Self::Refused => "refused",
        }
    }
}

/// Counters since the engine was made.
#[derive(Debug, Default)]
pub struct Metrics {
    requests: RwLock<BTreeMap<&'static str, [AtomicU64; 5]>>,
    store_failures: AtomicU64,
}

impl Metrics {
    pub(crate) fn count(&self, method: &'static str, outcome: Outcome) {
        if let Some(counters) = self.requests.read().unwrap_or_else(PoisonError::into_inner).get(method) {
            counters[outcome as usize].fetch_add(1, Ordering::Relaxed);
            return;
        }
        let mut requests = self.requests.write().unwrap_or_else(PoisonError::into_inner);
        requests.entry(method).or_default()[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_store_failure(&self) {
        self.store_failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of requests to `method` (by its 0.3 name) with this outcome.
    pub fn requests(&self, method: &str, outcome: Outcome) -> u64 {
        let requests = self.requests.read().unwrap_or_else(PoisonError::into_inner);
        requests.get(method).map_or(0, |counters| counters[outcome as usize].load(Ordering::Relaxed))
    }

    /// How often an answer could not be stored at its first try.
    pub fn store_failures(&self) -> u64 {
        self.store_failures.load(Ordering::Relaxed)
    }

    /// The counters in Prometheus' text format: `idempotent_requests_total{method, outcome}` and
    /// `idempotent_store_failures_total`.
    pub fn to_prometheus(&self) -> String {
        let mut text = String::from(
            "# HELP idempotent_requests_total Requests to annotated methods, by outcome.\n\
             # TYPE idempotent_requests_total counter\n",
        );
        for (method, counters) in &*self.requests.read().unwrap_or_else(PoisonError::into_inner) {
            for outcome in Outcome::ALL {
                let count = counters[outcome as usize].load(Ordering::Relaxed);
                let outcome = outcome.as_str();
                // Writing to a String cannot fail.
                let _ =
                    writeln!(text, "idempotent_requests_total{{method=\"{method}\",outcome=\"{outcome}\"}} {count}");
            }
        }
        let failures = self.store_failures();
        let _ = write!(
            text,
            "# HELP idempotent_store_failures_total Answers that could not be stored at the first try.\n\
             # TYPE idempotent_store_failures_total counter\n\
             idempotent_store_failures_total {failures}\n"
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_counted_by_method() {
        let metrics = Metrics::default();
        metrics.count("message/send", Outcome::Executed);
        metrics.count("message/send", Outcome::Replayed);
        metrics.count("message/send", Outcome::Replayed);
        assert_eq!(metrics.requests("message/send", Outcome::Replayed), 2);
        assert_eq!(metrics.requests("message/stream", Outcome::Replayed), 0);
        let text = metrics.to_prometheus();
        assert!(text.contains("idempotent_requests_total{method=\"message/send\",outcome=\"replayed\"} 2\n"), "{text}");
        assert!(text.contains("outcome=\"in_progress\"} 0\n"), "{text}");
    }
}

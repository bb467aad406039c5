//! What the agent does with a message, and the knobs in `params.metadata.demo` that make it do something worse.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use idempotent::{IdempotencyContext, RpcError};
use serde::Deserialize;

/// The knobs of a request; part of its hash like everything else in `params`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Demo {
    /// Milliseconds of work: before the answer, in a stream after the first event.
    delay_ms: u64,
    /// Number of working updates in a stream.
    events: Option<u32>,
    /// Milliseconds before each of them.
    event_interval_ms: u64,
    /// Fails with this HTTP status.
    http_status: Option<u16>,
    /// The JSON-RPC code of that failure.
    rpc_code: Option<i64>,
    /// Panics after the work.
    panic: bool,
    /// Pads the echo to this many bytes.
    response_bytes: usize,
    /// Added to the response in order; each character up to U+00FF is one byte.
    headers: Vec<(String, String)>,
    /// Crashes the process after the work, on the first attempt.
    abort: bool,
}

impl Demo {
    /// The failure that was asked for, if any.
    pub fn failure(&self) -> Result<(), RpcError> {
        let Some(status) = self.http_status else { return Ok(()) };
        let status = StatusCode::from_u16(status).ok().filter(|status| !status.is_informational());
        let status = status.ok_or_else(|| RpcError::invalid_params("demo.http_status is not a final HTTP status"))?;
        let error = RpcError::new(self.rpc_code.unwrap_or(-32000), "The demo operation failed");
        Err(error.with_status(status).with_headers(self.headers()?))
    }

    /// Takes as long as the work takes.
    pub async fn work(&self) {
        tokio::time::sleep(Duration::from_millis(self.delay_ms)).await;
    }

    /// Goes wrong after the work, if that was asked for.
    pub fn go_wrong(&self, context: &IdempotencyContext) {
        if self.abort && context.attempt() == 1 {
            std::process::abort();
        }
        assert!(!self.panic, "the demo operation panics");
    }

    /// How many working updates a stream has.
    pub fn updates(&self) -> u32 {
        self.events.unwrap_or(1)
    }

    /// Waits for the next working update.
    pub async fn interval(&self) {
        match self.event_interval_ms {
            // A sleep takes at least a millisecond.
            0 => tokio::task::yield_now().await,
            millis => tokio::time::sleep(Duration::from_millis(millis)).await,
        }
    }

    /// What the agent says to `text`.
    pub fn echo(&self, mut text: String) -> String {
        let padding = self.response_bytes.saturating_sub(text.len());
        text.extend(std::iter::repeat_n('.', padding));
        text
    }

    /// Headers for the response.
    pub fn headers(&self) -> Result<HeaderMap, RpcError> {
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let name = HeaderName::from_bytes(name.as_bytes()).ok();
            let bytes = value.chars().map(|char| u8::try_from(char).ok()).collect::<Option<Vec<u8>>>();
            let value = bytes.and_then(|bytes| HeaderValue::from_bytes(&bytes).ok());
            let (Some(name), Some(value)) = (name, value) else {
                return Err(RpcError::invalid_params("demo.headers has a name or value that HTTP does not allow"));
            };
            headers.append(name, value);
        }
        Ok(headers)
    }
}

/// A task that has been accepted.
pub fn submitted(context_id: Option<String>) -> a2a::Task {
    a2a::Task {
        id: a2a::new_task_id(),
        context_id: context_id.unwrap_or_else(a2a::new_context_id),
        status: a2a::TaskStatus { state: a2a::TaskState::Submitted, message: None, timestamp: None },
        artifacts: None,
        history: None,
        metadata: None,
    }
}

/// The same task, completed: its artifact is the echo.
pub fn completed(mut task: a2a::Task, echo: &str) -> a2a::Task {
    task.status.state = a2a::TaskState::Completed;
    task.artifacts = Some(vec![a2a::Artifact {
        artifact_id: a2a::new_artifact_id(),
        name: None,
        description: None,
        parts: vec![a2a::Part::text(echo)],
        metadata: None,
        extensions: None,
    }]);
    task
}

/// A change of a task's state, with what the agent says about it.
pub fn update(task: &a2a::Task, state: a2a::TaskState, says: Option<&str>) -> a2a::TaskStatusUpdateEvent {
    let message = says.map(|text| a2a::Message::new(a2a::Role::Agent, vec![a2a::Part::text(text)]));
    a2a::TaskStatusUpdateEvent {
        task_id: task.id.clone(),
        context_id: task.context_id.clone(),
        status: a2a::TaskStatus { state, message, timestamp: None },
        metadata: None,
    }
}

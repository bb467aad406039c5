//! A2A's wire forms. The agent thinks in A2A 1.0, whose types are `a2a`'s; here is what 0.3 writes differently.

use idempotent::Dialect;
use serde::{Deserialize, Serialize};

use crate::work::Demo;

/// What both dialects send: the parts of `MessageSendParams` that the agent looks at.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SendMessage {
    pub message: IncomingMessage,
    #[serde(default)]
    pub metadata: Option<Metadata>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IncomingMessage {
    pub parts: Vec<IncomingPart>,
    #[serde(default)]
    pub context_id: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct IncomingPart {
    #[serde(default)]
    pub text: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub struct Metadata {
    #[serde(default)]
    pub demo: Option<Demo>,
}

impl SendMessage {
    /// The message's text parts, joined.
    pub fn text(&self) -> String {
        self.message.parts.iter().filter_map(|part| part.text.as_deref()).collect::<Vec<_>>().join("\n")
    }
}

/// A task in the form of the dialect that asked for it.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum TaskForm {
    V0_3(v0_3::Task),
    V1_0(Box<a2a::Task>),
}

impl TaskForm {
    pub fn new(task: a2a::Task, dialect: Dialect) -> Self {
        match dialect {
            Dialect::V0_3 => Self::V0_3(task.into()),
            Dialect::V1_0 => Self::V1_0(Box::new(task)),
        }
    }
}

/// One result of a send or a stream, in the form of the dialect that asked.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Event {
    Task03(v0_3::Task),
    Status03(v0_3::StatusUpdate),
    V1_0(Box<a2a::StreamResponse>),
}

impl Event {
    pub fn task(task: a2a::Task, dialect: Dialect) -> Self {
        match dialect {
            Dialect::V0_3 => Self::Task03(task.into()),
            Dialect::V1_0 => Self::V1_0(Box::new(a2a::StreamResponse::Task(task))),
        }
    }

    pub fn status(update: a2a::TaskStatusUpdateEvent, dialect: Dialect) -> Self {
        match dialect {
            Dialect::V0_3 => Self::Status03(update.into()),
            Dialect::V1_0 => Self::V1_0(Box::new(a2a::StreamResponse::StatusUpdate(update))),
        }
    }
}

/// A2A 0.3's forms: `kind` tells types apart, roles and states are lower-case words.
pub mod v0_3 {
    use serde::Serialize;

    #[derive(Debug, Serialize)]
    #[serde(rename_all = "camelCase", tag = "kind", rename = "task")]
    pub struct Task {
        id: String,
        context_id: String,
        status: Status,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        artifacts: Vec<Artifact>,
    }

    #[derive(Debug, Serialize)]
    #[serde(rename_all = "camelCase", tag = "kind", rename = "status-update")]
    pub struct StatusUpdate {
        task_id: String,
        context_id: String,
        status: Status,
        r#final: bool,
    }

    #[derive(Debug, Serialize)]
    struct Status {
        state: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<Message>,
    }

    #[derive(Debug, Serialize)]
    #[serde(rename_all = "camelCase", tag = "kind", rename = "message")]
    struct Message {
        role: &'static str,
        message_id: String,
        parts: Vec<Part>,
    }

    #[derive(Debug, Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Artifact {
        artifact_id: String,
        parts: Vec<Part>,
    }

    #[derive(Debug, Serialize)]
    #[serde(tag = "kind", rename = "text")]
    struct Part {
        text: String,
    }

    impl From<a2a::Task> for Task {
        fn from(task: a2a::Task) -> Self {
            let artifacts = task.artifacts.unwrap_or_default().into_iter().map(Into::into).collect();
            Self { id: task.id, context_id: task.context_id, status: task.status.into(), artifacts }
        }
    }

    impl From<a2a::TaskStatusUpdateEvent> for StatusUpdate {
        fn from(update: a2a::TaskStatusUpdateEvent) -> Self {
            let r#final = update.status.state.is_terminal();
            Self { task_id: update.task_id, context_id: update.context_id, status: update.status.into(), r#final }
        }
    }

    impl From<a2a::TaskStatus> for Status {
        fn from(status: a2a::TaskStatus) -> Self {
            let state = match status.state {
                a2a::TaskState::Submitted => "submitted",
                a2a::TaskState::Working => "working",
                a2a::TaskState::Completed => "completed",
                a2a::TaskState::Failed => "failed",
                a2a::TaskState::Canceled => "canceled",
                a2a::TaskState::InputRequired => "input-required",
                a2a::TaskState::Rejected => "rejected",
                a2a::TaskState::AuthRequired => "auth-required",
                a2a::TaskState::Unspecified => "unknown",
            };
            Self { state, message: status.message.map(Into::into) }
        }
    }

    impl From<a2a::Message> for Message {
        fn from(message: a2a::Message) -> Self {
            let role = match message.role {
                a2a::Role::User => "user",
                a2a::Role::Agent | a2a::Role::Unspecified => "agent",
            };
            Self { role, message_id: message.message_id, parts: texts(message.parts) }
        }
    }

    impl From<a2a::Artifact> for Artifact {
        fn from(artifact: a2a::Artifact) -> Self {
            Self { artifact_id: artifact.artifact_id, parts: texts(artifact.parts) }
        }
    }

    /// The agent writes text parts only.
    fn texts(parts: Vec<a2a::Part>) -> Vec<Part> {
        parts.into_iter().filter_map(|part| Some(Part { text: part.as_text()?.to_owned() })).collect()
    }
}

//! The agent's methods. The first two are idempotent; the others only read.

use axum::extract::State;
use diesel::SqliteConnection;
use futures_core::Stream;
use http::HeaderMap;
use idempotent::{Dialect, Effects, IdempotencyContext, Params, RpcError, RpcStream, idempotent};
use serde::Deserialize;

use crate::{
    principal::Principal,
    tasks::{Page, PageRequest, Tasks},
    wire::{Event, SendMessage, TaskForm},
    work::{completed, submitted, update},
};

/// Echoes a message as a completed task.
#[idempotent(method = "message/send", scope = caller.name)]
pub async fn send_message(
    caller: Principal,
    dialect: Dialect,
    context: IdempotencyContext,
    effects: Effects<SqliteConnection>,
    Params(send): Params<SendMessage>,
) -> Result<(HeaderMap, Event), RpcError> {
    let text = send.text();
    let demo = send.metadata.and_then(|metadata| metadata.demo).unwrap_or_default();
    let headers = demo.headers()?;
    demo.work().await;
    demo.go_wrong(&context);
    demo.failure()?;
    let task = completed(submitted(send.message.context_id), &demo.echo(text));
    Tasks::record(&effects, &caller.owner(), &task)?;
    Ok((headers, Event::task(task, dialect)))
}

/// Echoes a message as a stream of events.
#[idempotent(method = "message/stream", scope = caller.name)]
pub async fn stream_message(
    caller: Principal,
    dialect: Dialect,
    context: IdempotencyContext,
    effects: Effects<SqliteConnection>,
    Params(send): Params<SendMessage>,
) -> Result<RpcStream<impl Stream<Item = Result<Event, RpcError>>>, RpcError> {
    let text = send.text();
    let demo = send.metadata.and_then(|metadata| metadata.demo).unwrap_or_default();
    let headers = demo.headers()?;
    demo.failure()?;
    let events = async_stream::stream! {
        let task = submitted(send.message.context_id);
        yield Ok(Event::task(task.clone(), dialect));
        demo.work().await;
        for _ in 0..demo.updates() {
            demo.interval().await;
            yield Ok(Event::status(update(&task, a2a::TaskState::Working, None), dialect));
        }
        demo.go_wrong(&context);
        let echo = demo.echo(text);
        let last = update(&task, a2a::TaskState::Completed, Some(&echo));
        match Tasks::record(&effects, &caller.owner(), &completed(task, &echo)) {
            Ok(()) => yield Ok(Event::status(last, dialect)),
            Err(error) => yield Err(error),
        }
    };
    Ok(RpcStream::new(events).with_headers(headers))
}

/// Names a task.
#[derive(Debug, Deserialize)]
pub struct TaskId {
    id: String,
}

/// One of the caller's own tasks.
pub async fn get_task(
    caller: Principal,
    dialect: Dialect,
    State(tasks): State<Tasks>,
    Params(task): Params<TaskId>,
) -> Result<TaskForm, RpcError> {
    Ok(TaskForm::new(tasks.get(caller.owner(), task.id).await?, dialect))
}

/// The caller's own tasks.
pub async fn list_tasks(
    caller: Principal,
    dialect: Dialect,
    State(tasks): State<Tasks>,
    Params(request): Params<Option<PageRequest>>,
) -> Result<Page<TaskForm>, RpcError> {
    let page = tasks.list(caller.owner(), request.unwrap_or_default()).await?;
    let tasks = page.tasks.into_iter().map(|task| TaskForm::new(task, dialect)).collect();
    Ok(Page { tasks, total_size: page.total_size })
}

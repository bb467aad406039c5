//! The agent's own tables, in the same file as the idempotency cache: one row in `tasks` and one in `outbox` per execution.

use diesel::prelude::*;
use idempotent::{Effects, RpcError, SqliteStore};
use serde::{Deserialize, Serialize};

diesel::table! {
    tasks (id) {
        id -> Text,
        owner -> Text,
        task -> Text,
    }
}

diesel::table! {
    outbox (id) {
        id -> BigInt,
        event -> Text,
        task_id -> Text,
    }
}

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS tasks (id TEXT PRIMARY KEY NOT NULL, owner TEXT NOT NULL, task TEXT NOT NULL);
    CREATE INDEX IF NOT EXISTS tasks_owner ON tasks (owner, id);
    CREATE TABLE IF NOT EXISTS outbox (id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, event TEXT NOT NULL, task_id TEXT NOT NULL);
";

/// Tasks that a page of `tasks/list` holds, unless the caller asks for fewer.
const PAGE: i64 = 100;

/// The finished tasks.
#[derive(Clone)]
pub struct Tasks {
    store: SqliteStore,
}

/// A page of one caller's tasks.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Page<T> {
    pub tasks: Vec<T>,
    pub total_size: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PageRequest {
    page_size: Option<i64>,
}

impl Tasks {
    pub async fn open(store: SqliteStore) -> Result<Self, Box<dyn std::error::Error>> {
        use diesel::connection::SimpleConnection as _;
        store.write(|connection| connection.batch_execute(TABLES)).await??;
        Ok(Self { store })
    }

    /// Writes a finished task and its event when, and only when, the answer that shows it is stored.
    pub fn record(effects: &Effects<SqliteConnection>, owner: &str, task: &a2a::Task) -> Result<(), RpcError> {
        let text = serde_json::to_string(task).map_err(|_| RpcError::internal("Internal error"))?;
        let (id, owner) = (task.id.clone(), owner.to_owned());
        effects.push(move |connection: &mut SqliteConnection| {
            diesel::insert_into(tasks::table)
                .values((tasks::id.eq(&id), tasks::owner.eq(&owner), tasks::task.eq(&text)))
                .execute(connection)?;
            diesel::insert_into(outbox::table)
                .values((outbox::event.eq("task.completed"), outbox::task_id.eq(&id)))
                .execute(connection)?;
            Ok(())
        });
        Ok(())
    }

    /// One of the caller's own tasks.
    pub async fn get(&self, owner: String, id: String) -> Result<a2a::Task, RpcError> {
        let found = self.store.read(move |connection| {
            let own = tasks::table.filter(tasks::id.eq(id)).filter(tasks::owner.eq(owner));
            own.select(tasks::task).get_result::<String>(connection).optional()
        });
        match found.await.map_err(internal)?.map_err(internal)? {
            Some(task) => read_task(&task),
            None => Err(RpcError::new(-32001, "Task not found")),
        }
    }

    /// The caller's own tasks, newest first.
    pub async fn list(&self, owner: String, request: PageRequest) -> Result<Page<a2a::Task>, RpcError> {
        let size = request.page_size.unwrap_or(PAGE).clamp(1, PAGE);
        let page = self.store.read(move |connection| {
            let own = tasks::table.filter(tasks::owner.eq(owner));
            let total_size = own.clone().count().get_result::<i64>(connection)?;
            let newest = own.order(tasks::id.desc()).limit(size).select(tasks::task);
            Ok::<_, diesel::result::Error>((newest.load::<String>(connection)?, total_size))
        });
        let (rows, total_size) = page.await.map_err(internal)?.map_err(internal)?;
        let tasks = rows.iter().map(|task| read_task(task)).collect::<Result<_, _>>()?;
        Ok(Page { tasks, total_size })
    }
}

fn read_task(text: &str) -> Result<a2a::Task, RpcError> {
    serde_json::from_str(text).map_err(internal)
}

fn internal(error: impl std::fmt::Display) -> RpcError {
    tracing::error!(%error, "a task could not be read");
    RpcError::internal("Internal error")
}

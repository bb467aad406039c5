//! Looks into an agent's database from outside, without writing.

#![allow(dead_code, unreachable_pub, reason = "each test file is a program of its own that uses a part of it")]

use std::{path::Path, time::Duration};

use diesel::{Connection as _, RunQueryDsl as _, SqliteConnection, connection::SimpleConnection as _};

use crate::support::Agent;

/// What successful executions have written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    pub tasks: i64,
    pub outbox: i64,
    /// Tasks without an event, and events without a task.
    pub orphans: i64,
}

impl Rows {
    /// What `executions` leave behind.
    pub fn of(executions: usize) -> Self {
        let rows = i64::try_from(executions).expect("a small number");
        Self { tasks: rows, outbox: rows, orphans: 0 }
    }

    /// What is there now. Some agent must have the file open.
    pub fn of_all_callers(database: &Path) -> Self {
        Self {
            tasks: number(database, "SELECT count(*) FROM tasks"),
            outbox: number(database, "SELECT count(*) FROM outbox"),
            orphans: number(
                database,
                "SELECT (SELECT count(*) FROM tasks WHERE id NOT IN (SELECT task_id FROM outbox)) \
                 + (SELECT count(*) FROM outbox WHERE task_id NOT IN (SELECT id FROM tasks))",
            ),
        }
    }
}

/// The one number that a `SELECT` says.
pub fn number(database: &Path, select: &str) -> i64 {
    let mut connection =
        SqliteConnection::establish(&format!("file:{}?mode=ro", database.display())).expect("it opens");
    connection.batch_execute("PRAGMA busy_timeout = 10000").expect("a pragma");
    diesel::dsl::sql::<diesel::sql_types::BigInt>(select).get_result(&mut connection).expect(select)
}

/// How many operations have a claim, on their `attempt`th attempt.
pub fn claims(database: &Path, attempt: u32) -> i64 {
    number(database, &format!("SELECT count(*) FROM idempotency_claim WHERE attempt = {attempt}"))
}

/// Waits until so many operations run on their first attempt.
pub async fn running(agent: &Agent, operations: i64) {
    until("operations run", || claims(agent.database(), 1) >= operations).await;
}

/// Waits until something is so, for up to a minute.
pub async fn until(what: &str, so: impl Fn() -> bool) {
    let waited = tokio::time::timeout(Duration::from_secs(60), async {
        while !so() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("waited in vain until {what}"));
}

/// Keeps everybody from writing to a database, until it is dropped.
pub struct WriteLock(SqliteConnection);

impl WriteLock {
    pub fn take(database: &Path) -> Self {
        let mut connection = SqliteConnection::establish(&database.to_string_lossy()).expect("it opens");
        connection.batch_execute("PRAGMA busy_timeout = 10000; BEGIN IMMEDIATE").expect("the lock");
        Self(connection)
    }
}

impl Drop for WriteLock {
    fn drop(&mut self) {
        self.0.batch_execute("ROLLBACK").expect("the end of a transaction");
    }
}

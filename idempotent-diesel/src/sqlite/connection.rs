//! Connections to the file, each set up so that it gets along with the others.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use diesel::{Connection, QueryResult, SqliteConnection, connection::SimpleConnection};

/// Why a SQLite file cannot be used as a store.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the SQLite database `{}`: {reason}", path.display())]
pub struct OpenError {
    path: PathBuf,
    reason: Reason,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Reason {
    #[error("the path is empty")]
    Empty,
    #[error("a database in memory is not durable, and no two connections share it; give a file")]
    InMemory,
    #[error("the path is not UTF-8")]
    NotUtf8,
    #[error("its directory does not exist")]
    NoDirectory,
    #[error("it is a directory")]
    Directory,
    #[error("{0}")]
    Connect(#[from] diesel::ConnectionError),
    #[error("{0}")]
    Query(#[from] diesel::result::Error),
    #[error("SQLite keeps its journal as `{0}` there; the store needs a write-ahead log (WAL)")]
    NoWal(String),
    #[error("its idempotency tables have version {found}, this program knows versions up to {known}")]
    NewerSchema { found: i64, known: i64 },
    #[error("a thread could not be started: {0}")]
    Thread(#[from] std::io::Error),
    #[error("the thread that opened it ended")]
    Aborted,
}

impl OpenError {
    pub(crate) fn new(path: &Path, reason: impl Into<Reason>) -> Self {
        Self { path: path.to_owned(), reason: reason.into() }
    }

    /// The path that was asked for.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The file behind `agent.db` or `sqlite:agent.db`, as an absolute path that SQLite takes literally.
pub(crate) fn resolve(given: &Path) -> Result<PathBuf, OpenError> {
    let text = given.to_str().ok_or_else(|| OpenError::new(given, Reason::NotUtf8))?;
    let file = text.strip_prefix("sqlite://").or_else(|| text.strip_prefix("sqlite:")).unwrap_or(text);
    if file.is_empty() {
        return Err(OpenError::new(given, Reason::Empty));
    }
    if file.starts_with(":memory:") || file.starts_with("file::memory:") {
        return Err(OpenError::new(given, Reason::InMemory));
    }
    // Absolute, so that SQLite does not read a name like `file:x` as a URI.
    let path = std::path::absolute(file).map_err(|error| OpenError::new(given, Reason::Thread(error)))?;
    if path.is_dir() {
        return Err(OpenError::new(given, Reason::Directory));
    }
    if path.parent().is_some_and(|directory| !directory.is_dir()) {
        return Err(OpenError::new(given, Reason::NoDirectory));
    }
    Ok(path)
}

/// How connections are set up.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) path: PathBuf,
    pub(crate) busy_timeout: Duration,
    pub(crate) foreign_keys: bool,
}

impl Settings {
    /// A connection that waits for its turn instead of failing.
    pub(crate) fn connect(&self) -> Result<SqliteConnection, Reason> {
        let url = self.path.to_str().ok_or(Reason::NotUtf8)?;
        let mut connection = SqliteConnection::establish(url)?;
        configure(&mut connection, self.busy_timeout)?;
        let foreign_keys = if self.foreign_keys { "ON" } else { "OFF" };
        connection.batch_execute(&format!("PRAGMA foreign_keys = {foreign_keys}"))?;
        Ok(connection)
    }

    /// A connection for the one thread that writes.
    pub(crate) fn connect_writer(&self) -> Result<SqliteConnection, Reason> {
        let mut connection = self.connect()?;
        tune_writer(&mut connection)?;
        Ok(connection)
    }

    /// The first connection: makes the file a WAL one.
    pub(crate) fn connect_first(&self) -> Result<SqliteConnection, Reason> {
        let mut connection = self.connect()?;
        let deadline = Instant::now() + self.busy_timeout;
        loop {
            // Two processes that change the journal mode at once do not wait for each other: one fails at once.
            match enable_wal(&mut connection) {
                Ok(mode) if mode == "wal" => return Ok(connection),
                Ok(mode) => return Err(Reason::NoWal(mode)),
                Err(error) if is_busy(&error) && Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// A connection that can only read.
    pub(crate) fn connect_reader(&self) -> Result<SqliteConnection, Reason> {
        let mut connection = self.connect()?;
        connection.batch_execute("PRAGMA query_only = ON")?;
        Ok(connection)
    }
}

/// Makes a connection the writer's.
pub(crate) fn tune_writer(connection: &mut SqliteConnection) -> QueryResult<()> {
    // SQLite looks for the lock less and less often, in the end ten times a second. Everybody waits for this connection, so
    // it asks anew before that.
    connection.batch_execute("PRAGMA busy_timeout = 20")?;
    // What one long recording made of the log is given back to the disk.
    connection.batch_execute("PRAGMA journal_size_limit = 67108864")
}

/// Sets up a connection of your own so that it gets along with a [`SqliteStore`](super::SqliteStore) on the same file: it waits
/// up to `busy_timeout` for the short transactions of the store's writer, and leaves the file its write-ahead log.
///
/// Run a transaction that reads before it writes as `immediate_transaction`: one that begins by reading and then writes fails
/// at once when somebody else wrote in between, whatever the time-out.
///
/// ```
/// use std::time::Duration;
/// use diesel::{Connection, SqliteConnection};
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("agent.db");
/// let mut connection = SqliteConnection::establish(path.to_str().unwrap())?;
/// idempotent_diesel::sqlite::configure(&mut connection, Duration::from_secs(10))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Those of SQLite.
pub fn configure(connection: &mut SqliteConnection, busy_timeout: Duration) -> QueryResult<()> {
    // First of all, so that what follows waits too; and each in its own call, since SQLite stops at the first error.
    connection.batch_execute(&format!("PRAGMA busy_timeout = {}", busy_timeout.as_millis()))?;
    connection.batch_execute("PRAGMA synchronous = NORMAL")
}

fn enable_wal(connection: &mut SqliteConnection) -> QueryResult<String> {
    use diesel::{RunQueryDsl, dsl::sql, sql_types::Text};
    sql::<Text>("PRAGMA journal_mode = WAL").get_result(connection)
}

/// Whether another connection had the lock for longer than the busy time-out.
pub(crate) fn is_busy(error: &diesel::result::Error) -> bool {
    message(error).is_some_and(|text| text.contains("locked"))
}

/// Whether the machine is at fault rather than the statement.
pub(crate) fn is_environmental(error: &diesel::result::Error) -> bool {
    message(error).is_some_and(|text| {
        ["database or disk is full", "disk I/O error", "out of memory", "readonly database", "unable to open database"]
            .iter()
            .any(|cause| text.contains(cause))
    }) || is_busy(error)
}

fn message(error: &diesel::result::Error) -> Option<&str> {
    match error {
        diesel::result::Error::DatabaseError(_, information) => Some(information.message()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_files_and_errors_name_them() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file:agent.db?mode=memory");
        assert_eq!(resolve(&file).unwrap(), file);
        let prefixed = format!("sqlite:{}", file.display());
        assert_eq!(resolve(Path::new(&prefixed)).unwrap(), file);
        assert!(resolve(Path::new("agent.db")).unwrap().is_absolute());
        assert!(resolve(Path::new("file:agent.db")).unwrap().ends_with("file:agent.db"));

        for (path, reason) in [
            (Path::new(""), "empty"),
            (Path::new("sqlite:"), "empty"),
            (Path::new(":memory:"), "not durable"),
            (Path::new("sqlite::memory:"), "not durable"),
            (directory.path(), "is a directory"),
            (&directory.path().join("no/agent.db"), "directory does not exist"),
        ] {
            let error = resolve(path).unwrap_err().to_string();
            assert!(error.contains(reason) && error.contains(&path.display().to_string()), "{error}");
        }
    }
}

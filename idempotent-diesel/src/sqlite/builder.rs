//! How a [`SqliteStore`] is opened.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use idempotent_core::{Clock, SystemClock};

use super::{
    OpenError, SqliteStore,
    connection::{Settings, resolve},
};

/// Options of a [`SqliteStore`], from [`SqliteStore::builder`].
///
/// ```
/// use std::time::Duration;
/// use idempotent_diesel::SqliteStore;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("agent.db");
/// let store = SqliteStore::builder(path)
///     .readers(2)
///     .busy_timeout(Duration::from_secs(10))
///     .open()
///     .await?;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until it is opened"]
pub struct SqliteStoreBuilder {
    path: PathBuf,
    clock: Arc<dyn Clock>,
    readers: usize,
    busy_timeout: Duration,
    foreign_keys: bool,
}

impl SqliteStoreBuilder {
    pub(crate) fn new(path: &Path) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            path: path.to_owned(),
            clock: Arc::new(SystemClock),
            readers: cores.min(4),
            busy_timeout: Duration::from_secs(5),
            foreign_keys: true,
        }
    }

    /// The clock that judges leases and TTLs; the operating system's by default. All processes on one file need the same.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// How many threads read, at least 1; by default as many as there are cores, at most 4.
    pub fn readers(mut self, number: usize) -> Self {
        self.readers = number.max(1);
        self
    }

    /// How long to wait for another connection that writes, before it counts as unavailable; 5 seconds by default.
    pub fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.busy_timeout = timeout;
        self
    }

    /// Whether foreign keys are enforced for effects, writes and [`SqliteStore::connect`]; they are by default.
    ///
    /// Without them SQLite cannot refuse a `COMMIT` that an effect executes by itself (as SQL: diesel's own transactions are
    /// no problem). Such an effect then commits half of what belongs together, and what shared its transaction may be
    /// committed twice.
    pub fn foreign_keys(mut self, enforced: bool) -> Self {
        self.foreign_keys = enforced;
        self
    }

    /// Opens the file, creates it if it is not there, and brings its idempotency tables up to date.
    ///
    /// # Errors
    ///
    /// When the path is no place for a database, the file is none, or its tables are of a newer version.
    pub async fn open(self) -> Result<SqliteStore, OpenError> {
        let settings =
            Settings { path: resolve(&self.path)?, busy_timeout: self.busy_timeout, foreign_keys: self.foreign_keys };
        SqliteStore::start(settings, self.clock, self.readers).await
    }
}

//! [`SqliteStore`]: the handle.

use std::{
    any::Any,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::Path,
    sync::{Arc, PoisonError, RwLock},
    thread,
    time::Duration,
};

use bytes::Bytes;
use diesel::{ExpressionMethods, OptionalExtension, QueryDsl, RunQueryDsl, SqliteConnection};
use futures_core::future::BoxFuture;
use idempotent_core::{
    Clock, Key,
    store::{
        Claim, ClaimOutcome, ClaimRequest, ClaimToken, CompleteOutcome, Completion, Effect, EffectError, Occupant,
        Retention, Store, StoreError, StoreResult, Swept,
    },
};
use tokio::sync::{Mutex, mpsc, oneshot};

use super::{
    OpenError, SqliteStats, SqliteStoreBuilder,
    connection::{Reason, Settings},
    jobs::{
        Answer, Appending, Awaited, Claiming, Committing, Completing, Job, Operation, Releasing, Renewing, SweepJob,
        WriteJob, Written,
    },
    queue::Queue,
    readers::{self, ReadJob},
    rows::{self, ClaimRow, Moment, RowKey, store_error},
    schema::{idempotency_chunk, idempotency_garbage},
    stats::Counters,
    touches::Touches,
    writer::{self, Writer},
};

/// A [`Store`] in a SQLite file; see the [module](super) for how it works.
///
/// A clone is another handle to the same store. When the last one is dropped, its threads end after what is queued.
///
/// ```
/// use idempotent_diesel::SqliteStore;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("agent.db");
/// let store = SqliteStore::open(path).await?;
/// store.close().await;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct SqliteStore {
    handle: Arc<Handle>,
}

struct Handle {
    shared: Arc<Shared>,
    /// Ends when every thread has dropped its sender.
    ended: Mutex<mpsc::Receiver<()>>,
}

/// How long connections that are not the store's wait for it.
const OWN_PATIENCE: Duration = Duration::from_secs(30);

/// What the threads know.
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) retention: RwLock<Retention>,
    pub(crate) writes: Queue<Box<dyn Job>>,
    pub(crate) reads: Queue<ReadJob>,
    pub(crate) touches: Touches,
    pub(crate) counters: Counters,
}

impl Shared {
    pub(crate) fn moment(&self) -> Moment {
        Moment {
            now_millis: self.clock.now_millis(),
            retention: *self.retention.read().unwrap_or_else(PoisonError::into_inner),
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.writes.close();
        self.shared.reads.close();
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.path()).finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens `agent.db` or `sqlite:agent.db` with the default options; see [`SqliteStoreBuilder::open`].
    ///
    /// # Errors
    ///
    /// When the path is no place for a database, the file is none, or its tables are of a newer version.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::builder(path).open().await
    }

    /// Options other than the default ones.
    pub fn builder(path: impl AsRef<Path>) -> SqliteStoreBuilder {
        SqliteStoreBuilder::new(path.as_ref())
    }

    pub(crate) async fn start(settings: Settings, clock: Arc<dyn Clock>, readers: usize) -> Result<Self, OpenError> {
        let path = settings.path.clone();
        let failed = |reason: Reason| OpenError::new(&path, reason);
        let shared = Arc::new(Shared {
            settings,
            clock,
            retention: RwLock::default(),
            writes: Queue::new(),
            reads: Queue::new(),
            touches: Touches::default(),
            counters: Counters::default(),
        });
        let (alive, ended) = mpsc::channel(1);
        // From here on its drop ends the threads, also when this future is dropped.
        let handle = Arc::new(Handle { shared: shared.clone(), ended: Mutex::new(ended) });

        let (opened, answer) = oneshot::channel();
        let (writer, sign) = (shared.clone(), alive.clone());
        spawn("idempotent-write", move || {
            let _sign = sign;
            match writer::open(&writer) {
                Ok(connection) => {
                    let _ = opened.send(Ok(()));
                    Writer::new(writer, connection).run();
                }
                Err(reason) => drop(opened.send(Err(reason))),
            }
        })
        .map_err(|error| failed(error.into()))?;
        answer.await.unwrap_or(Err(Reason::Aborted)).map_err(failed)?;

        for _ in 0..readers {
            let (opened, answer) = oneshot::channel();
            let (reader, sign) = (shared.clone(), alive.clone());
            spawn("idempotent-read", move || {
                let _sign = sign;
                readers::run(&reader, opened);
            })
            .map_err(|error| failed(error.into()))?;
            answer.await.unwrap_or(Err(Reason::Aborted)).map_err(failed)?;
        }
        Ok(Self { handle })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.shared().settings.path
    }

    /// What the writer has done so far.
    pub fn stats(&self) -> SqliteStats {
        self.shared().counters.read()
    }

    /// A connection of your own to the same file, set up to get along with the store; see [`configure`](super::configure).
    ///
    /// It waits up to 30 seconds (or the store's own time-out, if that is longer) for its turn to write: SQLite does not queue
    /// those who wait, so that a busy writer may be ahead of it more than once. [`write`](Self::write) takes its place in the
    /// writer's queue instead.
    ///
    /// Opening one costs some 100 µs and blocks for as long: keep it in a pool or a thread.
    ///
    /// # Errors
    ///
    /// When the file cannot be opened any more.
    pub fn connect(&self) -> Result<SqliteConnection, OpenError> {
        let settings = &self.shared().settings;
        let patient = Settings { busy_timeout: settings.busy_timeout.max(OWN_PATIENCE), ..settings.clone() };
        patient.connect().map_err(|reason| OpenError::new(self.path(), reason))
    }

    /// Reads from the same file, on one of the store's reading threads and with its connection, which cannot write.
    ///
    /// ```
    /// use diesel::{RunQueryDsl, dsl::sql, sql_types::BigInt};
    /// use idempotent_diesel::SqliteStore;
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # let directory = tempfile::tempdir()?;
    /// # let store = SqliteStore::open(directory.path().join("agent.db")).await?;
    /// let answer = store.read(|connection| sql::<BigInt>("SELECT 42").get_result::<i64>(connection)).await??;
    /// assert_eq!(answer, 42);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// The outer error is the store's, the inner one the closure's.
    ///
    /// # Panics
    ///
    /// When the closure does.
    pub async fn read<T, E, F>(&self, read: F) -> StoreResult<Result<T, E>>
    where
        F: FnOnce(&mut SqliteConnection) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: Send + 'static,
    {
        let read = self.on_reader(true, move |connection| Ok(catch_unwind(AssertUnwindSafe(|| read(connection)))));
        Ok(read.await?.unwrap_or_else(|panic: Box<dyn Any + Send>| resume_unwind(panic)))
    }

    /// Writes to the same file, all or nothing, on the writer thread and within its next commit: durable when it returns.
    ///
    /// The closure may be called more than once, each time after everything that it had written was rolled back. It must not
    /// wait for anything: nobody else writes meanwhile.
    ///
    /// ```
    /// use diesel::connection::SimpleConnection;
    /// use idempotent_diesel::SqliteStore;
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # let directory = tempfile::tempdir()?;
    /// # let store = SqliteStore::open(directory.path().join("agent.db")).await?;
    /// store.write(|connection| connection.batch_execute("CREATE TABLE task (id TEXT PRIMARY KEY)")).await??;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// The outer error is the store's, the inner one the closure's.
    ///
    /// # Panics
    ///
    /// When the closure does.
    pub async fn write<T, E, F>(&self, write: F) -> StoreResult<Result<T, E>>
    where
        F: Fn(&mut SqliteConnection) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: Send + 'static,
    {
        match self.on_writer(WriteJob::new(write)).await? {
            Written::Returned(returned) => Ok(returned),
            Written::Panicked(panic) => resume_unwind(panic),
        }
    }

    /// Lets no more calls in, finishes those that are queued, and waits until the threads have ended and the file is closed.
    ///
    /// Calls that come later, through any handle, answer [`StoreError::Unavailable`].
    pub async fn close(&self) {
        self.shared().writes.close();
        self.shared().reads.close();
        // Nothing is ever sent: it returns when the last sender is gone.
        while self.handle.ended.lock().await.recv().await.is_some() {}
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }

    async fn operate<O: Operation + 'static>(&self, operation: O) -> StoreResult<O::Outcome> {
        self.on_writer(Awaited::new(operation)).await
    }

    async fn on_writer<J: Job + 'static, T>(&self, (job, answer): (J, Answer<T>)) -> StoreResult<T> {
        self.shared().writes.push(Box::new(job)).map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }

    async fn on_reader<T, F>(&self, foreign: bool, read: F) -> StoreResult<T>
    where
        F: FnOnce(&mut SqliteConnection) -> StoreResult<T> + Send + 'static,
        T: Send + 'static,
    {
        let (sender, answer) = oneshot::channel();
        let read = Box::new(move |connection: Result<&mut SqliteConnection, Reason>| {
            if !sender.is_closed() {
                let _ = sender.send(connection.map_err(StoreError::unavailable).and_then(read));
            }
        });
        self.shared().reads.push(ReadJob { read, foreign }).map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }

    /// Whether there is a claim under the key whose lease runs, and which one.
    async fn running(&self, key: &Key) -> StoreResult<Option<i64>> {
        let (key, shared) = (key.clone(), self.shared().clone());
        self.on_reader(false, move |connection| {
            let claim = ClaimRow::load(connection, &RowKey::of(&key)).map_err(store_error)?;
            let Some(claim) = claim else { return Ok(None) };
            let running = matches!(claim.occupant(&shared.moment())?, Some(Occupant::InFlight { .. }));
            Ok(running.then_some(claim.token))
        })
        .await
    }
}

fn closed() -> StoreError {
    StoreError::unavailable("the store is closed")
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(run).map(drop)
}

impl Store for SqliteStore {
    type Connection = SqliteConnection;

    fn set_retention(&self, retention: Retention) {
        *self.shared().retention.write().unwrap_or_else(PoisonError::into_inner) = retention;
    }

    fn inspect<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, StoreResult<Option<Occupant>>> {
        let (key, shared) = (key.clone(), self.shared().clone());
        Box::pin(
            self.on_reader(false, move |connection| rows::occupant(connection, &RowKey::of(&key), &shared.moment())),
        )
    }

    fn claim(&self, request: ClaimRequest) -> BoxFuture<'_, StoreResult<ClaimOutcome>> {
        Box::pin(self.operate(Claiming { request }))
    }

    fn renew<'a>(&'a self, claim: &'a Claim, lease: Duration) -> BoxFuture<'a, StoreResult<bool>> {
        Box::pin(self.operate(Renewing { claim: claim.clone(), lease }))
    }

    fn complete(&self, completion: Completion<SqliteConnection>) -> BoxFuture<'_, StoreResult<CompleteOutcome>> {
        Box::pin(self.operate(Completing { completion }))
    }

    fn release<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, StoreResult<()>> {
        Box::pin(self.operate(Releasing { claim: claim.clone() }))
    }

    fn append_chunk<'a>(&'a self, claim: &'a Claim, index: u32, bytes: Bytes) -> BoxFuture<'a, StoreResult<bool>> {
        Box::pin(self.operate(Appending { claim: claim.clone(), index, bytes }))
    }

    fn read_chunk(&self, token: ClaimToken, index: u32) -> BoxFuture<'_, StoreResult<Option<Bytes>>> {
        use diesel::dsl::{exists, not};
        Box::pin(self.on_reader(false, move |connection| {
            let discarded = idempotency_garbage::table.filter(idempotency_garbage::token.eq(token.0));
            let bytes: Option<Vec<u8>> = idempotency_chunk::table
                .select(idempotency_chunk::bytes)
                .filter(idempotency_chunk::token.eq(token.0))
                .filter(idempotency_chunk::number.eq(i64::from(index)))
                .filter(not(exists(discarded)))
                .get_result(connection)
                .optional()
                .map_err(store_error)?;
            Ok(bytes.map(Bytes::from))
        }))
    }

    fn commit(&self, effects: Vec<Effect<SqliteConnection>>) -> BoxFuture<'_, StoreResult<Result<(), EffectError>>> {
        Box::pin(self.operate(Committing { effects }))
    }

    fn touch(&self, key: &Key) {
        self.shared().touches.note(key, self.shared().clock.now_millis());
    }

    fn changed<'a>(&'a self, key: &'a Key, at_most: Duration) -> BoxFuture<'a, ()> {
        // Another process does not tell, so this looks: soon, then less often, and for some 10 µs each time.
        let watch = async move {
            let Ok(Some(claim)) = self.running(key).await else { return };
            let mut pause = Duration::from_millis(5);
            loop {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_millis(100));
                // An error is the next caller's to see.
                if !matches!(self.running(key).await, Ok(Some(now)) if now == claim) {
                    return;
                }
            }
        };
        Box::pin(async move {
            let _ = tokio::time::timeout(at_most, watch).await;
        })
    }

    fn sweep(&self) -> BoxFuture<'_, StoreResult<Swept>> {
        Box::pin(self.on_writer(SweepJob::new()))
    }
}

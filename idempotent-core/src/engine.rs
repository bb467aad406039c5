//! [`Idempotency`]: the engine that a router's state supplies to its annotated handlers.

use std::{
    collections::HashSet,
    fmt,
    future::Future,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{body::Body, extract::FromRef};
use bytes::Bytes;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use crate::{
    config::Config,
    gate::{flight::Flights, patience::patiently},
    metrics::Metrics,
    store::{ClaimToken, Store, StoreError},
};

/// The engine: a store, its settings, and the operations that run.
///
/// `C` is the connection type of its store, with which handlers write [`Effects`](crate::Effects). Clones share everything. Keep one in
/// the router's state and let it supply the engine through [`FromRef`].
///
/// ```
/// use axum::extract::FromRef;
/// use idempotent_core::{Config, Idempotency, store::Store};
///
/// #[derive(Clone)]
/// struct App<C: 'static> {
///     idempotency: Idempotency<C>,
/// }
///
/// impl<C> FromRef<App<C>> for Idempotency<C> {
///     fn from_ref(app: &App<C>) -> Self {
///         app.idempotency.clone()
///     }
/// }
///
/// fn app<S: Store>(store: S) -> Result<App<S::Connection>, idempotent_core::ConfigError> {
///     Ok(App { idempotency: Idempotency::new(store).config(Config::from_env()?) })
/// }
/// ```
pub struct Idempotency<C: 'static> {
    engine: Arc<Engine<C>>,
}

impl<C: 'static> Idempotency<C> {
    /// An engine over a store, with the default [`Config`].
    pub fn new(store: impl Store<Connection = C>) -> Self {
        Self::with(Arc::new(store), Config::default())
    }

    /// The same store under other settings. Call it before the engine is shared: clones made earlier keep their settings.
    pub fn config(self, config: Config) -> Self {
        Self::with(Arc::clone(&self.engine.store), config)
    }

    fn with(store: Arc<dyn Store<Connection = C>>, config: Config) -> Self {
        store.set_retention(config.retention);
        let engine = Engine {
            store,
            config,
            flights: Flights::default(),
            metrics: Metrics::default(),
            tasks: TaskTracker::new(),
            draining: AtomicBool::new(false),
            warned: Mutex::default(),
        };
        Self { engine: Arc::new(engine) }
    }

    /// The engine's settings.
    pub fn settings(&self) -> &Config {
        &self.engine.config
    }

    /// Counts of what became of requests.
    pub fn metrics(&self) -> &Metrics {
        &self.engine.metrics
    }

    /// Ends well: from now on no operation begins (such requests get `IDEMPOTENCY_STORE_UNAVAILABLE`, replays still work), and
    /// those that run have until `deadline` from now to finish and to be stored.
    ///
    /// Returns how many were still running then; their claims end with their leases. Call it when the server has stopped
    /// accepting connections and before the process ends.
    pub async fn drain(&self, deadline: Duration) -> usize {
        self.engine.draining.store(true, Ordering::SeqCst);
        self.engine.tasks.close();
        if tokio::time::timeout(deadline, self.engine.tasks.wait()).await.is_err() {
            tracing::warn!(running = self.engine.tasks.len(), "operations were still running at the drain deadline");
        }
        self.engine.tasks.len()
    }

    pub(crate) fn engine(&self) -> &Arc<Engine<C>> {
        &self.engine
    }
}

impl<C: 'static> Clone for Idempotency<C> {
    fn clone(&self) -> Self {
        Self { engine: Arc::clone(&self.engine) }
    }
}

impl<C: 'static> fmt::Debug for Idempotency<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idempotency").field("config", &self.engine.config).finish_non_exhaustive()
    }
}

/// A router state that supplies the engine of annotated handlers.
///
/// Implemented for every state from which an [`Idempotency`] can be taken through [`FromRef`]; do not implement it yourself.
#[diagnostic::on_unimplemented(
    message = "the router's state `{Self}` does not supply the idempotency engine",
    label = "no `Idempotency<{C}>` can be taken from `{Self}`",
    note = "add a field `idempotency: Idempotency<…>` to the state and derive `axum::extract::FromRef`, or implement \
            `FromRef<{Self}>` for `Idempotency<{C}>`; `Effects<C>` needs the connection type of the engine's own store"
)]
pub trait SuppliesIdempotency<C: 'static> {
    /// The engine.
    fn idempotency(&self) -> Idempotency<C>;
}

#[diagnostic::do_not_recommend]
impl<S, C: 'static> SuppliesIdempotency<C> for S
where
    Idempotency<C>: FromRef<S>,
{
    fn idempotency(&self) -> Idempotency<C> {
        Idempotency::from_ref(self)
    }
}

/// What [`Idempotency`]'s clones share.
pub(crate) struct Engine<C: 'static> {
    pub(crate) store: Arc<dyn Store<Connection = C>>,
    pub(crate) config: Config,
    pub(crate) flights: Flights,
    pub(crate) metrics: Metrics,
    tasks: TaskTracker,
    draining: AtomicBool,
    /// Methods whose missing scope has been warned of.
    warned: Mutex<HashSet<&'static str>>,
}

impl<C: 'static> Engine<C> {
    /// Runs a task that drain waits for, in the current span.
    pub(crate) fn spawn<F>(&self, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.tasks.spawn(task.in_current_span());
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    /// Notes that an answer could not be stored at once.
    pub(crate) fn lost_write(&self, error: &StoreError) {
        self.metrics.count_store_failure();
        tracing::error!(%error, "an answer could not be stored; it is kept in memory and tried again");
    }

    /// Warns, once per method, that callers who present credentials share one key space.
    pub(crate) fn warn_unscoped(&self, method: &'static str) {
        if self.warned.lock().unwrap_or_else(PoisonError::into_inner).insert(method) {
            tracing::warn!(
                method,
                "requests carry credentials, but the method has no scope: a caller who sends another's messageId and payload \
                 gets the other's answer; add `scope = …` to its annotation"
            );
        }
    }
}

impl<C: 'static> Engine<C> {
    /// A stored body that is read from the store while it is sent.
    pub(crate) fn chunked_body(&self, token: ClaimToken, chunks: u32, rest: Bytes) -> Body {
        let store = Arc::clone(&self.store);
        Body::from_stream(futures_util::stream::unfold(Some(0), move |index: Option<u32>| {
            let (store, rest) = (Arc::clone(&store), rest.clone());
            async move {
                let index = index?;
                if index == chunks {
                    return Some((Ok(rest), None));
                }
                match patiently(store.read_chunk(token, index)).await {
                    Ok(Some(chunk)) => Some((Ok(chunk), Some(index + 1))),
                    Ok(None) => Some((Err(StoreError::Corrupt("a chunk of a response is missing".into())), None)),
                    Err(error) => Some((Err(error), None)),
                }
            }
        }))
    }
}

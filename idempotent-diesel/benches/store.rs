//! What a fresh request costs on `SqliteStore`, against the least that its rows can cost.
//!
//! A fresh request is a claim, and a completion with two effects (a task and an event). The **ceiling** writes the same rows
//! (the entry with its indices, the task, the event) from the same number of clients through a bare writer thread: everything
//! queued goes into the next transaction, synced to the disk, with no claim, no fence, no savepoint.
//!
//! Disks differ from minute to minute, so both run in turn, and only the ratios mean anything:
//! `cargo bench -p idempotent-diesel --bench store`.

#![allow(clippy::print_stdout, missing_docs)]

use std::{
    borrow::Cow,
    path::Path,
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

use bytes::Bytes;
use diesel::{Connection, ExpressionMethods, RunQueryDsl, SqliteConnection, connection::SimpleConnection};
use http::{HeaderMap, HeaderValue, StatusCode};
use idempotent_core::{
    Key, MessageId, RequestHash, Scope,
    store::{
        ClaimOutcome, ClaimRequest, CompleteOutcome, Completion, Effect, OnTakeover, Retention, Store, StoredBody,
        StoredResponse,
    },
};
use idempotent_diesel::SqliteStore;
use tokio::sync::oneshot;

diesel::table! {
    task (id) { id -> Text, body -> Text, }
}
diesel::table! {
    event (id) { id -> Text, body -> Text, }
}
diesel::table! {
    bare (scope, message_id) {
        scope -> Text,
        message_id -> Text,
        request_hash -> Text,
        method -> Text,
        response_status -> BigInt,
        response_headers -> Binary,
        inserted_at -> BigInt,
        last_used -> BigInt,
        claim_token -> BigInt,
        body_kind -> BigInt,
        body_chunks -> BigInt,
        body_bytes -> BigInt,
        response_body -> Binary,
    }
}

const TABLES: &str = "
    CREATE TABLE task (id TEXT PRIMARY KEY, body TEXT NOT NULL);
    CREATE TABLE event (id TEXT PRIMARY KEY, body TEXT NOT NULL);
    CREATE TABLE bare (scope TEXT NOT NULL, message_id TEXT NOT NULL, request_hash TEXT NOT NULL, method TEXT NOT NULL,
        response_status INTEGER NOT NULL, response_headers BLOB NOT NULL, inserted_at INTEGER NOT NULL,
        last_used INTEGER NOT NULL, claim_token INTEGER NOT NULL, body_kind INTEGER NOT NULL,
        body_chunks INTEGER NOT NULL, body_bytes INTEGER NOT NULL, response_body BLOB NOT NULL,
        PRIMARY KEY (scope, message_id));
    CREATE INDEX bare_inserted_at ON bare (inserted_at);
    CREATE INDEX bare_last_used ON bare (last_used);";

const BODY: usize = 600;
const ROUND: Duration = Duration::from_secs(2);
const ROUNDS: usize = 5;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let directory =
        tempfile::tempdir_in(std::env::var_os("BENCH_DIR").unwrap_or_else(|| ".".into())).expect("a directory");
    let store = SqliteStore::open(directory.path().join("agent.db")).await.expect("a store");
    store.write(|connection| connection.batch_execute(TABLES)).await.expect("a store").expect("tables");
    // The ceiling evicts nothing.
    store.set_retention(Retention { max_entries: 100_000_000, ..Retention::default() });
    let ceiling = Ceiling::start(&directory.path().join("ceiling.db"));

    println!(
        "{:>8} {:>14} {:>14} {:>7} {:>16} {:>16} {:>14} {:>14}",
        "clients",
        "store req/s",
        "ceiling req/s",
        "ratio",
        "durable/request",
        "commits/request",
        "store CPU µs",
        "ceiling CPU µs",
    );
    let clients = std::env::var("BENCH_CLIENTS").unwrap_or_else(|_| "1,16,64,256".into());
    for clients in clients.split(',').filter_map(|number| number.parse().ok()) {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        let before = store.stats();
        for _ in 0..ROUNDS {
            theirs.push(round(clients, |_| ceiling.request()).await);
            ours.push(round(clients, |_| request(&store)).await);
        }
        let after = store.stats();
        let number = ours.iter().map(|round| round.requests).sum::<u64>() as f64;
        let (our_cpu, their_cpu) = (median(&ours, Round::cpu_micros), median(&theirs, Round::cpu_micros));
        let (ours, theirs) = (median(&ours, Round::rate), median(&theirs, Round::rate));
        println!(
            "{clients:>8} {ours:>14.0} {theirs:>14.0} {:>7.2} {:>16.3} {:>16.3} {our_cpu:>14.0} {their_cpu:>14.0}",
            ours / theirs,
            (after.durable_commits - before.durable_commits) as f64 / number,
            (after.commits - before.commits) as f64 / number,
        );
    }
    sweep(&store).await;
}

/// Latencies of requests from 16 clients, without and with a sweep of many expired rows going on.
async fn sweep(store: &SqliteStore) {
    let rows = std::env::var("BENCH_ROWS").ok().and_then(|rows| rows.parse().ok()).unwrap_or(200_000);
    let quiet = round(16, |_| request(store)).await;
    let fill = move |connection: &mut SqliteConnection| {
        connection.batch_execute(&format!(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
             INSERT INTO idempotency_cache SELECT 'tenant', lower(hex(randomblob(16))), '', 'message/send', 200,
             CAST('{{}}' AS BLOB), 1000000, i, i, 1, 0, 0, randomblob({BODY}) FROM n;
             UPDATE idempotency_ledger SET entries = entries + {rows};"
        ))
    };
    let left = || async {
        let count = |connection: &mut SqliteConnection| {
            diesel::dsl::sql::<diesel::sql_types::BigInt>(
                "SELECT count(*) FROM idempotency_cache WHERE inserted_at = 1000000",
            )
            .get_result::<i64>(connection)
        };
        store.read(count).await.expect("a store").expect("a count")
    };
    store.write(fill).await.expect("a store").expect("rows");
    // Not to be paid for by the first requests.
    store.connect().expect("a store").batch_execute("PRAGMA wal_checkpoint(TRUNCATE)").expect("a checkpoint");
    let started = Instant::now();
    let mut busy = round(16, |_| request(store)).await;
    // As long as it lasts, and not longer.
    while left().await > 0 {
        busy.latencies.extend(round(16, |_| request(store)).await.latencies);
    }
    println!("\nsweep of {rows} expired rows under load: {:.1?}", started.elapsed());
    println!("{:>8} {:>12} {:>12} {:>12}", "", "p50", "p99", "slowest");
    for (name, round) in [("without", quiet), ("with", busy)] {
        let mut latencies = round.latencies;
        latencies.sort();
        let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize];
        println!("{name:>8} {:>12.1?} {:>12.1?} {:>12.1?}", at(0.5), at(0.99), at(1.0));
    }
}

struct Round {
    requests: u64,
    took: Duration,
    cpu: Duration,
    latencies: Vec<Duration>,
}

impl Round {
    fn rate(&self) -> f64 {
        self.requests as f64 / self.took.as_secs_f64()
    }

    fn cpu_micros(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.requests as f64
    }
}

/// CPU time of all threads so far, where the system tells it.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks: u64 = stat.split(' ').skip(13).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

async fn round<F: Future<Output = ()> + Send + 'static>(clients: usize, request: impl Fn(usize) -> F) -> Round {
    let (started, cpu) = (Instant::now(), cpu_time());
    let (mut requests, mut latencies) = (0, Vec::new());
    // Clients in lock-step would flatter both; each goes on as soon as it is answered.
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let spawn = |client: usize| {
        let (request, sender) = (request(client), sender.clone());
        tokio::spawn(async move {
            let started = Instant::now();
            request.await;
            let _ = sender.send((client, started.elapsed()));
        });
    };
    (0..clients).for_each(spawn);
    let mut running = clients;
    while running > 0 {
        let (client, latency) = receiver.recv().await.expect("a client is running");
        latencies.push(latency);
        requests += 1;
        running -= 1;
        if started.elapsed() < ROUND {
            spawn(client);
            running += 1;
        }
    }
    Round { requests, took: started.elapsed(), cpu: cpu_time() - cpu, latencies }
}

fn median(rounds: &[Round], figure: impl Fn(&Round) -> f64) -> f64 {
    let mut figures: Vec<f64> = rounds.iter().map(figure).collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn request(store: &SqliteStore) -> impl Future<Output = ()> + Send + 'static {
    let store = store.clone();
    async move {
        let message_id = MessageId::generate();
        let request = ClaimRequest {
            key: Key { scope: Scope::of("tenant"), message_id },
            request_hash: RequestHash::from_bytes([7; 32]),
            operation: Cow::Borrowed("message/send"),
            lease: Duration::from_secs(30),
            on_takeover: OnTakeover::Run,
            nonce: uuid::Uuid::now_v7(),
        };
        let Ok(ClaimOutcome::Won(claim)) = store.claim(request).await else { panic!("a fresh key is vacant") };
        let id = message_id.to_string();
        let (task, event) = (id.clone(), id);
        let effects: Vec<Effect<SqliteConnection>> = vec![
            Arc::new(move |connection| Ok(insert_task(connection, &task)?)),
            Arc::new(move |connection| Ok(insert_event(connection, &event)?)),
        ];
        let completion = Completion {
            claim,
            request_hash: RequestHash::from_bytes([7; 32]),
            operation: Cow::Borrowed("message/send"),
            response: StoredResponse {
                status: StatusCode::OK,
                headers: headers(),
                body: StoredBody::Whole(Bytes::from_static(&[b'x'; BODY])),
            },
            effects,
        };
        let outcome = store.complete(completion).await;
        assert!(matches!(outcome, Ok(CompleteOutcome::Stored)), "{outcome:?}");
    }
}

fn headers() -> HeaderMap {
    HeaderMap::from_iter([(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"))])
}

fn insert_task(connection: &mut SqliteConnection, id: &str) -> diesel::QueryResult<()> {
    diesel::insert_into(task::table).values((task::id.eq(id), task::body.eq("working"))).execute(connection).map(drop)
}

fn insert_event(connection: &mut SqliteConnection, id: &str) -> diesel::QueryResult<()> {
    diesel::insert_into(event::table)
        .values((event::id.eq(id), event::body.eq("created")))
        .execute(connection)
        .map(drop)
}

type Row = (String, oneshot::Sender<()>);

/// The bare writer thread.
struct Ceiling(mpsc::Sender<Row>);

impl Ceiling {
    fn start(path: &Path) -> Self {
        let mut connection = SqliteConnection::establish(path.to_str().expect("UTF-8")).expect("a file");
        for pragma in ["PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", TABLES] {
            connection.batch_execute(pragma).expect("a connection");
        }
        let (sender, queue) = mpsc::channel::<Row>();
        std::thread::spawn(move || {
            while let Ok(first) = queue.recv() {
                let rows: Vec<Row> = std::iter::once(first).chain(queue.try_iter().take(255)).collect();
                let written = connection
                    .immediate_transaction(|connection| rows.iter().try_for_each(|(id, _)| write(connection, id)));
                written.expect("a commit");
                for (_, done) in rows {
                    let _ = done.send(());
                }
            }
        });
        Self(sender)
    }

    fn request(&self) -> impl Future<Output = ()> + Send + 'static {
        let queue = self.0.clone();
        async move {
            let (done, answer) = oneshot::channel();
            queue.send((MessageId::generate().to_string(), done)).expect("a thread");
            answer.await.expect("a commit");
        }
    }
}

fn write(connection: &mut SqliteConnection, id: &str) -> diesel::QueryResult<()> {
    insert_task(connection, id)?;
    insert_event(connection, id)?;
    let hash = RequestHash::from_bytes([7; 32]).to_string();
    let now = i64::try_from(std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_micros())).unwrap_or(0);
    diesel::insert_into(bare::table)
        .values((
            bare::scope.eq("tenant"),
            bare::message_id.eq(id),
            bare::request_hash.eq(hash),
            bare::method.eq("message/send"),
            bare::response_status.eq(200),
            bare::response_headers.eq(&b"{\"content-type\":[\"application/json\"]}"[..]),
            bare::inserted_at.eq(now / 1_000_000),
            bare::last_used.eq(now),
            bare::claim_token.eq(now),
            bare::body_kind.eq(1),
            bare::body_chunks.eq(0),
            bare::body_bytes.eq(0),
            bare::response_body.eq(&[b'x'; BODY][..]),
        ))
        .execute(connection)
        .map(drop)
}

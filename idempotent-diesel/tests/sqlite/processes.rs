//! Real processes on one file, killed at any moment.
//!
//! The other processes are this test program again: each of the ignored tests below is what one of them does.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use futures_util::future::join_all;
use idempotent_core::{
    Key, MessageId, Scope,
    store::{ClaimOutcome, ClaimRequest, CompleteOutcome, Occupant, Store},
};
use idempotent_diesel::SqliteStore;

use crate::support::{body, completion, create_log, logged, logs, new_key, number, request, win, with_effects};

const FILE: &str = "IDEMPOTENT_TEST_FILE";

fn start(role: &str, file: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("processes::{role}"), "--ignored", "--nocapture", "--test-threads=1"])
        .env(FILE, file)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// What the process has told, one word a line, until it ended.
fn told(child: &mut Child) -> Vec<String> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    // A line that the kill cut short has no end mark.
    lines.filter_map(|line| line.strip_prefix("> ")?.strip_suffix(" <").map(str::to_owned)).collect()
}

fn tell(text: impl std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n> {text} <").unwrap();
    out.flush().unwrap();
}

fn file() -> PathBuf {
    PathBuf::from(std::env::var_os(FILE).expect("only another test starts this"))
}

fn key_of(text: &str) -> Key {
    Key { scope: Scope::of("tenant"), message_id: text.parse().unwrap() }
}

#[tokio::test]
#[ignore = "what another process does"]
async fn answers_until_killed() {
    let store = SqliteStore::open(file()).await.unwrap();
    let worker = |_| async {
        loop {
            let claim = win(&store, &new_key()).await;
            let outcome = store.complete(with_effects(&claim, vec![logs(&claim.key.message_id.to_string())])).await;
            assert!(matches!(outcome, Ok(CompleteOutcome::Stored)));
            tell(claim.key.message_id);
        }
    };
    let _: Vec<()> = join_all((0..8).map(worker)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_process_loses_nothing_that_it_told_and_leaves_nothing_by_halves() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent.db");
    let store = SqliteStore::open(&path).await.unwrap();
    create_log(&store).await;
    let mut stored = Vec::new();
    for round in 0..6 {
        let mut children = [start("answers_until_killed", &path), start("answers_until_killed", &path)];
        tokio::time::sleep(Duration::from_millis(400 + 37 * round)).await;
        for child in &mut children {
            child.kill().unwrap();
        }
        for child in &mut children {
            child.wait().unwrap();
            stored.extend(told(child));
        }
        // Nobody is in the way of this one.
        let mine = win(&store, &new_key()).await;
        store.complete(with_effects(&mine, vec![logs("mine")])).await.unwrap();
    }
    assert!(stored.len() > 20, "only {} answers in all", stored.len());
    for id in &stored {
        assert_eq!(body(&store, &key_of(id)).await, "answer");
        assert_eq!(logged(&store, id).await, 1);
    }
    // Every effect has its answer, every answer its effect, also those that were not told any more.
    let halves = "SELECT count(*) FROM (SELECT message_id FROM idempotency_cache EXCEPT SELECT name FROM log)";
    assert_eq!(number(&store, halves).await, 6, "only `mine` are logged under another name");
    let halves =
        "SELECT count(*) FROM log WHERE name <> 'mine' AND name NOT IN (SELECT message_id FROM idempotency_cache)";
    assert_eq!(number(&store, halves).await, 0);
    let check = store.read(|connection| {
        use diesel::RunQueryDsl;
        diesel::dsl::sql::<diesel::sql_types::Text>("PRAGMA integrity_check").get_result::<String>(connection)
    });
    assert_eq!(check.await.unwrap().unwrap(), "ok");
    assert_eq!(
        number(&store, "SELECT entries FROM idempotency_ledger").await,
        number(&store, "SELECT count(*) FROM idempotency_cache").await,
    );
}

const STORM: u128 = 150;

fn storm_key(number: u128) -> Key {
    let id = uuid::Uuid::from_u128(0x0198_3a7e_0000_7000_8000_0000_0000_0000 + number);
    Key { scope: Scope::global(), message_id: id.to_string().parse::<MessageId>().unwrap() }
}

#[tokio::test]
#[ignore = "what another process does"]
async fn storms() {
    let store = SqliteStore::open(file()).await.unwrap();
    let claim = |number| {
        let store = &store;
        async move {
            let key = storm_key(number);
            match store.claim(request(&key)).await.unwrap() {
                ClaimOutcome::Won(claim) => {
                    tell(claim.key.message_id);
                    store.complete(with_effects(&claim, vec![logs("ran")])).await.unwrap();
                }
                ClaimOutcome::Occupied(_) => {
                    while !matches!(store.inspect(&key).await.unwrap(), Some(Occupant::Completed(_))) {
                        store.changed(&key, Duration::from_secs(1)).await;
                    }
                }
            }
        }
    };
    join_all((0..STORM).map(claim)).await;
}

#[tokio::test]
async fn of_many_processes_one_wins_each_key() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent.db");
    let store = SqliteStore::open(&path).await.unwrap();
    create_log(&store).await;
    let children: Vec<_> = (0..3).map(|_| start("storms", &path)).collect();
    let winners = children.into_iter().map(|mut child| {
        thread::spawn(move || {
            let told = told(&mut child);
            assert!(child.wait().unwrap().success());
            told
        })
    });
    let mut wins: HashMap<String, u32> = HashMap::new();
    for winner in winners.collect::<Vec<_>>() {
        for id in winner.join().unwrap() {
            *wins.entry(id).or_default() += 1;
        }
    }
    assert_eq!(wins.len() as u128, STORM);
    assert!(wins.values().all(|number| *number == 1), "{wins:?}");
    assert_eq!(logged(&store, "ran").await as u128, STORM);
}

#[tokio::test]
#[ignore = "what another process does"]
async fn claims_and_hangs() {
    let store = SqliteStore::open(file()).await.unwrap();
    let short = ClaimRequest { lease: Duration::from_millis(1_500), ..request(&storm_key(1)) };
    assert!(matches!(store.claim(short).await, Ok(ClaimOutcome::Won(_))));
    tell("claimed");
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn a_killed_owners_claim_passes_on_when_its_lease_ends() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent.db");
    let store = SqliteStore::open(&path).await.unwrap();
    let mut child = start("claims_and_hangs", &path);
    let key = storm_key(1);
    while !matches!(store.inspect(&key).await.unwrap(), Some(Occupant::InFlight { .. })) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let started = std::time::Instant::now();
    store.changed(&key, Duration::from_secs(30)).await;
    assert!(started.elapsed() < Duration::from_secs(10));
    let claim = win(&store, &key).await;
    assert_eq!(claim.attempt, 2);
    assert!(matches!(store.complete(completion(&claim, "answer")).await, Ok(CompleteOutcome::Stored)));
}

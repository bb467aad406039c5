//! The application's own queries on the same file.

use std::time::{Duration, Instant};

use diesel::{RunQueryDsl, SqliteConnection, connection::SimpleConnection, dsl::sql, sql_types::BigInt};
use idempotent_core::store::Store;

use crate::support::{Fixture, log, logged, logs, new_key, store_answer, win};

#[tokio::test]
async fn a_write_is_all_or_nothing_and_says_what_its_closure_said() {
    let fixture = Fixture::new().await;
    let written = fixture.store.write(|connection| {
        log(connection, "kept")?;
        Ok::<_, diesel::result::Error>(42)
    });
    assert_eq!(written.await.unwrap().unwrap(), 42);
    let refused = fixture.store.write(|connection| {
        log(connection, "lost").unwrap();
        Err::<(), _>("refused")
    });
    assert_eq!(refused.await.unwrap().unwrap_err(), "refused");
    assert_eq!((logged(&fixture.store, "kept").await, logged(&fixture.store, "lost").await), (1, 0));
}

#[tokio::test]
async fn a_panic_in_a_closure_reaches_its_caller_and_nobody_else() {
    let fixture = Fixture::new().await;
    for reading in [true, false] {
        let store = fixture.store.clone();
        let panicking = tokio::spawn(async move {
            if reading {
                let _ = store.read(|_| -> Result<(), ()> { panic!("a read panics, as it should") }).await;
            } else {
                let write = |connection: &mut SqliteConnection| -> Result<(), ()> {
                    log(connection, "lost").unwrap();
                    panic!("a write panics, as it should")
                };
                let _ = store.write(write).await;
            }
        });
        assert!(panicking.await.unwrap_err().is_panic());
    }
    assert_eq!(logged(&fixture.store, "lost").await, 0);
    store_answer(&fixture.store, &new_key(), "answer").await;
}

#[tokio::test]
async fn a_read_cannot_write_and_sees_what_was_committed_before_it() {
    let fixture = Fixture::new().await;
    let write = fixture.store.read(|connection| log(connection, "sneaked in"));
    assert!(write.await.unwrap().unwrap_err().to_string().contains("readonly"));
    for round in 1..=20 {
        // One that leaves its transaction open must not freeze what later ones see.
        let _ = fixture.store.read(|connection| connection.batch_execute("BEGIN; SELECT * FROM log")).await.unwrap();
        assert!(fixture.store.commit(vec![logs("task")]).await.unwrap().is_ok());
        for _ in 0..4 {
            assert_eq!(logged(&fixture.store, "task").await, round);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_with_a_connection_of_its_own_meets_no_lock() {
    let fixture = Fixture::new().await;
    let until = Instant::now() + Duration::from_secs(2);
    let busy: Vec<_> = (0..16)
        .map(|_| {
            let store = fixture.store.clone();
            tokio::spawn(async move {
                while Instant::now() < until {
                    store_answer(&store, &new_key(), "answer").await;
                }
            })
        })
        .collect();
    // Handlers: each has a claim open while it writes on its own.
    let handlers: Vec<_> = (0..2)
        .map(|_| {
            let (store, mut connection) = (fixture.store.clone(), fixture.connect());
            tokio::spawn(async move {
                let mut written = 0;
                while Instant::now() < until {
                    let _claim = win(&store, &new_key()).await;
                    connection = tokio::task::spawn_blocking(move || {
                        let write = |connection: &mut SqliteConnection| {
                            let _: i64 = sql::<BigInt>("SELECT count(*) FROM log").get_result(connection)?;
                            log(connection, "own")
                        };
                        connection.immediate_transaction(write).expect("no lock is in the way");
                        connection
                    })
                    .await
                    .unwrap();
                    written += 1;
                }
                written
            })
        })
        .collect();
    let mut written = 0;
    for handler in handlers {
        written += handler.await.unwrap();
    }
    for task in busy {
        task.await.unwrap();
    }
    assert!(written > 0);
    assert_eq!(logged(&fixture.store, "own").await, written);
}

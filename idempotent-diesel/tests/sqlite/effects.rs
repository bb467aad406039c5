//! Effects that do what they should not, and their neighbours in the same transaction.

use std::{sync::Arc, time::Duration};

use diesel::{Connection, SqliteConnection, connection::SimpleConnection};
use futures_util::future::join_all;
use idempotent_core::store::{CompleteOutcome, Effect, Store, StoreError};

use crate::support::{Fixture, body, completion, log, logged, logs, new_key, number, runs, win, with_effects};

/// Completes 40 operations, most likely in one transaction, the culprit's effect being the 21st; returns the culprit's outcome.
///
/// Whatever it is, all others are stored with their effects, once; the culprit's first effect is undone and its claim stands.
async fn among_others(culprit: Effect<SqliteConnection>) -> Result<CompleteOutcome, StoreError> {
    let fixture = Fixture::new().await;
    let claims = join_all((0..40).map(|_| async { win(&fixture.store, &new_key()).await })).await;
    let mut other = fixture.connect();
    other.batch_execute("BEGIN IMMEDIATE").unwrap();
    let release = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        other.batch_execute("COMMIT").unwrap();
    };
    let completions = claims.iter().enumerate().map(|(number, claim)| {
        let effects = if number == 20 { vec![logs("culprit"), culprit.clone()] } else { vec![logs("other")] };
        fixture.store.complete(with_effects(claim, effects))
    });
    let (mut outcomes, ()) = tokio::join!(join_all(completions), release);
    let outcome = outcomes.remove(20);
    for other in outcomes {
        assert!(matches!(other, Ok(CompleteOutcome::Stored)), "{other:?}");
    }
    assert_eq!(logged(&fixture.store, "other").await, 39);
    if !matches!(outcome, Ok(CompleteOutcome::Stored)) {
        assert_eq!(logged(&fixture.store, "culprit").await, 0);
        // The store is as good as new, and the operation can end without its effects.
        let again = fixture.store.complete(completion(&claims[20], "failed")).await.unwrap();
        assert!(matches!(again, CompleteOutcome::Stored), "{again:?}");
        assert_eq!(body(&fixture.store, &claims[20].key).await, "failed");
    }
    assert_eq!(number(&fixture.store, "SELECT count(*) FROM idempotency_guard").await, 0);
    assert_eq!(number(&fixture.store, "SELECT entries FROM idempotency_ledger").await, 40);
    outcome
}

fn failed(outcome: Result<CompleteOutcome, StoreError>) -> String {
    match outcome {
        Ok(CompleteOutcome::EffectFailed(error)) => error.to_string(),
        other => panic!("the effect should have failed: {other:?}"),
    }
}

#[tokio::test]
async fn an_error_concerns_its_own_operation() {
    assert_eq!(failed(among_others(Arc::new(|_| Err("no".into()))).await), "no");
    assert!(failed(among_others(runs("INSERT INTO nowhere VALUES (1)")).await).contains("nowhere"));
    assert!(failed(among_others(runs("no SQL")).await).contains("syntax error"));
}

#[tokio::test]
async fn a_panic_concerns_its_own_operation() {
    let text = failed(among_others(Arc::new(|_| panic!("an effect panics, as it should"))).await);
    assert!(text.contains("as it should"), "{text}");
}

#[tokio::test]
async fn a_panic_within_a_transaction_of_its_own_is_undone() {
    let effect: Effect<SqliteConnection> = Arc::new(|connection| {
        connection.transaction(|connection| {
            log(connection, "culprit")?;
            connection.transaction(|connection| {
                log(connection, "culprit")?;
                if connection.batch_execute("SELECT 1").is_ok() {
                    panic!("an effect panics, as it should");
                }
                Ok::<(), diesel::result::Error>(())
            })
        })?;
        Ok(())
    });
    failed(among_others(effect).await);
}

#[tokio::test]
async fn a_transaction_within_an_effect_is_a_savepoint() {
    let effect: Effect<SqliteConnection> = Arc::new(|connection| {
        let undone = connection.transaction(|connection| {
            log(connection, "undone")?;
            Err::<(), _>(diesel::result::Error::RollbackTransaction)
        });
        assert!(undone.is_err());
        Ok(connection.transaction(|connection| log(connection, "culprit"))?)
    });
    let outcome = among_others(effect).await;
    assert!(matches!(outcome, Ok(CompleteOutcome::Stored)), "{outcome:?}");
}

#[tokio::test]
async fn a_commit_of_its_own_is_refused_by_sqlite() {
    assert!(failed(among_others(runs("COMMIT")).await).contains("FOREIGN KEY"));
    assert!(failed(among_others(runs("END TRANSACTION")).await).contains("FOREIGN KEY"));
    // One that does not care has done nothing.
    let careless: Effect<SqliteConnection> = Arc::new(|connection| {
        let _ = connection.batch_execute("COMMIT");
        Ok(())
    });
    let outcome = among_others(careless).await;
    assert!(matches!(outcome, Ok(CompleteOutcome::Stored)), "{outcome:?}");
}

#[tokio::test]
async fn a_rollback_of_its_own_breaks_only_itself() {
    assert!(failed(among_others(runs("ROLLBACK")).await).contains("broke the transaction"));
    assert!(failed(among_others(runs("ROLLBACK; BEGIN")).await).contains("broke the transaction"));
    let failing: Effect<SqliteConnection> = Arc::new(|connection| {
        connection.batch_execute("ROLLBACK")?;
        Err("and an error besides".into())
    });
    assert!(failed(among_others(failing).await).contains("besides"));
    let panicking: Effect<SqliteConnection> = Arc::new(|connection| {
        connection.batch_execute("ROLLBACK").unwrap();
        panic!("an effect panics, as it should");
    });
    failed(among_others(panicking).await);
}

#[tokio::test]
async fn a_transaction_left_open_breaks_only_itself() {
    type Manager = <SqliteConnection as Connection>::TransactionManager;
    use diesel::connection::TransactionManager;
    let open: Effect<SqliteConnection> = Arc::new(|connection| Ok(Manager::begin_transaction(connection)?));
    assert!(failed(among_others(open).await).contains("broke the transaction"));
    let closed: Effect<SqliteConnection> = Arc::new(|connection| Ok(Manager::commit_transaction(connection)?));
    assert!(failed(among_others(closed).await).contains("broke the transaction"));
    // As SQL it is harmless: the savepoint around the effect takes it along.
    let outcome = among_others(runs("SAVEPOINT mine; INSERT INTO log VALUES ('culprit')")).await;
    assert!(matches!(outcome, Ok(CompleteOutcome::Stored)), "{outcome:?}");
}

#[tokio::test]
async fn a_constraint_that_sqlite_checks_at_the_commit_concerns_its_own_operation() {
    let effect = runs(
        "CREATE TABLE IF NOT EXISTS parent (id INTEGER PRIMARY KEY);
         CREATE TABLE IF NOT EXISTS child (id INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED);
         INSERT INTO child VALUES (7)",
    );
    assert!(failed(among_others(effect).await).contains("FOREIGN KEY"));
}

#[tokio::test]
async fn a_full_disk_is_nobodys_refusal() {
    // SQLite rolls the whole transaction back when the file cannot grow.
    let effect: Effect<SqliteConnection> = Arc::new(|connection| {
        connection.batch_execute("PRAGMA max_page_count = 1")?;
        connection.batch_execute("CREATE TABLE large AS SELECT randomblob(1000000)")?;
        Ok(())
    });
    match among_others(effect).await {
        Err(StoreError::Unavailable(error)) => assert!(error.to_string().contains("full"), "{error}"),
        other => panic!("the store is full: {other:?}"),
    }
}

#[tokio::test]
async fn effects_without_a_key_are_not_committed_twice_when_a_neighbour_breaks_the_transaction() {
    let fixture = Fixture::new().await;
    let mut other = fixture.connect();
    other.batch_execute("BEGIN IMMEDIATE").unwrap();
    let release = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        other.batch_execute("COMMIT").unwrap();
    };
    let commits = (0..30).map(|number| {
        fixture.store.commit(match number {
            10 => vec![runs("COMMIT")],
            20 => vec![runs("ROLLBACK")],
            _ => vec![logs("once")],
        })
    });
    let (outcomes, ()) = tokio::join!(join_all(commits), release);
    let refused = outcomes.iter().filter(|outcome| matches!(outcome, Ok(Err(_)))).count();
    assert_eq!((refused, outcomes.iter().filter(|outcome| matches!(outcome, Ok(Ok(())))).count()), (2, 28));
    assert_eq!(logged(&fixture.store, "once").await, 28);
}

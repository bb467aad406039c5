//! Brings the idempotency tables of a file to the version that this program knows.
//!
//! The file may belong to an application with diesel migrations of its own. Diesel's bookkeeping table is left to it: ours is
//! `idempotency_schema`.

use diesel::{ExpressionMethods, QueryDsl, RunQueryDsl, SqliteConnection, connection::SimpleConnection, dsl::max};

use super::connection::Reason;

const MIGRATIONS: &[&str] = &[include_str!("../../migrations/sqlite/0001_initial/up.sql")];

diesel::table! {
    idempotency_schema (version) {
        version -> BigInt,
    }
}

/// Applies what is missing, all in one transaction; of several processes at once, one does it and the others wait.
pub(crate) fn migrate(connection: &mut SqliteConnection) -> Result<(), Reason> {
    apply(connection, MIGRATIONS)
}

fn apply(connection: &mut SqliteConnection, migrations: &[&str]) -> Result<(), Reason> {
    connection.immediate_transaction(|connection| {
        connection
            .batch_execute("CREATE TABLE IF NOT EXISTS idempotency_schema (version INTEGER NOT NULL PRIMARY KEY)")?;
        let found = idempotency_schema::table
            .select(max(idempotency_schema::version))
            .get_result::<Option<i64>>(connection)?
            .unwrap_or(0);
        let known = migrations.len() as i64;
        if found > known {
            return Err(Reason::NewerSchema { found, known });
        }
        for (version, sql) in (1..).zip(migrations) {
            if version > found {
                connection.batch_execute(sql)?;
                diesel::insert_into(idempotency_schema::table)
                    .values(idempotency_schema::version.eq(version))
                    .execute(connection)?;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use diesel::Connection;

    use super::*;

    fn connection() -> SqliteConnection {
        SqliteConnection::establish(":memory:").unwrap()
    }

    #[test]
    fn each_migration_runs_once_and_later_ones_follow() {
        let mut connection = connection();
        let first = "CREATE TABLE one (id INTEGER)";
        apply(&mut connection, &[first]).unwrap();
        apply(&mut connection, &[first]).unwrap();
        apply(&mut connection, &[first, "CREATE TABLE two (id INTEGER)"]).unwrap();
        connection.batch_execute("INSERT INTO two VALUES (1)").unwrap();
    }

    #[test]
    fn a_file_of_a_newer_program_is_refused_and_left_alone() {
        let mut connection = connection();
        apply(&mut connection, &["CREATE TABLE one (id INTEGER)", "CREATE TABLE two (id INTEGER)"]).unwrap();
        let error = apply(&mut connection, &["CREATE TABLE one (id INTEGER)"]).unwrap_err();
        assert!(matches!(error, Reason::NewerSchema { found: 2, known: 1 }), "{error}");
    }

    #[test]
    fn a_migration_that_fails_leaves_nothing() {
        let mut connection = connection();
        apply(&mut connection, &["CREATE TABLE one (id INTEGER)", "no SQL"]).unwrap_err();
        connection.batch_execute("CREATE TABLE one (id INTEGER)").unwrap();
    }
}

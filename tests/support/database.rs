//! A hand in the agent's database, while it runs or while it does not.

use std::time::{Duration, Instant};

use diesel::{
    Connection as _, QueryableByName, RunQueryDsl as _, SqliteConnection, connection::SimpleConnection as _, sql_query,
    sql_types::BigInt,
};

use super::Agent;

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

impl Agent {
    /// A connection of another program to the agent's database.
    pub fn connect(&self) -> SqliteConnection {
        let path = self.database().to_str().expect("text");
        let mut connection = SqliteConnection::establish(path).expect("the database opens");
        connection.batch_execute("PRAGMA busy_timeout = 30000").expect("a pragma");
        connection
    }

    /// Executes statements.
    pub fn execute(&self, sql: &str) {
        self.connect().batch_execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// What a query of one number `n` finds.
    pub fn count_rows(&self, sql: &str) -> i64 {
        sql_query(sql).get_result::<Count>(&mut self.connect()).unwrap_or_else(|error| panic!("{sql}: {error}")).n
    }

    /// Waits until an operation runs.
    pub async fn until_claimed(&self) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while self.count_rows("SELECT count(*) AS n FROM idempotency_claim") == 0 {
            assert!(Instant::now() < deadline, "nothing runs");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

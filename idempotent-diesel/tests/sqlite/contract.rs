//! The promises that every store makes.

use std::time::Duration;

use diesel::SqliteConnection;
use futures_util::future::BoxFuture;
use idempotent_core::{store::Effect, testing::contract::Harness};
use idempotent_diesel::SqliteStore;

use crate::support::{Fixture, logged, logs};

impl Harness for Fixture {
    type Store = SqliteStore;

    fn store(&self) -> &SqliteStore {
        &self.store
    }

    fn advance(&self, by: Duration) -> BoxFuture<'_, ()> {
        self.clock.advance(by);
        Box::pin(async {})
    }

    fn effect(&self, name: &str) -> Effect<SqliteConnection> {
        logs(name)
    }

    fn committed<'a>(&'a self, name: &'a str) -> BoxFuture<'a, u64> {
        Box::pin(async move { logged(&self.store, name).await as u64 })
    }
}

idempotent_core::store_contract!(Fixture::new);

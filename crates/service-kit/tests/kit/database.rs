//! A database for each test.

use std::sync::atomic::{AtomicU32, Ordering};

use diesel::{RunQueryDsl, sql_query};
use service_kit::database::{AnyConnection, Url};
use tempfile::TempDir;

/// The kind of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    Sqlite,
    Postgres,
}

/// An empty database for one test.
pub struct TestDatabase {
    pub url: Url,
    pub url_text: String,
    _folder: Option<TempDir>,
}

impl TestDatabase {
    pub fn new(backend: Backend) -> Self {
        match backend {
            Backend::Sqlite => Self::sqlite(),
            Backend::Postgres => Self::postgres(),
        }
    }

    pub fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url_text = format!("sqlite://{}/test.sqlite3", folder.path().display());
        Self { url: url_text.parse().unwrap(), url_text, _folder: Some(folder) }
    }

    /// A new schema in the PostgreSQL of `scripts/test`.
    pub fn postgres() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let base = std::env::var("TEST_POSTGRES_URL").expect(
            "TEST_POSTGRES_URL is not set: run the tests by scripts/test, or by `scripts/postgres run cargo test`",
        );
        let name = format!("k{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let mut conn = base.parse::<Url>().unwrap().connect().unwrap();
        sql_query(format!("CREATE SCHEMA {name}")).execute(&mut conn).unwrap();
        let url_text = format!("{base}&options=-csearch_path%3D{name}");
        Self { url: url_text.parse().unwrap(), url_text, _folder: None }
    }

    /// A new connection to the database.
    pub fn connect(&self) -> AnyConnection {
        self.url.connect().unwrap()
    }
}

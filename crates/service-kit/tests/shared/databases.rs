//! A database for each test, with the newest schema. The migrations run once in each test program: on SQLite the file is
//! copied, on PostgreSQL the database is a template. The harnesses of both services include this file, by its path, as a
//! module of theirs, and give it `MIGRATIONS`.

use std::{
    env, fs,
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    },
};

use diesel::{RunQueryDsl, sql_query};
use service_kit::database::{Url, migrate};

use super::MIGRATIONS;

/// The kind of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    Sqlite,
    Postgres,
}

/// The file of a SQLite database.
static SQLITE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("template.sqlite3");
    migrate::run(&format!("sqlite://{}", file.display()).parse().unwrap(), &MIGRATIONS).unwrap();
    fs::read(file).unwrap()
});

/// The name of a PostgreSQL database.
static POSTGRES: LazyLock<String> = LazyLock::new(|| {
    let name = create_database("template1");
    migrate::run(&address(&name).parse().unwrap(), &MIGRATIONS).unwrap();
    name
});

/// A database of a test. Dropping it deletes a PostgreSQL database; a SQLite file is deleted with its folder.
pub struct TestDatabase {
    pub url: String,
    name: Option<String>,
}

impl TestDatabase {
    pub fn new(backend: Backend, folder: &Path) -> Self {
        match backend {
            Backend::Sqlite => {
                let path = folder.join("club.sqlite3");
                // With the permissions that the service gives a new file.
                let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).unwrap();
                file.write_all(&SQLITE).unwrap();
                Self { url: format!("sqlite://{}", path.display()), name: None }
            }
            // A database and not a schema: advisory locks are those of a database, and tests have objects with the same
            // ids.
            Backend::Postgres => {
                let name = create_database(&POSTGRES);
                Self { url: address(&name), name: Some(name) }
            }
        }
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        if let Some(name) = &self.name
            && let Ok(mut conn) = server().parse::<Url>().unwrap().connect()
        {
            // A test that fails must not panic a second time.
            sql_query(format!("DROP DATABASE {name} WITH (FORCE)")).execute(&mut conn).ok();
        }
    }
}

fn create_database(template: &str) -> String {
    let name = next_name();
    execute(&format!("CREATE DATABASE {name} TEMPLATE {template}"));
    name
}

/// Creates an empty schema in the database of the PostgreSQL server that `scripts/test` started, and returns the address.
pub fn postgres_schema() -> String {
    let name = next_name();
    execute(&format!("CREATE SCHEMA {name}"));
    format!("{}&options=-csearch_path%3D{name}", server())
}

fn next_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("t{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

fn server() -> String {
    env::var("TEST_POSTGRES_URL")
        .expect("TEST_POSTGRES_URL is not set: run the tests by scripts/test, or by `scripts/postgres run cargo test`")
}

/// The address of a database of the server.
fn address(name: &str) -> String {
    server().replacen("/postgres?", &format!("/{name}?"), 1)
}

fn execute(statement: &str) {
    let mut conn = server().parse::<Url>().unwrap().connect().unwrap();
    sql_query(statement).execute(&mut conn).unwrap();
}

//! `scripts/seed` fills a database with a club that the service serves.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod booking;
mod portfolio;

use std::{
    fmt::Debug,
    io,
    process::{Command, Stdio},
    sync::{
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    thread::JoinHandle,
};

use actix_web::rt::System;
use diesel::{QueryableByName, RunQueryDsl, sql_query, sql_types::BigInt};
use serde_json::Value;
use service_kit::{
    database::{AnyConnection, Url},
    server::{Running, Stop},
};
use tempfile::TempDir;

/// Which database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Backend {
    Sqlite,
    Postgres,
}

/// A database that holds a small club of 20 November 2026.
struct Seeded {
    service: &'static str,
    url: String,
    /// What the program printed.
    output: String,
    _folder: TempDir,
}

impl Seeded {
    fn new(service: &'static str, backend: Backend) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = match backend {
            Backend::Sqlite => format!("sqlite://{}/club.sqlite3", folder.path().display()),
            Backend::Postgres => postgres_schema(),
        };
        let (output, error, status) = seed(service, &url);
        // On a slow machine, the error output has the progress.
        assert_eq!(status, Some(0), "{error}");
        Self { service, url, output, _folder: folder }
    }

    fn connect(&self) -> AnyConnection {
        self.url.parse::<Url>().unwrap().connect().unwrap()
    }

    /// Asserts that a second run is refused and changes nothing.
    fn refuses_another_run(&self, table: &str) {
        let count = format!("SELECT count(*) AS n FROM {table}");
        let before = number(&mut self.connect(), &count);
        let (output, error, status) = seed(self.service, &self.url);
        assert_eq!((output.as_str(), error.lines().count(), status), ("", 1, Some(1)), "{error}");
        assert!(error.contains("is in use"), "{error}");
        assert_eq!(number(&mut self.connect(), &count), before);
    }
}

/// Standard output, standard error and exit status of the program.
fn seed(service: &str, url: &str) -> (String, String, Option<i32>) {
    let mut program = Command::new(env!("CARGO_BIN_EXE_seed"));
    program.env_clear().args([service, "--size", "small", "--day", "2026-11-20", "--database-url", url]);
    let output = program.stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code())
}

/// A schema of its own in the PostgreSQL that `scripts/test` started.
fn postgres_schema() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let base = std::env::var("TEST_POSTGRES_URL")
        .expect("TEST_POSTGRES_URL is not set: run the tests by scripts/test, or by `scripts/postgres run cargo test`");
    let name = format!("t{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let mut conn = base.parse::<Url>().unwrap().connect().unwrap();
    sql_query(format!("CREATE SCHEMA {name}")).execute(&mut conn).unwrap();
    format!("{base}&options=-csearch_path%3D{name}")
}

fn lines<T: Debug>(rows: Result<Vec<T>, diesel::result::Error>) -> Vec<String> {
    rows.unwrap().into_iter().map(|row| format!("{row:?}")).collect()
}

/// The number that a query answers as `n`.
fn number(conn: &mut AnyConnection, query: &str) -> i64 {
    #[derive(QueryableByName)]
    struct Number {
        #[diesel(sql_type = BigInt)]
        n: i64,
    }
    sql_query(query).get_result::<Number>(conn).unwrap().n
}

/// A service in this process, until it is dropped.
struct Service {
    address: String,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    fn start<F: Future<Output = io::Result<Running>>>(start: impl FnOnce() -> F + Send + 'static) -> Self {
        let (ready, started) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            System::new().block_on(async move {
                let running = start().await.unwrap();
                ready.send((format!("http://{}", running.address), running.stop())).unwrap();
                running.serve().await.unwrap();
            });
        });
        let (address, stop) = started.recv().expect("the service starts");
        Self { address, stop, thread: Some(thread) }
    }

    fn get(&self, path: &str, token: &str) -> Value {
        let request = ureq::get(format!("{}{path}", self.address));
        let request =
            if token.is_empty() { request } else { request.header("authorization", format!("Bearer {token}")) };
        request.call().unwrap().body_mut().read_json().unwrap()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let stop = self.stop.clone();
        std::thread::spawn(move || System::new().block_on(stop.drain())).join().ok();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

//! Ordinary use for half a minute: the real program, with many who read and write at once. Both services include this
//! file in their tests, by its path.
//!
//! These tests take 15 to 30 seconds each: what they look for shows only after a while.

#![expect(clippy::disallowed_types, reason = "the locks are held by threads of a test")]

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use diesel::connection::SimpleConnection as _;
use rstest::rstest;
use serde_json::Value;
use service_kit::database::{AnyConnection, Url};
use tempfile::TempDir;
use ureq::Agent;

use super::{OPTIONS, PROGRAM, READS, STREAM, authorization, change, creation};
use crate::harness::{
    Backend::{self, Postgres, Sqlite},
    postgres_schema,
};

/// How long the service may wait for a database that is busy before a test gives up.
const PATIENCE: Duration = Duration::from_mins(1);

/// Fewer writes than this show nothing.
const FEW: usize = 20;

/// The program on a database with demonstration data.
struct Service {
    _process: Running,
    log: Arc<Mutex<Vec<String>>>,
    origin: String,
    authorization: (&'static str, String),
    url: String,
    agent: Agent,
    folder: TempDir,
}

impl Service {
    fn start(backend: Backend, disk: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = match backend {
            Sqlite => format!("sqlite://{}/club.sqlite3", folder.path().display()),
            Postgres => postgres_schema(),
        };
        let mut command = Command::new(PROGRAM);
        command.env_clear().args(["--demo", "--bind", "127.0.0.1:0", "--database-url", &url]);
        command.args(["--workers", "1", "--rate-limit", "0", "--daily-limit", "0", "--log", "info,access=warn"]);
        command.args(OPTIONS).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        if !disk.is_empty() {
            let full = folder.path().join("full");
            command.env("LD_PRELOAD", faulty_disk(folder.path())).env("DISK_FULL", full).envs(disk.iter().copied());
        }
        let mut process = Running(command.spawn().unwrap());
        let mut lines = BufReader::new(process.0.stderr.take().unwrap()).lines().map_while(Result::ok);
        let log: Arc<Mutex<Vec<String>>> = Arc::default();
        let line = lines
            .by_ref()
            .inspect(|line| log.lock().unwrap().push(line.clone()))
            .find(|line| line.contains("listens on http://"));
        let line = line.unwrap_or_else(|| panic!("does not listen: {:#?}", log.lock().unwrap()));
        let address = line.split("http://").nth(1).and_then(|rest| rest.split([',', '"', ' ']).next()).unwrap();
        let origin = format!("http://{address}");
        let written = log.clone();
        std::thread::spawn(move || lines.for_each(|line| written.lock().unwrap().push(line)));
        let agent = Agent::config_builder().http_status_as_error(false).max_redirects(0).timeout_global(Some(PATIENCE));
        // The service closes a connection that has been idle for 5 seconds.
        let agent: Agent = agent.max_idle_age(Duration::from_secs(2)).build().into();
        // The demonstration is complete.
        until("the service is ready", || {
            agent.get(format!("{origin}/readyz")).call().is_ok_and(|answer| answer.status() == 200)
        });
        let authorization = authorization(&url);
        Self { _process: process, log, origin, authorization, url, agent, folder }
    }

    fn connect(&self) -> AnyConnection {
        self.url.parse::<Url>().unwrap().connect().unwrap()
    }

    fn send(&self, method: &str, path: &str, body: Option<Value>) -> ureq::http::Response<ureq::Body> {
        let (name, value) = &self.authorization;
        let request = ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.origin));
        let request = request.header(*name, value).header("accept", "text/html;q=0.9, application/json");
        let sent = match body {
            Some(body) => {
                let request = request.header("content-type", "application/json");
                self.agent.run(request.body(body.to_string()).unwrap())
            }
            None => self.agent.run(request.body(()).unwrap()),
        };
        sent.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// The status and the whole body of an answer.
    fn ask(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Vec<u8>) {
        let mut answer = self.send(method, path, body);
        let text = answer.body_mut().with_config().limit(256 << 20).read_to_vec();
        (answer.status().as_u16(), text.unwrap_or_else(|error| panic!("{method} {path}: {error}")))
    }

    #[track_caller]
    fn read(&self, path: &str) -> Vec<u8> {
        let (status, body) = self.ask("GET", path, None);
        let text = || String::from_utf8_lossy(&body).into_owned();
        assert!(status == 200, "{path}: {status} {} {:#?}", text(), self.log.lock().map(|log| log.clone()));
        if path.starts_with("/api") {
            serde_json::from_slice::<Value>(&body).unwrap_or_else(|error| panic!("{path}: {error}"));
        }
        body
    }

    /// Reads a streamed list as slowly as a telephone.
    fn read_slowly(&self, path: &str) {
        let mut answer = self.send("GET", path, None);
        assert_eq!(answer.status(), 200, "{path}");
        let (mut reader, mut piece, mut body) = (answer.body_mut().as_reader(), vec![0; 16 << 10], Vec::new());
        loop {
            let size = reader.read(&mut piece).unwrap();
            if size == 0 {
                break;
            }
            body.extend_from_slice(&piece[..size]);
            pause(5);
        }
        serde_json::from_slice::<Value>(&body).unwrap_or_else(|error| panic!("{path}: {error}"));
    }

    /// Creates an object and returns its path and the body with which it was created.
    fn create(&self, number: u64) -> Result<(String, Value), u16> {
        let (path, body) = creation(number);
        let (status, answer) = self.ask("POST", &path, Some(body.clone()));
        if status != 201 {
            return Err(status);
        }
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        let id = ["eventId", "id"].iter().find_map(|name| answer[name].as_str()).unwrap();
        Ok((format!("{path}/{id}"), body))
    }

    /// Everything that was acknowledged is there.
    fn has_all(&self, acknowledged: &[(String, Value)]) {
        assert!(acknowledged.len() > FEW, "only {} writes", acknowledged.len());
        for (path, body) in acknowledged {
            let found: Value = serde_json::from_slice(&self.read(path)).unwrap();
            assert_eq!((&found["name"], &found["description"]), (&body["name"], &body["description"]), "{path}");
        }
    }
}

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Compiles the library that makes a disk slow or full.
fn faulty_disk(folder: &Path) -> std::path::PathBuf {
    let (source, library) = (folder.join("disk.c"), folder.join("disk.so"));
    fs::write(&source, include_str!("disk.c")).unwrap();
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source).status();
    assert!(compiled.unwrap().success());
    library
}

/// Waits until the condition is true.
fn until(what: &str, condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < PATIENCE, "not so in time: {what}");
        pause(50);
    }
}

/// A length for the text of an object: mostly short, sometimes of many pages, so that some writes make the file longer
/// and others do not.
pub fn length(number: u64, most: u64) -> usize {
    let length = if number.is_multiple_of(16) { number * 997 % most } else { number % 40 };
    usize::try_from(length).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "the pace of a client, which waits for nothing")]
fn pause(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}

/// A refused write: when it was sent, and its status.
type Refusal = (Instant, u16);

/// What all threads share.
struct Load<'a> {
    service: &'a Service,
    is_over: AtomicBool,
    number: AtomicU64,
    acknowledged: Mutex<Vec<(String, Value)>>,
    refusals: Mutex<Vec<Refusal>>,
}

/// Ends the load, also when a thread panics.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Load<'_> {
    fn again_and_again(&self, mut step: impl FnMut()) {
        let _end = End(&self.is_over);
        while !self.is_over.load(Ordering::Relaxed) {
            step();
        }
    }

    fn write(&self) {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let sent_at = Instant::now();
        match self.service.create(number) {
            Ok(created) => self.acknowledged.lock().unwrap().push(created),
            Err(status) => self.refusals.lock().unwrap().push((sent_at, status)),
        }
        let sent_at = Instant::now();
        let (method, path, body) = change(number);
        let (status, answer) = self.service.ask(method, &path, Some(body));
        if !(200..300).contains(&status) {
            self.refusals.lock().unwrap().push((sent_at, status));
            assert!(status == 503, "{method} {path}: {status} {}", String::from_utf8_lossy(&answer));
        }
    }
}

/// Runs readers and writers at once while `during` runs, and returns what was acknowledged and the refused writes. A read
/// that fails ends the test.
fn load(service: &Service, during: impl FnOnce(&Load<'_>)) -> (Vec<(String, Value)>, Vec<Refusal>) {
    let load = Load {
        service,
        is_over: AtomicBool::new(false),
        number: AtomicU64::new(0),
        acknowledged: Mutex::default(),
        refusals: Mutex::default(),
    };
    std::thread::scope(|scope| {
        for first in 0..4 {
            let load = &load;
            let mut paths = READS.iter().cycle().skip(first);
            scope.spawn(move || load.again_and_again(|| drop(service.read(paths.next().unwrap()))));
        }
        scope.spawn(|| load.again_and_again(|| service.read_slowly(STREAM)));
        for _ in 0..2 {
            scope.spawn(|| load.again_and_again(|| load.write()));
        }
        scope.spawn(|| {
            load.again_and_again(|| {
                service.read("/readyz");
                pause(50);
            });
        });
        let _end = End(&load.is_over);
        during(&load);
    });
    (load.acknowledged.into_inner().unwrap(), load.refusals.into_inner().unwrap())
}

/// Waits while the load goes on, on a slow machine until there are some writes.
fn go_on(load: &Load<'_>, time: Duration) {
    let begun = Instant::now();
    let are_few = || load.acknowledged.lock().unwrap().len() <= FEW;
    while (begun.elapsed() < time || are_few()) && !load.is_over.load(Ordering::Relaxed) {
        assert!(begun.elapsed() < time + PATIENCE, "hardly any writes");
        pause(20);
    }
}

/// Small checkpoints, of which some are cut short by a reader.
fn checkpoints(load: &Load<'_>) {
    let mut conn = load.service.connect();
    load.again_and_again(|| {
        conn.batch_execute("PRAGMA wal_checkpoint(PASSIVE)").unwrap();
        pause(5);
    });
}

/// Another program that reads, and takes its time.
fn long_reads(load: &Load<'_>) {
    let mut conn = load.service.connect();
    load.again_and_again(|| {
        conn.batch_execute("BEGIN; SELECT COUNT(*) FROM sqlite_schema").unwrap();
        pause(300);
        conn.batch_execute("COMMIT").unwrap();
    });
}

fn backups(load: &Load<'_>) {
    let mut number = 0;
    load.again_and_again(|| {
        number += 1;
        let file = load.service.folder.path().join(format!("backup-{number}"));
        let mut backup = Command::new(PROGRAM);
        backup.env_clear().args(["--log", "warn", "--database-url", &load.service.url, "backup"]).arg(&file);
        assert!(backup.output().unwrap().status.success());
        fs::remove_file(file).unwrap();
        go_on(load, Duration::from_secs(2));
    });
}

/// Takes half a minute: long enough for many checkpoints, long reads and backups under load.
#[rstest]
fn reading_and_writing_at_once_is_never_refused(#[values(Sqlite, Postgres)] backend: Backend) {
    let service = Service::start(backend, &[]);
    let (acknowledged, refusals) = load(&service, |load| {
        std::thread::scope(|scope| {
            if backend == Sqlite {
                scope.spawn(|| checkpoints(load));
                scope.spawn(|| long_reads(load));
                scope.spawn(|| backups(load));
            }
            go_on(load, Duration::from_secs(30));
            load.is_over.store(true, Ordering::Relaxed);
        });
    });
    assert!(refusals.is_empty(), "{refusals:?}");
    service.has_all(&acknowledged);
}

/// Takes seconds: load before the disk is full, while it is, and after that.
#[test]
fn a_full_disk_refuses_writes_alone_and_only_while_it_is_full() {
    let service = Service::start(Sqlite, &[("DISK_DELAY", "0")]);
    let full = service.folder.path().join("full");
    let (acknowledged, refusals) = load(&service, |load| {
        go_on(load, Duration::from_secs(5));
        assert!(load.refusals.lock().unwrap().is_empty());
        fs::write(&full, "").unwrap();
        until("the disk is full", || !load.refusals.lock().unwrap().is_empty());
        go_on(load, Duration::from_secs(3));
        fs::remove_file(&full).unwrap();
        let free_since = Instant::now();
        go_on(load, Duration::from_secs(5));
        let refusals = load.refusals.lock().unwrap();
        assert!(
            refusals.iter().all(|(sent_at, _)| *sent_at < free_since),
            "a write was refused after the disk was free"
        );
    });
    assert!(!refusals.is_empty() && refusals.iter().all(|(_, status)| *status == 503), "{refusals:?}");
    service.has_all(&acknowledged);
    let log = service.log.lock().unwrap();
    assert!(log.iter().any(|line| line.contains("database or disk is full")), "{log:#?}");
}

/// Takes 20 seconds: load on a disk that takes a millisecond for each page.
#[test]
fn a_slow_disk_refuses_nothing() {
    // A millisecond for each page.
    let service = Service::start(Sqlite, &[("DISK_DELAY", "1000")]);
    let (acknowledged, refusals) = load(&service, |load| go_on(load, Duration::from_secs(20)));
    assert!(refusals.is_empty(), "{refusals:?}");
    service.has_all(&acknowledged);
}

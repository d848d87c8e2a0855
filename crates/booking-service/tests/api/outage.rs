//! A database that goes away and comes back.

use std::{
    io::{Read, Write},
    net::Shutdown,
    os::unix::net::{UnixListener, UnixStream},
    path::PathBuf,
    process::Command,
    sync::{Arc, PoisonError, RwLock, RwLockWriteGuard},
    thread::ScopedJoinHandle,
    time::Instant,
};

use diesel::{RunQueryDsl, connection::SimpleConnection, sql_query};
use rstest::rstest;
use serde_json::{Value, json};
use service_kit::config::CHECKOUT;
use tempfile::TempDir;

use crate::{
    commands::{on, outcome},
    harness::{ALICE, Answer, BOB, Backend, Club, id},
    health,
    process::{LONG, PROGRAM, Process, until},
    static_files::front_end,
};

const SOCKET: &str = ".s.PGSQL.5432";

/// Stands between a service and the database, and does what networks do.
pub struct Proxy {
    folder: TempDir,
    gate: Arc<RwLock<()>>,
    streams: Arc<RwLock<Vec<UnixStream>>>,
}

impl Proxy {
    /// A proxy before the server of an address that names a folder of sockets, and the address through it.
    pub fn before(url: &str) -> (Self, String) {
        let server = url.split("host=").nth(1).unwrap().split('&').next().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let through = url.replace(&format!("host={server}"), &format!("host={}", folder.path().display()));
        let (gate, streams) = (Arc::<RwLock<()>>::default(), Arc::<RwLock<Vec<UnixStream>>>::default());
        let listener = UnixListener::bind(folder.path().join(SOCKET)).unwrap();
        let server = PathBuf::from(server).join(SOCKET);
        let (passing, open) = (gate.clone(), streams.clone());
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let server = UnixStream::connect(&server).unwrap();
                let both = [(&client, &server), (&server, &client)];
                for (from, to) in both.map(|(from, to)| (from.try_clone().unwrap(), to.try_clone().unwrap())) {
                    let passing = passing.clone();
                    std::thread::spawn(move || pass(from, to, &passing));
                }
                open.write().unwrap().extend([client, server]);
            }
        });
        (Self { folder, gate, streams }, through)
    }

    /// Takes new connections and bytes of old ones, and passes nothing on as long as the guard lives.
    fn stall(&self) -> RwLockWriteGuard<'_, ()> {
        self.gate.write().unwrap()
    }

    /// Cuts every connection.
    pub fn cut(&self) {
        for stream in self.streams.write().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Lets nobody connect, or lets them again.
    pub fn refuse(&self, refuse: bool) {
        let (open, away) = (self.folder.path().join(SOCKET), self.folder.path().join("away"));
        if refuse { std::fs::rename(open, away) } else { std::fs::rename(away, open) }.unwrap();
    }
}

fn pass(mut from: UnixStream, mut to: UnixStream, gate: &RwLock<()>) {
    let mut bytes = [0; 8192];
    while let Ok(length @ 1..) = from.read(&mut bytes) {
        let _open = gate.read().unwrap_or_else(PoisonError::into_inner);
        if to.write_all(&bytes[..length]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// Runs a request that is refused in time (contract, "Errors": never a hang). Without the time limits of the database it
/// would take the harness's `--request-timeout`, several times as long as the bound.
#[track_caller]
fn refused(request: impl FnOnce() -> Answer) {
    let begun = Instant::now();
    let answer = request();
    assert!(begun.elapsed() < LONG, "took {:?}", begun.elapsed());
    assert_eq!(answer.header("retry-after"), Some("1"));
    answer.refused(503, "unavailable");
}

/// More requests at once than there are connections: every one is refused in time, and the process is alive.
#[track_caller]
fn unavailable(club: &Club, service: usize) {
    let ask = |path: &str| club.by(ALICE).at(service).get(path);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| refused(|| ask("/api/users/me")));
        }
        scope.spawn(|| assert_eq!(ask("/readyz").expect(503).header("retry-after"), Some("1")));
        scope.spawn(|| ask("/livez").expect(200));
    });
    needs_no_database(club, service);
}

fn needs_no_database(club: &Club, service: usize) {
    club.by(ALICE).at(service).header("accept-encoding", "gzip").get("/openapi.json").expect(200);
    club.by(ALICE).at(service).get("/").expect(200);
    club.by(ALICE).at(service).get("/livez").expect(200);
}

fn recovers(club: &Club, service: usize) {
    until("the service has recovered", || club.by(ALICE).at(service).get("/readyz").status == 200);
    club.by(ALICE).at(service).get("/api/users/me").expect(200);
}

/// Takes seconds: it waits for the time-outs of several outages.
#[test]
fn without_its_database_it_answers_503_in_time_and_recovers_by_itself() {
    let mut club = Club::start(Backend::Postgres);
    let (proxy, through) = Proxy::before(club.config.database.url.as_ref().unwrap().reveal());
    club.config.database.url = Some(through.parse().unwrap());
    let front = front_end();
    club.config.server.static_folder = Some(front.path().to_owned());
    club.config.database.checkout = CHECKOUT;
    let service = club.start_another();
    recovers(&club, service);

    // The server restarts: nobody notices more than a slow answer.
    proxy.cut();
    recovers(&club, service);

    // The server is gone.
    proxy.refuse(true);
    proxy.cut();
    unavailable(&club, service);
    let address = club.origin(service).strip_prefix("http://").unwrap();
    health::is_unhealthy(address, "/readyz: status 503, database unreachable");
    proxy.refuse(false);
    recovers(&club, service);

    // The server, or what is before it, takes everything and answers nothing.
    let stalled = proxy.stall();
    unavailable(&club, service);
    unavailable(&club, service);
    drop(stalled);
    recovers(&club, service);

    // And is then replaced by another one.
    let stalled = proxy.stall();
    unavailable(&club, service);
    proxy.cut();
    drop(stalled);
    recovers(&club, service);
}

/// Requests that wait for the database do not keep up those that need none. The former end when the database answers, so
/// that no speed makes a difference.
#[test]
fn what_needs_no_database_does_not_wait_for_it() {
    let mut club = Club::start(Backend::Postgres);
    let (proxy, through) = Proxy::before(club.url());
    club.config.database.url = Some(through.parse().unwrap());
    let front = front_end();
    club.config.server.static_folder = Some(front.path().to_owned());
    let service = club.start_another();
    recovers(&club, service);
    let stalled = proxy.stall();
    std::thread::scope(|scope| {
        let ask = || club.by(ALICE).at(service).get("/api/users/me").expect(200);
        let waiting: Vec<_> = (0..6).map(|_| scope.spawn(ask)).collect();
        let in_flight = "http_requests_in_flight 7\n";
        until("they wait", || club.anonymous().at(service).get("/metrics").text().contains(in_flight));
        needs_no_database(&club, service);
        assert!(!waiting.iter().any(ScopedJoinHandle::is_finished));
        drop(stalled);
    });
}

#[test]
fn a_request_whose_connection_is_ended_under_it_is_503_and_not_500() {
    let club = Club::start(Backend::Postgres);
    // Other tests have databases with the same numbers of tables.
    let waiting = "pg_locks JOIN pg_database ON pg_database.oid = database \
                   WHERE datname = current_database() AND NOT granted AND relation = 'users'::regclass";
    let (mut lock, mut conn) = (club.connect(), club.connect());
    lock.batch_execute("BEGIN; LOCK TABLE users IN ACCESS EXCLUSIVE MODE").unwrap();
    std::thread::scope(|scope| {
        let answer = scope.spawn(|| club.by(ALICE).get("/api/users/me"));
        until("the request waits", || {
            sql_query(format!("SELECT pg_terminate_backend(pid) FROM {waiting}")).execute(&mut conn).unwrap() == 1
        });
        let answer = answer.join().unwrap();
        assert_eq!(answer.header("retry-after"), Some("1"));
        answer.refused(503, "unavailable");
    });
    lock.batch_execute("COMMIT").unwrap();
    club.by(ALICE).get("/api/users/me").expect(200);
}

fn room() -> Value {
    json!({
        "place": "S516", "admins": [id(BOB)], "timeStart": "2027-01-01T09:00:00Z", "timeEnd": "2027-01-01T10:00:00Z",
    })
}

/// The number of rooms.
fn rooms(club: &Club) -> usize {
    club.by(BOB).get("/api/rooms").expect(200).json().as_array().unwrap().len()
}

#[test]
fn while_another_program_holds_the_sqlite_file_reads_go_on_and_writes_are_503_in_time() {
    let mut club = Club::start(Backend::Sqlite);
    club.stop_all();
    club.config.database.checkout = CHECKOUT;
    club.start_another();
    let mut holder = club.connect();
    holder.batch_execute("BEGIN IMMEDIATE").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| refused(|| club.by(BOB).post("/api/rooms", room())));
        }
        // One that waited would be refused as well.
        for path in ["/api/rooms", "/readyz"] {
            club.by(BOB).get(path).expect(200);
        }
    });
    holder.batch_execute("COMMIT").unwrap();
    club.by(BOB).post("/api/rooms", room()).expect(201);
    assert_eq!(rooms(&club), 1);
}

/// Runs a script of the shell with the database file as `$F`. Not in this process: closing a file releases its locks.
fn shell(club: &Club, script: &str) {
    let file = club.url().strip_prefix("sqlite://").unwrap();
    let done = Command::new("sh").args(["-ec", script]).env("F", file).status();
    assert!(done.unwrap().success(), "{script}");
}

fn refuses_all(club: &Club, service: usize) {
    let client = || club.by(BOB).at(service);
    client().post("/api/rooms", room()).refused(503, "unavailable");
    client().get("/api/rooms").refused(503, "unavailable");
    client().get("/readyz").expect(503);
}

#[rstest]
#[case::deleted("rm $F", "sqlite3 was deleted")]
#[case::moved("mv $F $F.old", "sqlite3 was deleted")]
#[case::moved_with_its_log("for end in '' -wal -shm; do mv $F$end $F.old$end; done", "sqlite3 was deleted")]
#[case::replaced("cp $F $F.new; mv $F.new $F", "sqlite3 was deleted")]
#[case::replaced_by_a_backup("mv $F.backup $F", "sqlite3 was deleted")]
#[case::log_deleted("rm $F-wal", "sqlite3-wal was deleted")]
#[case::log_replaced("cp $F-wal $F.new; mv $F.new $F-wal", "sqlite3-wal was deleted")]
#[case::index_deleted("rm $F-shm", "sqlite3-shm was deleted")]
fn a_sqlite_file_that_is_not_the_opened_one_is_noticed(#[case] script: &str, #[case] cause: &str) {
    let club = Club::start(Backend::Sqlite);
    let file = club.url().strip_prefix("sqlite://").unwrap().to_owned();
    let (_, error, status) = on(&club, &["backup", &format!("{file}.backup")]);
    assert_eq!(status, Some(0), "{error}");
    let mut process = Process::beside(&club, &[]);
    club.by(BOB).post("/api/rooms", room()).expect(201);
    assert_eq!(process.get("/readyz").0, 200);
    shell(&club, script);
    refuses_all(&club, 0);
    until("the other replica notices", || process.get("/readyz").0 == 503);
    assert_eq!(process.get("/readyz").0, 503);
    // One record says what happened and what to do.
    process.signal("TERM");
    process.wait();
    let records: Vec<_> = process.log().iter().filter(|line| line.contains("cannot be reached")).collect();
    assert!(records.len() == 1 && records[0].contains(cause), "{records:?}");
    assert!(records[0].contains("start"), "{records:?}");
}

#[test]
fn a_sqlite_file_that_comes_back_is_used_again() {
    let mut club = Club::start(Backend::Sqlite);
    club.by(BOB).post("/api/rooms", room()).expect(201);
    shell(&club, "mv $F $F.old");
    refuses_all(&club, 0);
    shell(&club, "mv $F.old $F");
    club.by(BOB).post("/api/rooms", room()).expect(201);
    assert_eq!(rooms(&club), 2);

    // Other programs may write and complete the file.
    club.connect().batch_execute("UPDATE rooms SET place = 'S517'; PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    club.by(BOB).post("/api/rooms", room()).expect(201);
    assert_eq!(rooms(&club), 3);
    let checkpoint = "UPDATE rooms SET place = 'S518'; PRAGMA wal_checkpoint(TRUNCATE)";
    club.connect().batch_execute(checkpoint).unwrap();
    club.anonymous().get("/readyz").expect(200);

    // A restart completes the file from the log that was deleted.
    club.by(BOB).post("/api/rooms", room()).expect(201);
    shell(&club, "rm $F-wal");
    refuses_all(&club, 0);
    club.stop_all();
    let service = club.start_another();
    recovers(&club, service);
    assert_eq!(club.by(BOB).at(service).get("/api/rooms").json().as_array().unwrap().len(), 4);
}

#[test]
fn a_server_that_takes_no_writes_is_named_at_the_start() {
    let club = Club::start(Backend::Postgres);
    let url = format!("{}&options=-cdefault_transaction_read_only%3Don", club.url());
    let (_, error, status) = outcome(Command::new(PROGRAM).args(["--database-url", &url, "migrate"]));
    assert!(status == Some(1) && error.contains("default_transaction_read_only is on"), "{error}");
    let migrate = format!("{PROGRAM} --database-url \"$TEST_POSTGRES_URL\" migrate");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/postgres");
    let mut standby = Command::new(script);
    let (_, error, status) = outcome(standby.args(["run", "sh", "-c", &migrate]).env("POSTGRES_STANDBY", "yes"));
    assert!(status == Some(1) && error.contains("is a standby"), "{error}");
}

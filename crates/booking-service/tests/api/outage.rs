//! A database that goes away and comes back.

use std::{
    io::{Read, Write},
    net::Shutdown,
    os::unix::net::{UnixListener, UnixStream},
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock, RwLockWriteGuard},
    time::{Duration, Instant},
};

use diesel::{RunQueryDsl, connection::SimpleConnection, sql_query};
use serde_json::json;
use tempfile::TempDir;

use crate::{
    harness::{ALICE, Answer, BOB, Backend, Club, id},
    health,
    process::until,
    static_files::front_end,
};

/// How long a caller may wait at most (contract, "Errors": never a hang).
const PATIENCE: Duration = Duration::from_secs(3);

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

/// More requests at once than there are connections: every one is refused in time, and the process is alive.
#[track_caller]
fn unavailable(club: &Club, service: usize) {
    let ask = |path: &str| {
        let begun = Instant::now();
        let answer = club.by(ALICE).at(service).get(path);
        assert!(begun.elapsed() < PATIENCE, "{path} took {:?}", begun.elapsed());
        answer
    };
    let refused = |answer: Answer| {
        assert_eq!(answer.header("retry-after"), Some("1"));
        answer.refused(503, "unavailable");
    };
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| refused(ask("/api/users/me")));
        }
        scope.spawn(|| assert_eq!(ask("/readyz").expect(503).header("retry-after"), Some("1")));
        scope.spawn(|| ask("/livez").expect(200));
    });
    // Nothing that needs no database waits for it.
    let begun = Instant::now();
    club.by(ALICE).at(service).header("accept-encoding", "gzip").get("/openapi.json").expect(200);
    club.by(ALICE).at(service).get("/").expect(200);
    assert!(begun.elapsed() < Duration::from_secs(1), "took {:?}", begun.elapsed());
}

fn recovers(club: &Club, service: usize) {
    until("the service has recovered", || club.by(ALICE).at(service).get("/readyz").status == 200);
    club.by(ALICE).at(service).get("/api/users/me").expect(200);
}

#[test]
fn without_its_database_it_answers_503_in_time_and_recovers_by_itself() {
    let mut club = Club::start(Backend::Postgres);
    let (proxy, through) = Proxy::before(club.config.database.url.as_ref().unwrap().reveal());
    club.config.database.url = Some(through.parse().unwrap());
    let front = front_end();
    club.config.server.static_folder = Some(front.path().to_owned());
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

#[test]
fn a_request_whose_connection_is_ended_under_it_is_503_and_not_500() {
    let club = Club::start(Backend::Postgres);
    let waiting = "pg_locks WHERE NOT granted AND relation = 'users'::regclass";
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

#[test]
fn while_another_program_holds_the_sqlite_file_reads_go_on_and_writes_are_503_in_time() {
    let club = Club::start(Backend::Sqlite);
    let room = || {
        json!({
            "place": "S516", "admins": [id(BOB)], "timeStart": "2027-01-01T09:00:00Z", "timeEnd": "2027-01-01T10:00:00Z",
        })
    };
    let mut holder = club.connect();
    holder.batch_execute("BEGIN IMMEDIATE").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let begun = Instant::now();
                let answer = club.by(BOB).post("/api/rooms", room());
                assert!(begun.elapsed() < PATIENCE, "took {:?}", begun.elapsed());
                assert_eq!(answer.header("retry-after"), Some("1"));
                answer.refused(503, "unavailable");
            });
        }
        for path in ["/api/rooms", "/readyz"] {
            let begun = Instant::now();
            club.by(BOB).get(path).expect(200);
            assert!(begun.elapsed() < Duration::from_secs(1), "{path} took {:?}", begun.elapsed());
        }
    });
    holder.batch_execute("COMMIT").unwrap();
    club.by(BOB).post("/api/rooms", room()).expect(201);
    assert_eq!(club.by(BOB).get("/api/rooms").json().as_array().unwrap().len(), 1);
}

//! Start, drain and shutdown of the real program.

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;
use std::{
    net::{TcpListener, TcpStream},
    time::{Duration, Instant},
};

use diesel::{QueryableByName, connection::SimpleConnection, prelude::*, sql_query, sql_types::BigInt};
use serde_json::json;
use service_kit::database::{AnyConnection, Url};

use crate::{
    harness::{BOB, Club, id, postgres_schema},
    process::{Process, Wire, program, until},
};

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    count: i64,
}

fn count(conn: &mut AnyConnection, from: &str) -> i64 {
    sql_query(format!("SELECT count(*) AS count FROM {from}")).get_result::<Count>(conn).unwrap().count
}

fn replicas_start_together_on(url: &str) {
    let mut replicas: Vec<_> = (0..4).map(|_| Process::spawn(&["--database-url", url])).collect();
    for replica in &mut replicas {
        replica.until_it_listens();
        assert_eq!(replica.get("/readyz").0, 200);
    }
    let applied: Vec<_> = replicas.iter().flat_map(Process::log).filter(|line| line.contains("applied")).collect();
    let mut conn = url.parse::<Url>().unwrap().connect().unwrap();
    // One replica applied all of them.
    let [line] = &applied[..] else { panic!("{applied:?}") };
    let all = count(&mut conn, "__diesel_schema_migrations");
    assert!(line.contains(&format!("applied {all} migrations")), "{line}");
}

#[test]
fn replicas_start_together_on_an_empty_sqlite() {
    for _ in 0..3 {
        let folder = tempfile::tempdir().unwrap();
        replicas_start_together_on(&format!("sqlite://{}/new/club.sqlite3", folder.path().display()));
    }
}

#[test]
fn replicas_start_together_on_an_empty_postgres() {
    replicas_start_together_on(&postgres_schema());
}

#[rstest]
fn a_newer_database_is_refused_and_left_alone(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let url = club.config.database.url.as_ref().unwrap().reveal();
    let mut conn = club.connect();
    conn.batch_execute("INSERT INTO __diesel_schema_migrations (version) VALUES ('29990101000000')").unwrap();
    for command in ["serve", "migrate"] {
        let arguments = ["--database-url", url, "--bind", "127.0.0.1:0", "--log", "error", command];
        let output = program(&arguments).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains("29990101000000") && said.contains("newer program"), "{said}");
        assert!(!said.contains("search_path"), "{said}");
    }
    assert_eq!(count(&mut conn, "users"), 5);
}

#[rstest]
fn migrate_may_be_repeated(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let url = club.config.database.url.as_ref().unwrap().reveal();
    let output = program(&["--database-url", url, "migrate"]).output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
}

#[rstest]
fn idle_connections_do_not_delay_shutdown(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for signal in ["TERM", "INT"] {
        let mut process = Process::beside(&club, &[]);
        let idle = [process.connect(), process.connect()];
        let mut kept = process.connect();
        kept.write("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
        process.until_it_logs("route=/livez");
        process.signal(signal);
        assert_eq!(process.wait().code(), Some(0), "{signal}: {:#?}", process.log());
        assert!(TcpStream::connect(&process.address).is_err());
        drop((idle, kept));
    }
}

/// A request that runs until the test sends the second half of its body.
struct RunningRequest {
    process: Process,
    wire: Wire,
    rest: String,
}

impl RunningRequest {
    fn start(club: &Club, arguments: &[&str]) -> Self {
        let process = Process::beside(club, arguments);
        let body = json!({
            "place": "S516", "admins": [id(BOB)], "timeStart": "2027-01-01T09:00:00Z", "timeEnd": "2027-01-01T10:00:00Z",
        });
        let body = body.to_string();
        let (half, rest) = body.split_at(body.len() / 2);
        let mut wire = process.connect();
        wire.write(&format!(
            "POST /api/rooms HTTP/1.1\r\nHost: localhost\r\nCookie: session=session-of-{BOB}\r\nExpect: 100-continue\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        ));
        // The service has asked for the body, so the request is running.
        assert_eq!(wire.read(25), "HTTP/1.1 100 Continue\r\n\r\n");
        wire.write(half);
        Self { process, wire, rest: rest.to_owned() }
    }

    fn finish(&mut self) {
        self.wire.write(&self.rest);
        let (status, answer) = self.wire.read_to_end();
        assert_eq!(status, 201, "{answer}");
        assert!(answer.contains("\"place\":\"S516\""), "{answer}");
    }
}

#[rstest]
fn a_running_request_is_finished_before_shutdown(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for signal in ["TERM", "INT"] {
        let mut request = RunningRequest::start(&club, &[]);
        request.process.signal(signal);
        request.process.until_it_logs("draining");
        until("the port is closed", || TcpStream::connect(&request.process.address).is_err());
        request.finish();
        assert_eq!(request.process.wait().code(), Some(0));
    }
    assert_eq!(count(&mut club.connect(), "rooms"), 2);
}

#[rstest]
fn during_the_drain_delay_it_serves_but_is_not_ready(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut request = RunningRequest::start(&club, &["--drain-delay", "1"]);
    assert_eq!(request.process.get("/readyz").0, 200);
    request.process.signal("TERM");
    request.process.until_it_logs("draining");
    let (status, answer) = request.process.get("/readyz");
    assert_eq!(status, 503, "{answer}");
    assert_eq!(request.process.get("/livez").0, 200);
    request.finish();
    assert_eq!(request.process.wait().code(), Some(0));
}

#[rstest]
fn shutdown_ends_at_its_time_out_or_a_second_signal(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut request = RunningRequest::start(&club, &["--shutdown-timeout", "0"]);
    request.process.signal("TERM");
    assert_eq!(request.process.wait().code(), Some(0));
    let log = request.process.log();
    assert!(log.iter().any(|line| line.contains("route=/api/rooms status=499")), "{log:#?}");

    let mut request = RunningRequest::start(&club, &[]);
    request.process.signal("INT");
    request.process.until_it_logs("draining");
    request.process.signal("INT");
    assert_eq!(request.process.wait().code(), Some(1));
    let log = request.process.log();
    assert!(log.iter().any(|line| line.contains("second signal")), "{log:#?}");
}

#[test]
fn a_directory_that_never_answers_delays_neither_start_nor_shutdown() {
    let club = Club::start(Backend::Sqlite);
    // A listener that accepts connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/api/v3", silent.local_addr().unwrap());
    let ends_at_once = || {
        let mut process = Process::beside(&club, &["--traq-url", &url, "--traq-token", "x"]);
        assert_eq!(process.get("/readyz").0, 200);
        process.signal("TERM");
        let begun = Instant::now();
        assert_eq!(process.wait().code(), Some(0));
        // Half of the time that a request to the directory may take.
        begun.elapsed() < Duration::from_secs(5)
    };
    // The machine may be busy for a while.
    assert!((0..5).any(|_| ends_at_once()), "the end waits for the directory");
}

#[test]
fn a_failed_start_is_explained_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let database = format!("sqlite://{}/club.sqlite3", folder.path().display());
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let file = folder.path().join("file");
    std::fs::write(&file, "no database").unwrap();
    let unusable = format!("sqlite://{}", file.display());
    let impossible = format!("sqlite://{}/below/club.sqlite3", file.display());
    let secret = "postgres://club:hunter2@127.0.0.1:1/club";
    let cases = [
        (["--database-url", &database, "--bind", &address], "in use"),
        (["--database-url", &unusable, "--bind", "127.0.0.1:0"], "not a database"),
        (["--database-url", &impossible, "--bind", "127.0.0.1:0"], "folder"),
        (["--database-url", secret, "--bind", "127.0.0.1:0"], "refused"),
    ];
    for (arguments, reason) in cases {
        let output = program(&arguments).env("LOG", "off").output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains(reason) && !said.contains("hunter2"), "{said}");
    }
}

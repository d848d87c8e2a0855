//! The log of the real program: one line a request, and no secret in it whatever its level.

use crate::harness::Backend::{self, Postgres, Sqlite};
use booking_service::{
    auth::{self, ApiToken},
    schema::api_tokens,
};
use diesel::{connection::SimpleConnection, prelude::*};
use rstest::rstest;
use serde_json::Value;
use service_kit::database::types::{DbTimestamp, DbUuid};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    time::Instant,
};

use crate::{
    harness::{BOB, Club, id},
    outage::Proxy,
    process::{LONG, Process, Wire, program, until},
};

const SECRET: &str = "unmistakable";

/// A header that only a trusted proxy may send.
const FORWARDED: &str = "X-Forwarded-For: 192.0.2.1";

/// A token of Bob's.
fn token(club: &Club) -> String {
    let token = ApiToken::generate(auth::TOKEN_PREFIX).unwrap();
    diesel::insert_into(api_tokens::table)
        .values((
            api_tokens::id.eq(DbUuid::new()),
            api_tokens::token_hash.eq(token.hash()),
            api_tokens::user_id.eq(id(BOB)),
            api_tokens::name.eq("test"),
            api_tokens::scope.eq(auth::Scope::Read.word()),
            api_tokens::created_at.eq(DbTimestamp(club.clock.now())),
        ))
        .execute(&mut club.connect())
        .unwrap();
    token.reveal().to_owned()
}

/// Makes requests that are full of secrets, and returns the log.
fn log(club: &Club, format: &str) -> Vec<String> {
    let key = format!("{SECRET}-key-of-thirty-two-characters-or-more");
    let mut process = Process::beside(club, &["--log", "trace", "--log-format", format, "--secret-key", &key]);
    let token = token(club);
    let requests = [
        format!(
            "GET /api/users/me?q={SECRET} HTTP/1.1\r\nCookie: session=session-of-{BOB}; other={SECRET}\r\n{FORWARDED}"
        ),
        format!(
            "GET /api/users?{SECRET}=1 HTTP/1.1\r\nAuthorization: Bearer {token}\r\nX-Request-Id: with-token\r\n{FORWARDED}"
        ),
        format!("GET /api/users/me HTTP/1.1\r\nAuthorization: Bearer {SECRET}"),
        format!("GET /api/users/me HTTP/1.1\r\nAuthorization: Basic {SECRET}"),
        format!("GET /api/users/me HTTP/1.1\r\nCookie: session={SECRET}"),
        format!("GET /api/callback?code={SECRET}&state={SECRET} HTTP/1.1\r\nCookie: session={SECRET}"),
        format!("GET /api/ical/v1/{}{SECRET} HTTP/1.1\r\nReferer: https://club.example/?{SECRET}", id(BOB)),
        format!("GET /{SECRET} HTTP/1.1\r\nX-Request-Id: {SECRET} with a space"),
        format!("POST /api/users HTTP/1.1\r\nContent-Length: {}\r\n\r\n{SECRET}", SECRET.len()),
        format!("GET /board?kiosk={token}&{SECRET}=1 HTTP/1.1"),
        format!("GET /board?kiosk={SECRET} HTTP/1.1"),
    ];
    for request in requests {
        let (head, body) = request.split_once("\r\n\r\n").unwrap_or((&request, ""));
        let mut wire = process.connect();
        wire.write(&format!("{head}\r\nHost: localhost\r\nConnection: close\r\n\r\n{body}"));
        wire.read_to_end();
    }
    process.signal("TERM");
    assert!(process.wait().success());
    let all = process.log().join("\n");
    let secrets = [SECRET, &token, &token[token.len() - 20..], &format!("session-of-{BOB}")];
    for line in all.lines() {
        assert!(secrets.iter().all(|secret| !line.contains(secret)), "{line}");
    }
    process.log().to_vec()
}

#[rstest]
fn as_json_it_has_one_object_a_line_and_one_line_a_request(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let lines: Vec<Value> = log(&club, "json").iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let access: Vec<_> = lines.iter().filter(|line| line["target"] == "access").collect();
    assert_eq!(access.len(), 11);
    for line in &access {
        assert!(line["duration_us"].as_u64().is_some() && line["bytes"].as_u64().is_some(), "{line}");
        assert!(line["time"].as_str().unwrap().ends_with('Z') && line["level"] == "INFO", "{line}");
        assert!(!line["request_id"].as_str().unwrap().is_empty(), "{line}");
    }
    let (first, second) = (&access[0], &access[1]);
    assert_eq!((&first["method"], &first["route"]), (&"GET".into(), &"/api/users/me".into()));
    assert_eq!((&first["status"], &first["caller"]), (&200.into(), &id(BOB).to_string().into()));
    assert_eq!((&second["request_id"], &second["caller"]), (&"with-token".into(), &id(BOB).to_string().into()));
    assert_eq!((&access[2]["status"], &access[2]["caller"]), (&401.into(), &"-".into()));
    assert_eq!((&access[2]["code"], &access[2]["cause"]), (&"bad-credentials".into(), &Value::Null));
    assert_eq!(access[0]["code"], Value::Null);
    let untrusted = |line: &&Value| line["message"].as_str().unwrap().contains("X-Forwarded-For from 127.0.0.1");
    assert_eq!(lines.iter().filter(untrusted).count(), 1, "{lines:?}");
    assert_eq!((&access[7]["route"], &access[9]["route"]), (&"-".into(), &"/board".into()));
    assert!(access[0]["bytes"].as_u64().unwrap() > 50);
}

#[rstest]
fn as_text_it_has_the_same(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let lines = log(&club, "plain");
    let access: Vec<_> = lines.iter().filter(|line| line.contains(" access request ")).collect();
    assert_eq!(access.len(), 11);
    let words = ["method=GET", "route=/api/users", "status=200", "request_id=with-token"];
    for word in words.into_iter().chain([format!("caller={}", id(BOB)).as_str()]) {
        assert!(access[1].split(' ').any(|part| part == word), "{word} in {}", access[1]);
    }
    assert!(access[1].contains(" duration_us=") && access[1].contains(" bytes="), "{}", access[1]);
}

/// Sends a request of Bob's.
fn ask(process: &Process, request_id: &str) -> Wire {
    let mut wire = process.connect();
    let cookie = format!("Cookie: session=session-of-{BOB}\r\nX-Request-Id: {request_id}");
    wire.write(&format!("GET /api/tags HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{cookie}\r\n\r\n"));
    wire
}

/// The lines that mention a request.
fn lines_of<'a>(process: &'a Process, request_id: &str) -> Vec<&'a String> {
    let words = [format!("request_id={request_id} "), format!("\"request_id\":\"{request_id}\"")];
    process.log().iter().filter(|line| words.iter().any(|word| line.contains(word))).collect()
}

#[rstest]
fn the_record_of_a_failed_request_has_its_cause(
    #[values(Sqlite, Postgres)] backend: Backend,
    #[values("plain", "json")] format: &str,
) {
    let club = Club::start(backend);
    let mut process = Process::beside(&club, &["--log", "info,access=warn", "--log-format", format]);
    assert_eq!(ask(&process, "first").read_to_end().0, 200);
    club.connect().batch_execute("ALTER TABLE tags RENAME TO \"no\ttags\"").unwrap();
    assert_eq!(ask(&process, "second").read_to_end().0, 500);
    process.signal("TERM");
    assert!(process.wait().success());
    assert_eq!(lines_of(&process, "first").len(), 0);
    let [line] = lines_of(&process, "second")[..] else { panic!("{:#?}", process.log()) };
    let words = match format {
        "plain" => [" ERROR access request ", " status=500", " code=internal-error", " cause=\""],
        _ => ["\"level\":\"ERROR\"", "\"status\":500", "\"code\":\"internal-error\"", "\"cause\":\""],
    };
    for word in words.into_iter().chain([if club.is_postgres() { "does not exist" } else { "no such table" }]) {
        assert!(line.contains(word), "{word} in {line}");
    }
}

#[rstest]
fn an_outage_of_the_database_is_one_record_at_its_start_and_one_at_its_end(#[values("plain", "json")] format: &str) {
    let club = Club::start(Postgres);
    let (proxy, through) = Proxy::before(club.url());
    let options = ["--database-url", &through, "--rate-limit", "0", "--log-format", format];
    let mut process = Process::start(&options);
    let started = process.log().len();
    assert_eq!(process.get("/readyz").0, 200);
    proxy.refuse(true);
    proxy.cut();
    let requests: Vec<_> = (0..20).map(|n| ask(&process, &format!("r{n}"))).collect();
    let statuses: Vec<_> = requests.into_iter().map(|mut request| request.read_to_end().0).collect();
    assert_eq!(statuses, [503; 20]);
    proxy.refuse(false);
    until("the database is back", || process.get("/readyz").0 == 200);
    process.signal("TERM");
    assert!(process.wait().success());

    let is_alarming = |line: &&String| ["WARN", "ERROR"].iter().any(|level| line.contains(level));
    let alarming: Vec<_> = process.log()[started..].iter().filter(is_alarming).collect();
    let [start, end] = alarming[..] else { panic!("{alarming:#?}") };
    assert!(start.contains("the database cannot be reached: "), "{start}");
    // libpq explains that on a line of its own.
    assert!(start.contains("No such file or directory Is the server running locally"), "{start}");
    assert!(end.contains("the database is back after "), "{end}");
    for n in 0..20 {
        let [line] = lines_of(&process, &format!("r{n}"))[..] else { panic!("{:#?}", process.log()) };
        assert!(line.contains("503") && line.contains("cause"), "{line}");
    }
    for line in process.log() {
        let is_record = line.starts_with("{\"") || line.get(23..).is_some_and(|rest| rest.starts_with("Z "));
        assert!(is_record, "{line:?} is no record");
    }
}

/// A metric's value.
fn metric(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).trim().parse().unwrap()
}

/// Nobody reads standard error: the pipe fills, then the queue of records.
#[rstest]
fn a_log_that_nobody_reads_stops_nothing(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let options = [
        "--bind",
        "127.0.0.1:0",
        "--workers",
        "1",
        "--database-connections",
        "2",
        "--log",
        "trace",
        "--rate-limit",
        "0",
    ];
    let mut child = program(&[&options[..], &["--database-url", club.url()]].concat()).spawn().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("listens on http://") {
        line.clear();
        assert_ne!(log.read_line(&mut line).unwrap(), 0, "it ended");
    }
    let address = line.split("http://").nth(1).unwrap().split(',').next().unwrap().to_owned();
    let connect = || {
        let stream = TcpStream::connect(&address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream
    };
    let get = |path: &str| {
        let mut stream = connect();
        let cookie = format!("Cookie: session=session-of-{BOB}");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{cookie}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        answer
    };
    let (begun, id) = (Instant::now(), "i".repeat(128));
    let request = format!("GET /api/version HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: {id}\r\n\r\n");
    while metric(&get("/metrics"), "log_records_dropped_total") == 0 {
        assert!(begun.elapsed() < LONG, "no record is dropped");
        // Sent at once on one connection.
        let mut stream = connect();
        let last = request.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
        let mut reader = stream.try_clone().unwrap();
        let answers = std::thread::spawn(move || {
            let mut answers = String::new();
            reader.read_to_string(&mut answers).unwrap();
            answers.matches("HTTP/1.1 200 ").count()
        });
        stream.write_all((request.repeat(199) + &last).as_bytes()).unwrap();
        assert_eq!(answers.join().unwrap(), 200);
    }
    get("/livez");
    get("/readyz");
    get("/api/users/me");
    let dropped = metric(&get("/metrics"), "log_records_dropped_total");
    get("/api/users/me");
    assert!(metric(&get("/metrics"), "log_records_dropped_total") > dropped);
    // The program ends although its log cannot be written.
    let stop = std::process::Command::new("sh").args(["-c", &format!("kill -TERM {}", child.id())]).status();
    assert!(stop.unwrap().success());
    until("it ends", || child.try_wait().unwrap().is_some());
    assert!(child.wait().unwrap().success());
}

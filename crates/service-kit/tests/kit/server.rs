//! A small test service on the real server, and a client that shows every byte.

use std::{
    collections::HashMap,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread::JoinHandle,
    time::Duration,
};

use actix_web::{
    HttpResponse,
    rt::System,
    web::{self, Bytes, Path},
};
use clap::Parser;
use common::{
    input::{Flag, Id, Text},
    problem::{Legacy, Problem, Violations, code},
    time::Clock,
};
use deserr::Deserr;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use service_kit::{
    config::ServerOptions,
    database::Database,
    error::Failure,
    http::{Body, Query, Reply, body::OptionalBody},
    server::{Stop, listen},
    state::{AnswerOptions, AppState, ServiceInfo},
};
use utoipa::openapi::{Info, OpenApi, Paths};

use crate::database::TestDatabase;

static INFO: ServiceInfo = ServiceInfo {
    name: "test-service",
    legacy: Legacy::Message,
    codes: &[],
    headers: &[("x-test-version", "7")],
    unauthorized_headers: &[("WWW-Authenticate", "Bearer")],
    has_credential: |req| req.headers().contains_key("authorization"),
    routes: |_| {},
    pages,
    texts: ["", ""],
    navigation: &[],
    page_parameters: &[],
    problem_page: |_| None,
    page_paths: &[],
    front_pages: |_| {},
    front_page_paths: &[],
    front_form_paths: &[],
    sitemap: None,
    removals: &[],
    interface: OnceLock::new(),
    document: || OpenApi::new(Info::new("test", "7"), Paths::new()),
};

#[derive(Deserr)]
#[deserr(error = Violations, rename_all = camelCase)]
struct Thing {
    name: Text<1, 8>,
    owner_id: Id,
}

#[derive(Deserr)]
#[deserr(error = Violations)]
struct Search {
    #[deserr(default)]
    deep: Flag,
    #[deserr(default)]
    owner: Option<Id>,
}

fn pages(config: &mut web::ServiceConfig) {
    config
        .route(
            "/things",
            web::post().to(|thing: Body<Thing>| async move {
                Reply::json(&json!({"name": &*thing.0.name, "ownerId": thing.0.owner_id.0})).map_err(Failure::from)
            }),
        )
        .route(
            "/things",
            web::patch().to(|thing: OptionalBody<Thing>| async move {
                Reply::json(&json!({"sent": thing.0.is_some()})).map_err(Failure::from)
            }),
        )
        .route(
            "/things",
            web::get().to(|search: Query<Search>| async move {
                Reply::json(&json!({"deep": search.0.deep.0, "owned": search.0.owner.is_some()})).map_err(Failure::from)
            }),
        )
        .route("/things/{thingID}", web::get().to(|id: Path<Id>| async move { id.0.to_string() }))
        .route(
            "/things/{thingID}/tags/{tagName}",
            web::get().to(|path: Path<(Id, String)>| async move { path.into_inner().1 }),
        )
        .route("/panic", web::get().to(|| async { if true { panic!("on purpose") } else { "" } }))
        .route("/never", web::get().to(|| async { std::future::pending::<HttpResponse>().await }))
        .route(
            "/refused",
            web::get().to(|| async { Err::<HttpResponse, _>(Failure::from(Problem::new(code::NOT_SIGNED_IN))) }),
        )
        .route(
            "/broken",
            web::get().to(|| async {
                Err::<HttpResponse, _>(Failure::from(Problem::internal("SELECT hunter2 FROM secrets")))
            }),
        )
        .route(
            "/away",
            web::get().to(|| async {
                Err::<HttpResponse, _>(Failure::from(Problem::new(code::UNAVAILABLE).because("hunter2")))
            }),
        )
        .route(
            "/parts",
            web::get().to(|| async {
                let parts = stream::iter(0..3);
                HttpResponse::Ok().streaming(parts.map(|_| {
                    PARTS.fetch_add(1, Ordering::Relaxed);
                    Ok::<_, Problem>(Bytes::from_static(b"part"))
                }))
            }),
        )
        .route(
            "/breaks",
            web::get().to(|| async {
                let broken = stream::once(async {
                    // Yields, so that the first part is sent.
                    tokio::task::yield_now().await;
                    Err(Problem::internal("the second part is gone"))
                });
                HttpResponse::Ok().streaming(stream::iter([Ok(Bytes::from_static(b"one"))]).chain(broken))
            }),
        )
        .route("/large", web::get().to(|| async { Reply::json(&"large ".repeat(20_000)).map_err(Failure::from) }));
}

/// The number of parts of answers of `/parts` that were created.
pub static PARTS: AtomicUsize = AtomicUsize::new(0);

#[derive(Parser)]
struct Options {
    #[command(flatten)]
    server: ServerOptions,
}

/// A running service.
pub struct Server {
    pub address: SocketAddr,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
    _database: TestDatabase,
}

impl Server {
    pub fn start() -> Self {
        Self::start_with(&[], |_| {})
    }

    /// Starts one with arguments of the command line, and with values that no argument allows.
    pub fn start_with(arguments: &[&str], change: impl FnOnce(&mut ServerOptions)) -> Self {
        let all = ["test", "--bind", "127.0.0.1:0", "--workers", "1"].iter().chain(arguments);
        let mut options = Options::parse_from(all).server;
        change(&mut options);
        let database = TestDatabase::sqlite();
        let url = database.url.clone();
        let (ready, started) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            System::new().block_on(async move {
                let limits = service_kit::database::Limits {
                    connections: Some(1),
                    checkout: Duration::from_mins(1),
                    work: Duration::from_mins(1),
                };
                let service = AppState::new(
                    &INFO,
                    &options,
                    Database::open(&url, limits),
                    Clock::default(),
                    AnswerOptions::default(),
                );
                let running = listen(service, &options, |_| {}).unwrap();
                ready.send((running.address, running.stop())).unwrap();
                running.serve().await.unwrap();
            });
        });
        let (address, stop) = started.recv().unwrap();
        Self { address, stop, thread: Some(thread), _database: database }
    }

    pub fn connect(&self) -> Connection {
        Connection::to(self.address)
    }

    /// Sends one request on a new connection. `head` is the request line and headers, without Host.
    pub fn send(&self, head: &str, body: &[u8]) -> Answer {
        let mut connection = self.connect();
        connection.write(head, body);
        connection.read(head.starts_with("HEAD"))
    }

    pub fn get(&self, path: &str) -> Answer {
        self.send(&format!("GET {path} HTTP/1.1"), b"")
    }

    /// Sends a JSON body with its length.
    pub fn post(&self, path: &str, body: &[u8]) -> Answer {
        let length = body.len();
        self.send(&format!("POST {path} HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: {length}"), body)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let stop = self.stop.clone();
        std::thread::spawn(move || System::new().block_on(stop.drain())).join().ok();
        let panicked = self.thread.take().is_some_and(|thread| thread.join().is_err());
        assert!(!panicked || std::thread::panicking(), "the service panicked");
    }
}

/// A connection that sends exactly the given bytes.
pub struct Connection(TcpStream);

impl Connection {
    pub fn to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        Self(stream)
    }

    /// Writes a head, to which Host is added, and a body.
    pub fn write(&mut self, head: &str, body: &[u8]) {
        self.0.write_all(format!("{head}\r\nHost: test\r\n\r\n").as_bytes()).unwrap();
        self.0.write_all(body).unwrap();
    }

    /// Writes more of a body.
    pub fn write_more(&mut self, body: &[u8]) {
        self.0.write_all(body).unwrap();
    }

    /// Waits until an answer begins, without reading it.
    pub fn wait(&self) {
        assert_eq!(self.0.peek(&mut [0]).unwrap(), 1);
    }

    /// Reads until the server closes the connection.
    pub fn read_to_end(&mut self) -> String {
        let mut bytes = Vec::new();
        self.0.read_to_end(&mut bytes).unwrap();
        // The body may be compressed.
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Reads one answer.
    pub fn read(&mut self, without_body: bool) -> Answer {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            self.0.read_exact(&mut byte).unwrap();
            head.extend(byte);
        }
        let head = String::from_utf8(head).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = HashMap::<String, String>::new();
        for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
            let all = headers.entry(name.to_lowercase()).or_default();
            all.push_str(if all.is_empty() { "" } else { ", " });
            all.push_str(value);
        }
        let mut answer = Answer { status, headers, body: Vec::new() };
        if without_body || matches!(status, 100..200 | 204 | 304) {
            return answer;
        }
        answer.body = match answer.header("content-length") {
            Some(length) => self.read_bytes(length.parse().unwrap()),
            None => self.read_chunks(),
        };
        answer
    }

    fn read_bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.0.read_exact(&mut bytes).unwrap();
        bytes
    }

    fn read_chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let mut line = String::new();
            while !line.ends_with("\r\n") {
                line.push(char::from(self.read_bytes(1)[0]));
            }
            let length = usize::from_str_radix(line.trim(), 16).unwrap();
            body.extend(self.read_bytes(length));
            self.read_bytes(2);
            if length == 0 {
                return body;
            }
        }
    }
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// By lower-case name; several of one name are joined.
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// Asserts that this is a whole problem of this status and code, with the headers of every answer.
    #[track_caller]
    pub fn refused(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        let problem = self.json();
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(problem["status"], status, "{problem}");
        assert_eq!(problem["instance"].as_str(), self.header("x-request-id"), "{problem}");
        assert_eq!(problem["message"], problem["detail"], "{problem}");
        assert_eq!(self.header("cache-control"), Some("no-store"));
        assert_eq!(self.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(self.header("x-test-version"), Some("7"));
        problem
    }

    /// Asserts a 400 and the places of its violations, sorted.
    #[track_caller]
    pub fn violations(&self, code: &str) -> Vec<(String, String)> {
        let problem = self.refused(400, code);
        let place = |one: &Value| one["pointer"].as_str().or(one["parameter"].as_str()).unwrap().to_owned();
        let violations = problem["violations"].as_array().unwrap();
        let mut found: Vec<_> =
            violations.iter().map(|one| (place(one), one["code"].as_str().unwrap().to_owned())).collect();
        found.sort();
        found
    }
}

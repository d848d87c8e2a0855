//! A real service on a real database for each test, and a client that holds every answer to the OpenAPI document.

use std::{
    collections::HashMap,
    sync::{
        LazyLock, RwLock,
        atomic::{AtomicI64, AtomicU32, Ordering},
        mpsc,
    },
    thread::JoinHandle,
};

use actix_web::rt::System;
use booking_service::{
    config::{Cli, Config},
    schema, server,
};
use clap::Parser;
use common::time::{Clock, Timestamp};
use diesel::{prelude::*, sql_query};
use jsonschema::Validator;
use serde_json::{Value, json};
use service_kit::{
    credentials,
    db::{
        AnyConnection, Url,
        sql::{Moment, Uid},
    },
    directory,
    server::Stop,
};
use tempfile::TempDir;
use ureq::Agent;
use uuid::Uuid;

/// Declares tests that run on both databases: `on_both! { name(club) { … } }`, with options `name(club, "--demo")`.
macro_rules! on_both {
    ($($(#[$attribute:meta])* $name:ident($club:ident $(, $option:literal)*) $body:block)+) => {
        $(mod $name {
            #[allow(unused_imports, reason = "not every test needs all of its file")]
            use super::*;
            $(#[$attribute])*
            fn run($club: $crate::harness::Club) $body
            #[test]
            fn sqlite() { run($crate::harness::Club::start_with($crate::harness::Backend::Sqlite, &[$($option),*])) }
            #[test]
            fn postgres() { run($crate::harness::Club::start_with($crate::harness::Backend::Postgres, &[$($option),*])) }
        })+
    };
}
pub(crate) use on_both;

/// Which database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    Sqlite,
    Postgres,
}

/// The members of every test's club: sign-in names.
pub const ALICE: &str = "alice"; // privileged
pub const BOB: &str = "bob";
pub const CAROL: &str = "carol";
pub const DAVE: &str = "dave";
pub const SUSAN: &str = "susan"; // suspended
const MEMBERS: [(&str, i16, bool); 5] =
    [(ALICE, 1, true), (BOB, 1, false), (CAROL, 1, false), (DAVE, 1, false), (SUSAN, 2, false)];

/// A running service with its database and five members.
pub struct Club {
    services: Vec<Service>,
    /// Of the first service; further ones share it.
    pub clock: Clock,
    pub config: Config,
    hour: AtomicI64,
    url: Url,
    // Before the folder, so that it is closed when the folder goes.
    agent: Agent,
    folder: TempDir,
}

struct Service {
    address: String,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl Club {
    pub fn start(backend: Backend) -> Self {
        Self::start_with(backend, &[])
    }

    /// With more options, as on the command line.
    pub fn start_with(backend: Backend, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = match backend {
            Backend::Sqlite => format!("sqlite://{}/club.sqlite3", folder.path().display()),
            Backend::Postgres => postgres_schema(),
        };
        let mut arguments = vec!["booking-service", "--database-url", &url];
        if !options.contains(&"--bind") {
            arguments.extend(["--bind", "127.0.0.1:0"]);
        }
        arguments.extend(["--workers", "1", "--database-connections", "4", "--time-zone", "Asia/Tokyo"]);
        arguments.extend(options);
        let config = Cli::try_parse_from(arguments).unwrap().config;
        let url: Url = url.parse().unwrap();
        let clock = Clock::default();
        let agent = Agent::config_builder().http_status_as_error(false).max_redirects(0).build().into();
        let hour = AtomicI64::new(clock.now().micros() / HOUR);
        let mut club = Self { services: Vec::new(), clock, config, hour, url, agent, folder };
        club.start_another();
        club.add_members();
        club
    }

    /// Starts one more service on the same database, and returns its index.
    pub fn start_another(&mut self) -> usize {
        let (ready, started) = mpsc::channel();
        let (config, clock) = (self.config.clone(), self.clock.clone());
        let thread = std::thread::spawn(move || {
            System::new().block_on(async move {
                let running = server::start(&config, clock).await.unwrap();
                ready.send((format!("http://{}", running.address), running.stop())).unwrap();
                running.serve().await.unwrap();
            });
        });
        let (address, stop) = started.recv().expect("the service starts");
        self.services.push(Service { address, stop, thread: Some(thread) });
        self.services.len() - 1
    }

    /// A connection of the test's own.
    pub fn connect(&self) -> AnyConnection {
        self.url.connect().unwrap()
    }

    pub fn is_postgres(&self) -> bool {
        self.url.is_postgres()
    }

    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Scheme and authority of a service.
    pub fn origin(&self, service: usize) -> &str {
        &self.services[service].address
    }

    fn add_members(&self) {
        use schema::users;
        let (conn, now) = (&mut self.connect(), Moment(self.clock.now()));
        for (name, state, privileged) in MEMBERS {
            // The demo has members of its own, the four active ones among them.
            if self.config.demo {
                if state == 1 {
                    self.add_session(name, Uid(directory::demo::member_id(name)));
                }
                continue;
            }
            diesel::insert_into(users::table)
                .values((
                    users::id.eq(id(name)),
                    users::name.eq(name),
                    users::display_name.eq(name.to_uppercase()),
                    users::icon.eq(""),
                    users::state.eq(state),
                    users::privileged.eq(privileged),
                    users::created_at.eq(now),
                    users::updated_at.eq(now),
                ))
                .execute(conn)
                .unwrap();
            self.add_session(name, id(name));
        }
    }

    fn add_session(&self, name: &str, user: Uid) {
        use schema::sessions;
        let now = Moment(self.clock.now());
        diesel::insert_into(sessions::table)
            .values((
                sessions::id.eq(Uid::new()),
                sessions::token_hash.eq(credentials::hash(&session(name))),
                sessions::user_id.eq(user),
                sessions::created_at.eq(now),
                sessions::expires_at.eq(Moment(now.plus(chrono::TimeDelta::days(3000)))),
            ))
            .execute(&mut self.connect())
            .unwrap();
    }

    /// A request by a member, with their session cookie.
    pub fn by(&self, member: &str) -> Client<'_> {
        let cookie = format!("session={}", session(member));
        Client { club: self, service: 0, headers: vec![("cookie".to_owned(), cookie)] }
    }

    /// A request without any credential.
    pub fn anonymous(&self) -> Client<'_> {
        Client { club: self, service: 0, headers: Vec::new() }
    }
}

impl Drop for Club {
    fn drop(&mut self) {
        for service in &mut self.services {
            let stop = service.stop.clone();
            std::thread::spawn(move || System::new().block_on(stop.drain())).join().ok();
            if let Some(thread) = service.thread.take()
                && thread.join().is_err()
                && !std::thread::panicking()
            {
                panic!("the service panicked");
            }
        }
    }
}

/// The id of a member, the same in every test.
pub fn id(member: &str) -> Uid {
    Uid(Uuid::new_v5(&Uuid::NAMESPACE_OID, member.as_bytes()))
}

fn session(member: &str) -> String {
    format!("session-of-{member}")
}

/// A schema of its own in the PostgreSQL that `scripts/test` started.
pub fn postgres_schema() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let base = std::env::var("TEST_POSTGRES_URL")
        .expect("TEST_POSTGRES_URL is not set: run the tests by scripts/test, or by `scripts/postgres run cargo test`");
    let name = format!("t{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let mut conn = base.parse::<Url>().unwrap().connect().unwrap();
    sql_query(format!("CREATE SCHEMA {name}")).execute(&mut conn).unwrap();
    format!("{base}&options=-csearch_path%3D{name}")
}

/// Makes requests as somebody.
#[derive(Clone)]
pub struct Client<'club> {
    club: &'club Club,
    service: usize,
    headers: Vec<(String, String)>,
}

impl Client<'_> {
    /// The same caller at another replica.
    pub fn at(mut self, service: usize) -> Self {
        self.service = service;
        self
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, None)
    }

    pub fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, None)
    }

    pub fn post(&self, path: &str, body: Value) -> Answer {
        self.send("POST", path, Some(body))
    }

    pub fn put(&self, path: &str, body: Value) -> Answer {
        self.send("PUT", path, Some(body))
    }

    pub fn patch(&self, path: &str, body: Value) -> Answer {
        self.send("PATCH", path, Some(body))
    }

    /// Any request; a body is sent as JSON.
    pub fn send(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        let json = ("content-type".to_owned(), "application/json".to_owned());
        let body = body.map(|body| body.to_string().into_bytes());
        let client = if body.is_some() { self.clone().header(&json.0, &json.1) } else { self.clone() };
        client.send_bytes(method, path, body.unwrap_or_default())
    }

    /// Any request with any body; say its media type by a header. The answer is held to the OpenAPI document.
    pub fn send_bytes(&self, method: &str, path: &str, body: Vec<u8>) -> Answer {
        let mut request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.club.services[self.service].address));
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let agent = &self.club.agent;
        let sent =
            if body.is_empty() { agent.run(request.body(()).unwrap()) } else { agent.run(request.body(body).unwrap()) };
        let mut response = sent.unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        let headers = response
            .headers()
            .iter()
            .map(|(name, value)| (name.as_str().to_owned(), value.to_str().unwrap().to_owned()))
            .collect();
        let answer = Answer {
            request: format!("{method} {}", path.chars().take(200).collect::<String>()),
            status: response.status().as_u16(),
            headers,
            body: response.body_mut().with_config().limit(64 << 20).read_to_vec().unwrap(),
        };
        check_headers(&answer);
        check_body(method, path.split('?').next().unwrap(), &answer);
        answer
    }
}

/// What came back.
#[derive(Debug, Clone)]
pub struct Answer {
    request: String,
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    /// Asserts the status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}: {}", self.request, self.text());
        self
    }

    /// Asserts status and problem code.
    #[track_caller]
    pub fn refused(self, status: u16, code: &str) -> Value {
        let problem = self.expect(status).json();
        assert_eq!(problem["code"], code, "{problem}");
        problem
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{}: {error}: {}", self.request, self.text()))
    }

    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    /// The JSON pointers of the violations of a problem.
    pub fn pointers(&self) -> Vec<String> {
        let problem = self.json();
        let violations = problem["violations"].as_array().cloned().unwrap_or_default();
        let mut found: Vec<_> = violations
            .iter()
            .map(|violation| violation["pointer"].as_str().or(violation["parameter"].as_str()).unwrap().to_owned())
            .collect();
        found.sort();
        found
    }
}

/// Contract, "Headers on every answer" and "Errors".
fn check_headers(answer: &Answer) {
    for name in ["x-request-id", "x-knoq-version"] {
        assert!(answer.header(name).is_some(), "{} has no {name}", answer.request);
    }
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{}", answer.request);
    assert_eq!(answer.header("referrer-policy"), Some("no-referrer"), "{}", answer.request);
    assert_eq!(answer.header("x-knoq-need-authorization").is_some(), answer.status == 401, "{}", answer.request);
    // A browser that cannot finish its sign-in is answered a page.
    let is_page = answer.request.contains("/api/callback")
        && answer.header("content-type").is_some_and(|kind| kind.contains("html"));
    let has_problem = !answer.request.starts_with("HEAD") && !answer.request.contains("/readyz") && !is_page;
    if answer.status >= 400 && has_problem {
        let problem = answer.json();
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{problem}");
        assert_eq!(problem["status"], answer.status, "{problem}");
        assert_eq!(problem["instance"].as_str(), answer.header("x-request-id"), "{problem}");
        assert_eq!(problem["errors"]["message"], problem["detail"], "{problem}");
        assert_eq!(problem["type"], format!("/problems/{}", problem["code"].as_str().unwrap()), "{problem}");
    }
}

/// The document as a client sees it.
pub static DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| serde_json::to_value(service_kit::server::document(&server::ABOUT)).unwrap());

static VALIDATORS: LazyLock<RwLock<HashMap<String, Validator>>> = LazyLock::new(RwLock::default);

/// Holds an answer to what the document says of this operation and status.
fn check_body(method: &str, path: &str, answer: &Answer) {
    assert!(!contains_null(&answer.body), "{} has a null: {}", answer.request, answer.text());
    let Some((template, operation)) = operation(method, path) else { return };
    let response = &operation["responses"][answer.status.to_string()];
    assert!(!response.is_null(), "{template} does not document status {}: {}", answer.status, answer.text());
    let media_type = answer.header("content-type").map(|value| value.split(';').next().unwrap().trim());
    let Some(media_type) = media_type.filter(|_| !answer.body.is_empty()) else {
        assert!(response["content"].is_null() || method == "HEAD", "{} has no body", answer.request);
        return;
    };
    let schema = &response["content"][media_type]["schema"];
    assert!(!schema.is_null(), "{} does not document {media_type}", answer.request);
    if !media_type.ends_with("json") {
        return;
    }
    let key = format!("{method} {template} {} {media_type}", answer.status);
    if !VALIDATORS.read().unwrap().contains_key(&key) {
        let whole = json!({"components": DOCUMENT["components"], "allOf": [schema]});
        VALIDATORS.write().unwrap().insert(key.clone(), jsonschema::validator_for(&whole).unwrap());
    }
    let errors: Vec<_> =
        VALIDATORS.read().unwrap()[&key].iter_errors(&answer.json()).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{key}: {errors:?} in {}", answer.text());
}

fn contains_null(body: &[u8]) -> bool {
    fn in_value(value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::Array(items) => items.iter().any(in_value),
            Value::Object(members) => members.values().any(in_value),
            _ => false,
        }
    }
    serde_json::from_slice(body).is_ok_and(|value| in_value(&value))
}

/// The operation that a path belongs to; literal segments go before parameters.
fn operation(method: &str, path: &str) -> Option<(String, &'static Value)> {
    let segments: Vec<_> = path.split('/').collect();
    let paths = DOCUMENT["paths"].as_object().unwrap();
    let mut found: Vec<_> = paths
        .iter()
        .filter_map(|(template, item)| Some((template, item.get(method.to_lowercase())?)))
        .filter(|(template, _)| {
            let parts: Vec<_> = template.split('/').collect();
            parts.len() == segments.len()
                && parts.iter().zip(&segments).all(|(part, segment)| part.starts_with('{') || part == segment)
        })
        .collect();
    found.sort_by_key(|(template, _)| template.matches('{').count());
    found.first().map(|(template, operation)| ((*template).clone(), *operation))
}

const HOUR: i64 = 3_600_000_000;

/// These hours from the present one. The hour stays the same when the real clock passes the next one during a test, and
/// follows when the test moves its clock.
pub fn hours_from_now(club: &Club, hours: i64) -> Timestamp {
    let hour = club.clock.now().micros() / HOUR;
    let known = club.hour.load(Ordering::Relaxed);
    let hour = if (known..=known + 1).contains(&hour) { known } else { hour };
    club.hour.store(hour, Ordering::Relaxed);
    Timestamp::from_micros((hour + hours) * HOUR).unwrap()
}

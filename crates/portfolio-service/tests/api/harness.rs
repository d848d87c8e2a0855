//! A real service on a real database for each test, and a client that holds every answer to the OpenAPI document.

use std::{
    collections::HashMap,
    sync::{
        LazyLock, RwLock,
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    thread::JoinHandle,
};

use actix_web::rt::System;
use clap::Parser;
use common::time::Clock;
use diesel::{prelude::*, sql_query};
use jsonschema::Validator;
use portfolio_service::{
    config::{Cli, Config},
    schema, server,
};
use serde_json::{Value, json};
use service_kit::{
    db::{
        AnyConnection, Url,
        sql::{Moment, Uid},
    },
    server::Stop,
};
use tempfile::TempDir;
use ureq::Agent;
use uuid::Uuid;

/// Declares tests that run on both databases: `on_both! { name(club) { … } }`.
macro_rules! on_both {
    ($($(#[$attribute:meta])* $name:ident($club:ident) $body:block)+) => {
        $(mod $name {
            #[allow(unused_imports, reason = "not every test needs all of its file")]
            use super::*;
            $(#[$attribute])*
            fn run($club: $crate::harness::Club) $body
            #[test]
            fn sqlite() { run($crate::harness::Club::start($crate::harness::Backend::Sqlite)) }
            #[test]
            fn postgres() { run($crate::harness::Club::start($crate::harness::Backend::Postgres)) }
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
pub const ALICE: &str = "alice"; // an admin
pub const BOB: &str = "bob";
pub const CAROL: &str = "carol";
pub const DAVE: &str = "dave";
pub const SUSAN: &str = "susan"; // suspended
pub const DORA: &str = "dora"; // deactivated
const MEMBERS: [(&str, i16); 6] = [(ALICE, 1), (BOB, 1), (CAROL, 1), (DAVE, 1), (SUSAN, 2), (DORA, 0)];

/// A running service with its database and six members.
pub struct Club {
    services: Vec<Service>,
    /// Of the first service; further ones share it.
    pub clock: Clock,
    pub config: Config,
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
        let club = Self::start_empty(backend, options);
        club.add_members();
        club
    }

    /// Without any member.
    pub fn start_empty(backend: Backend, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = match backend {
            Backend::Sqlite => format!("sqlite://{}/club.sqlite3", folder.path().display()),
            Backend::Postgres => postgres_schema(),
        };
        let mut arguments = vec!["portfolio-service", "--database-url", &url, "--bind", "127.0.0.1:0"];
        arguments.extend(["--workers", "1", "--database-connections", "4", "--time-zone", "Asia/Tokyo"]);
        arguments.extend(["--admins", ALICE]);
        arguments.extend(options);
        let config = Cli::try_parse_from(arguments).unwrap().config;
        let url: Url = url.parse().unwrap();
        let clock = Clock::default();
        let agent = Agent::config_builder().http_status_as_error(false).max_redirects(0).build().into();
        let mut club = Self { services: Vec::new(), clock, config, url, agent, folder };
        club.start_another();
        club
    }

    /// Where the database is, as an option.
    pub fn url(&self) -> &str {
        self.config.database_url.as_ref().unwrap().reveal()
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

    /// Stops one service.
    pub fn stop(&mut self, service: usize) {
        let service = &mut self.services[service];
        let stop = service.stop.clone();
        std::thread::spawn(move || System::new().block_on(stop.drain())).join().ok();
        if let Some(thread) = service.thread.take()
            && thread.join().is_err()
            && !std::thread::panicking()
        {
            panic!("the service panicked");
        }
    }

    /// Stops all, and starts one in place of the first.
    pub fn restart(&mut self) {
        (0..self.services.len()).for_each(|service| self.stop(service));
        self.services.clear();
        self.start_another();
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
        for (name, state) in MEMBERS {
            diesel::insert_into(users::table)
                .values((
                    users::id.eq(id(name)),
                    users::name.eq(name),
                    users::real_name.eq(real_name(name)),
                    users::state.eq(state),
                    users::created_at.eq(now),
                    users::updated_at.eq(now),
                ))
                .execute(conn)
                .unwrap();
        }
    }

    /// A request by a member, as the proxy names them.
    pub fn by(&self, member: &str) -> Client<'_> {
        self.anonymous().header("x-forwarded-user", member)
    }

    /// A request without any credential.
    pub fn anonymous(&self) -> Client<'_> {
        Client { club: self, service: 0, headers: Vec::new() }
    }
}

impl Drop for Club {
    fn drop(&mut self) {
        (0..self.services.len()).for_each(|service| self.stop(service));
    }
}

/// The id of a member, the same in every test.
pub fn id(member: &str) -> Uid {
    Uid(Uuid::new_v5(&Uuid::NAMESPACE_OID, member.as_bytes()))
}

/// The name in real life of a member, which nobody may see until its owner publishes it.
pub fn real_name(member: &str) -> String {
    format!("real name of {member}")
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
            request: format!("{method} {path}"),
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
    assert!(answer.header("x-request-id").is_some(), "{} has no request id", answer.request);
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{}", answer.request);
    assert_eq!(answer.header("referrer-policy"), Some("no-referrer"), "{}", answer.request);
    assert_eq!(answer.header("www-authenticate").is_some(), answer.status == 401, "{}", answer.request);
    if answer.status >= 400 && !answer.request.starts_with("HEAD") && !answer.request.contains("/readyz") {
        let problem = answer.json();
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{problem}");
        assert_eq!(problem["status"], answer.status, "{problem}");
        assert_eq!(problem["instance"].as_str(), answer.header("x-request-id"), "{problem}");
        assert_eq!(problem["message"], problem["detail"], "{problem}");
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

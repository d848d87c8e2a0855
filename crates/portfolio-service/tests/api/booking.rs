//! The real booking-service, as a process with its own database, and a fake one with configurable answers.

use std::{
    env, fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{
        Arc, LazyLock, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use common::time::Timestamp;
use diesel::connection::SimpleConnection;
use serde_json::{Value, json};
use service_kit::database::{self, types::DbUuid};
use tempfile::TempDir;
use url::Url;

use crate::harness::{ALICE, BOB, CAROL, id};

/// The program of the booking-service, built by `scripts/test` or here. This crate does not depend on the other
/// service, so cargo does not build it with the tests.
static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
    if let Some(built) = env::var_os("BOOKING_SERVICE_PROGRAM") {
        return built.into();
    }
    let mut build = Command::new(env!("CARGO"));
    // With `bench`, dependencies have the features that `scripts/test` compiles them with.
    build.args(["build", "--locked", "--quiet", "-p", "bench", "-p", "booking-service", "--bin", "booking-service"]);
    // What cargo tells this test about its own package: with it, the build script of `ring` would run again.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text == "OUT_DIR" || text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            build.env_remove(&name);
        }
    }
    assert!(build.status().unwrap().success());
    // In the parent of the folder of this test program.
    env::current_exe().unwrap().parent().unwrap().with_file_name("booking-service")
});

/// Waits until a condition holds.
#[track_caller]
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    let (_keep, never) = mpsc::channel::<()>();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_mins(1), "not in time: {what}");
        let _ = never.recv_timeout(Duration::from_millis(5));
    }
}

/// The id of the group of all members.
const EVERYONE: &str = "11111111-1111-1111-1111-111111111111";

/// An origin whose pages may call the booking-service.
pub const CORS_ORIGIN: &str = "http://localhost:5173";

/// A running booking-service with the users Alice, Bob and Carol, whose ids are the same as in this service.
pub struct Booking {
    /// The same after restarts.
    pub address: SocketAddr,
    running: Option<Child>,
    /// One of the club, which reads, and Bob's with the scope `write`.
    tokens: (String, String),
    folder: TempDir,
}

impl Booking {
    pub fn start() -> Self {
        Self::prepare().started()
    }

    /// Starts one with 2000 copies of an event, which are inserted into its database.
    pub fn start_large() -> Self {
        let booking = Self::start();
        booking.declare("copied", &[CAROL]);
        let file = booking.folder.path().join("booking.sqlite3");
        let mut conn = format!("sqlite://{}", file.display()).parse::<database::Url>().unwrap().connect().unwrap();
        let copies = "CREATE TEMP TABLE copies AS WITH RECURSIVE numbers (n) AS \
            (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1999) SELECT events.* FROM events, numbers; \
            UPDATE copies SET id = randomblob(16), owns_room = 0; \
            INSERT INTO events SELECT * FROM copies; \
            INSERT INTO event_admins SELECT id, created_by FROM copies";
        conn.batch_execute(copies).unwrap();
        booking
    }

    fn prepare() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let booking = Self { address, running: None, tokens: Default::default(), folder };
        booking.write_directory(&[ALICE, BOB, CAROL], &json!([]));
        booking
    }

    /// Writes the directory that it reads at the next sync.
    pub fn write_directory(&self, users: &[&str], groups: &Value) {
        let user = |name: &&str| json!({"id": id(name), "name": name, "displayName": name.to_uppercase(), "state": 1});
        let club = json!({"users": users.iter().map(user).collect::<Vec<_>>(), "groups": groups});
        fs::write(self.folder.path().join("club.json"), club.to_string()).unwrap();
    }

    fn started(mut self) -> Self {
        self.resume();
        // The copy needs only to read.
        self.tokens = (self.token(&[]), self.token(&["--user", BOB, "--scope", "write"]));
        self
    }

    fn program(&self) -> Command {
        let mut program = Command::new(&*PROGRAM);
        program.current_dir(self.folder.path()).env_clear().args([
            "--database-url",
            "sqlite://booking.sqlite3",
            "--directory-file",
            "club.json",
            "--allowed-origins",
            CORS_ORIGIN,
        ]);
        program
    }

    fn token(&self, options: &[&str]) -> String {
        let arguments = ["--log", "off", "token", "create", "--name", "test"];
        let made = self.program().args(arguments).args(options).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        String::from_utf8(made.stdout).unwrap().trim().to_owned()
    }

    /// Runs a command on its database.
    pub fn run_command(&self, command: &[&str]) {
        let done = self.program().args(["--log", "off"]).args(command).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    }

    /// The options of a portfolio-service that copies the events of this booking-service.
    pub fn options(&self) -> Vec<String> {
        options(&format!("http://{}", self.address), &self.tokens.0)
    }

    /// Bob's token, with the scope `write`.
    pub fn bobs_token(&self) -> &str {
        &self.tokens.1
    }

    /// Starts it again at the same address.
    pub fn resume(&mut self) {
        let mut program = self.program();
        program.args(["serve", "--workers", "1", "--bind", &self.address.to_string()]).stderr(Stdio::piped());
        let mut child = program.spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let address = log.find_map(|line| {
            let (_, rest) = line.split_once("listens on http://")?;
            rest.split([',', ' ']).next()?.parse().ok()
        });
        self.address = address.expect("the booking-service starts");
        // A full pipe would block the process.
        std::thread::spawn(move || log.for_each(drop));
        self.running = Some(child);
    }

    /// Stops it.
    pub fn stop(&mut self) {
        if let Some(mut child) = self.running.take() {
            assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
            child.wait().unwrap();
        }
    }

    fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let agent: ureq::Agent = ureq::Agent::config_builder().proxy(None).http_status_as_error(false).build().into();
        let request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.address))
            .header("authorization", format!("Bearer {}", self.tokens.1))
            .header("content-type", "application/json");
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let mut answer = agent.run(request.body(body).unwrap()).unwrap();
        let text = answer.body_mut().with_config().limit(64 << 20).read_to_string().unwrap();
        assert!(answer.status().is_success(), "{method} {path}: {} {text}", answer.status());
        serde_json::from_str(&text).unwrap_or_default()
    }

    fn body(name: &str, place: &str, hosts: &[&str]) -> Value {
        json!({
            "name": name, "description": format!("about {name}"), "sharedRoom": false, "place": place,
            "timeStart": "2030-04-04T18:00:00+09:00", "timeEnd": "2030-04-04T20:00:00+09:00", "groupId": EVERYONE,
            "admins": hosts.iter().map(|host| id(host)).collect::<Vec<_>>(),
        })
    }

    /// Bob creates an event with these hosts. Returns its id.
    pub fn declare(&self, name: &str, hosts: &[&str]) -> String {
        let made = self.send("POST", "/api/events", Some(&Self::body(name, "S516", hosts)));
        made["eventId"].as_str().unwrap().to_owned()
    }

    /// Bob, a host, changes an event.
    pub fn change(&self, event: &str, name: &str, place: &str, hosts: &[&str]) {
        self.send("PUT", &format!("/api/events/{event}"), Some(&Self::body(name, place, hosts)));
    }

    /// The ids of all events, sorted.
    pub fn events(&self) -> Vec<DbUuid> {
        let list = self.send("GET", "/api/events", None);
        let id = |event: &Value| serde_json::from_value(event["eventId"].clone()).unwrap();
        let mut ids: Vec<_> = list.as_array().unwrap().iter().map(id).collect();
        ids.sort_unstable();
        ids
    }

    /// Bob, a host, deletes an event.
    pub fn delete(&self, event: &str) {
        self.send("DELETE", &format!("/api/events/{event}"), None);
    }
}

impl Drop for Booking {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The options of a portfolio-service that copies the events of this address twenty times a second.
pub fn options(address: &str, token: &str) -> Vec<String> {
    options_with(address, token, "0.05")
}

/// As [`options`], five times a second, so that a lease does not expire while the machine is busy.
pub fn calm_options(address: &str, token: &str) -> Vec<String> {
    options_with(address, token, "0.2")
}

fn options_with(address: &str, token: &str, interval: &str) -> Vec<String> {
    ["--booking-url", address, "--booking-token", token, "--booking-interval", interval].map(str::to_owned).into()
}

/// How the fake booking-service answers.
#[derive(Debug, Clone)]
pub enum Behavior {
    /// Sends these bytes.
    Answer(Vec<u8>),
    /// Lists these events, or those that changed after the requested time.
    List(Vec<Value>),
    /// As `List` in pages. A list of all events has none that `moves`. Instead of the page that begins with this event,
    /// it sends these bytes.
    Pages(Vec<Value>, Option<(usize, Vec<u8>)>),
    /// As `List` in pages, each of which is sent for its second request; the first one is refused by the rate limit.
    RateLimited(Vec<Value>),
    /// Sends these bytes and then nothing, with the connection open.
    Stall(Vec<u8>),
    /// Sends this list to the first request for all events, then behaves in the other way.
    Once(Value, Box<Behavior>),
}

impl Behavior {
    /// A complete answer with status 200.
    pub fn json(body: &Value) -> Self {
        Self::Answer(Self::page(body, ""))
    }

    /// The bytes of an answer with status 200 and more header lines.
    pub fn page(body: &Value, headers: &str) -> Vec<u8> {
        let body = body.to_string();
        let length = body.len();
        format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n{headers}Connection: close\r\n\r\n{body}").into_bytes()
    }
}

/// The fields of an event in the booking-service's JSON that the copy needs.
pub fn event_json(event: DbUuid, name: &str, hosts: &[&str]) -> Value {
    json!({
        "eventId": event, "name": name, "description": "", "place": "S516", "timeStart": "2030-04-04T09:00:00Z",
        "timeEnd": "2030-04-04T11:00:00Z", "admins": hosts.iter().map(|host| id(host)).collect::<Vec<_>>(),
    })
}

/// The event after a change at this time.
pub fn changed_event(mut event: Value, at: &str) -> Value {
    event["updatedAt"] = at.into();
    event
}

/// The event after its deletion at this time.
pub fn deleted_event(event: Value, at: &str) -> Value {
    let mut event = changed_event(event, at);
    event["deletedAt"] = at.into();
    event
}

/// A fake booking-service.
pub struct FakeBooking {
    pub address: String,
    behavior: Arc<RwLock<Behavior>>,
    requests: Arc<RwLock<Vec<ListRequest>>>,
    ended: Arc<AtomicBool>,
}

impl FakeBooking {
    pub fn start(behavior: Behavior) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let this = Self {
            address,
            behavior: Arc::new(RwLock::new(behavior)),
            requests: Arc::default(),
            ended: Arc::default(),
        };
        let (behavior, requests, ended) = (this.behavior.clone(), this.requests.clone(), this.ended.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let (behavior, requests) = (behavior.clone(), requests.clone());
                std::thread::spawn(move || serve(&stream.unwrap(), &behavior, &requests));
            }
        });
        this
    }

    pub fn set_behavior(&self, behavior: Behavior) {
        *self.behavior.write().unwrap_or_else(PoisonError::into_inner) = behavior;
    }

    /// The tokens of all requests so far.
    pub fn tokens(&self) -> Vec<String> {
        self.requests().into_iter().map(|request| request.token).collect()
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<ListRequest> {
        self.requests.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for `count` more requests.
    #[track_caller]
    pub fn wait_for_requests(&self, count: usize) {
        let before = self.tokens().len();
        until("the booking-service receives requests", || self.tokens().len() >= before + count);
    }
}

/// A request to the fake booking-service.
#[derive(Debug, Clone)]
pub struct ListRequest {
    pub token: String,
    /// `updatedSince`: only events that changed after this time.
    pub since: Option<Timestamp>,
    /// The index of the first requested event.
    pub from: usize,
}

impl Drop for FakeBooking {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        TcpStream::connect(self.address.trim_start_matches("http://")).ok();
    }
}

fn serve(stream: &TcpStream, behavior: &RwLock<Behavior>, requests: &RwLock<Vec<ListRequest>>) {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty());
    let Some(first) = lines.next() else { return };
    let address = Url::parse(&format!("http://false{}", first.split(' ').nth(1).unwrap())).unwrap();
    let parameter = |name| address.query_pairs().find(|it| it.0 == name).map(|(_, value)| value.into_owned());
    let since: Option<Timestamp> = parameter("updatedSince").map(|since| since.parse().unwrap());
    let [limit, from] = ["limit", "cursor"].map(|name| parameter(name).map_or(0, |number| number.parse().unwrap()));
    let token = lines.find_map(|line| line.strip_prefix("authorization: Bearer ").map(str::to_owned));
    let Some(token) = token else { return };
    for _ in lines {}
    if address.path() != "/api/events" {
        let mut stream = stream;
        stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").ok();
        return;
    }
    // Read before the request is counted, so that after the count the test knows which behavior it got.
    let behavior = {
        let mut present = behavior.write().unwrap_or_else(PoisonError::into_inner);
        let behavior = present.clone();
        if let (Behavior::Once(_, next), None) = (&behavior, since) {
            *present = (**next).clone();
        }
        behavior
    };
    let is_repeated = {
        let mut requests = requests.write().unwrap_or_else(PoisonError::into_inner);
        let is_repeated = requests.last().is_some_and(|last| (last.since, last.from) == (since, from));
        requests.push(ListRequest { token, since, from });
        is_repeated
    };
    let mut stream = stream;
    match behavior {
        Behavior::Answer(bytes) => drop(stream.write_all(&bytes)),
        Behavior::Once(list, _) => drop(stream.write_all(&Behavior::page(&list, ""))),
        Behavior::List(events) => drop(stream.write_all(&Behavior::page(&listed(events, since).into(), ""))),
        Behavior::Pages(_, Some((bad, bytes))) if bad == from => drop(stream.write_all(&bytes)),
        Behavior::RateLimited(_) if !is_repeated => {
            let head = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(head.as_bytes()).ok();
        }
        Behavior::Pages(events, _) | Behavior::RateLimited(events) => {
            let events = listed(events, since);
            let rest = events.get(from..).unwrap_or_default();
            let (page, others) = rest.split_at(limit.min(rest.len()));
            let mut next = address.clone();
            let parameters = address.query_pairs().filter(|(name, _)| name != "cursor");
            next.query_pairs_mut().clear().extend_pairs(parameters).append_pair("cursor", &(from + limit).to_string());
            let link = format!("Link: <{}?{}>; rel=\"next\"\r\n", next.path(), next.query().unwrap());
            stream.write_all(&Behavior::page(&page.into(), if others.is_empty() { "" } else { &link })).ok();
        }
        Behavior::Stall(bytes) => {
            stream.write_all(&bytes).ok();
            // Until the client closes the connection.
            stream.read_exact(&mut [0]).ok();
        }
    }
}

/// The events of a list.
fn listed(events: Vec<Value>, since: Option<Timestamp>) -> Vec<Value> {
    let is_listed = |event: &Value| match since {
        Some(since) => event["updatedAt"].as_str().unwrap().parse::<Timestamp>().unwrap() > since,
        None => event["deletedAt"].is_null() && event["moves"].is_null(),
    };
    events.into_iter().filter(is_listed).collect()
}

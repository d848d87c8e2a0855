//! The real booking-service, a program of its own on a database of its own, and a false one that answers as told.

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

/// The program: as `scripts/test` has built it, or built now. This crate does not depend on the other service, so cargo
/// does not build it by itself.
static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
    if let Some(built) = env::var_os("BOOKING_SERVICE_PROGRAM") {
        return built.into();
    }
    let build = ["build", "--locked", "--quiet", "-p", "booking-service"];
    assert!(Command::new(env!("CARGO")).args(build).status().unwrap().success());
    // Beside the folder in which this test itself lies.
    env::current_exe().unwrap().parent().unwrap().with_file_name("booking-service")
});

/// Asks again and again, until it is so.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    let (_keep, never) = mpsc::channel::<()>();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(30), "not so in time: {what}");
        let _ = never.recv_timeout(Duration::from_millis(5));
    }
}

/// The group of everybody.
const EVERYONE: &str = "11111111-1111-1111-1111-111111111111";

/// An origin whose pages may call the booking-service.
pub const CORS_ORIGIN: &str = "http://localhost:5173";

/// A running booking-service that knows Alice, Bob and Carol by the ids they have here.
pub struct Booking {
    /// Stays the same over restarts.
    pub address: SocketAddr,
    running: Option<Child>,
    /// Alice's, to read; and Bob's.
    tokens: (String, String),
    folder: TempDir,
}

impl Booking {
    pub fn start() -> Self {
        Self::prepare().started()
    }

    /// With 2000 more events, copies of one, written straight into its database.
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
        let users: Vec<_> = [ALICE, BOB, CAROL]
            .iter()
            .map(|name| json!({"id": id(name), "name": name, "displayName": name, "state": 1}))
            .collect();
        let club = json!({"users": users, "groups": []}).to_string();
        fs::write(folder.path().join("club.json"), club).unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        Self { address, running: None, tokens: Default::default(), folder }
    }

    fn started(mut self) -> Self {
        self.resume();
        // What copies needs no more than to read.
        self.tokens = (self.token(ALICE, "read"), self.token(BOB, "write"));
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

    fn token(&self, user: &str, scope: &str) -> String {
        let arguments = ["--log", "off", "token", "create", "--user", user, "--name", "test", "--scope", scope];
        let made = self.program().args(arguments).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        String::from_utf8(made.stdout).unwrap().trim().to_owned()
    }

    /// Runs a command on its database.
    pub fn keep(&self, command: &[&str]) {
        let done = self.program().args(["--log", "off"]).args(command).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    }

    /// The options of a portfolio-service that copies from here.
    pub fn options(&self) -> Vec<String> {
        options(&format!("http://{}", self.address), &self.tokens.0)
    }

    /// A token of Bob's, to write.
    pub fn bobs_token(&self) -> &str {
        &self.tokens.1
    }

    /// Starts it again where it was.
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
        // It would stop at a pipe that nobody empties.
        std::thread::spawn(move || log.for_each(drop));
        self.running = Some(child);
    }

    /// Stops it; nobody listens there now.
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

    /// Bob declares an event of these hosts; its id.
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

/// The options of a portfolio-service that copies from this address, twenty times a second.
pub fn options(address: &str, token: &str) -> Vec<String> {
    options_with(address, token, "0.05")
}

/// The same five times a second, so that a lease outlives a busy moment of the machine.
pub fn calm_options(address: &str, token: &str) -> Vec<String> {
    options_with(address, token, "0.2")
}

fn options_with(address: &str, token: &str, interval: &str) -> Vec<String> {
    ["--booking-url", address, "--booking-token", token, "--booking-interval", interval].map(str::to_owned).into()
}

/// What the false booking-service does with who asks.
#[derive(Debug, Clone)]
pub enum Manner {
    /// Sends these bytes.
    Answer(Vec<u8>),
    /// Tells these events, or those of them that changed since the moment asked for.
    Tell(Vec<Value>),
    /// The same in pages, and in those of all events none that `moves`; but sends these bytes in place of the one from this event on.
    Pages(Vec<Value>, Option<(usize, Vec<u8>)>),
    /// The same in pages, each when it is asked for the second time.
    Busy(Vec<Value>),
    /// Sends the first of these bytes, then nothing for as long as it runs.
    Stall(Vec<u8>),
    /// Sends this list to whoever asks first for all events, then does what the other says.
    Once(Value, Box<Manner>),
}

impl Manner {
    /// A whole answer with status 200.
    pub fn json(body: &Value) -> Self {
        Self::Answer(Self::page(body, ""))
    }

    /// The bytes of one, with more lines in its head.
    pub fn page(body: &Value, head: &str) -> Vec<u8> {
        let body = body.to_string();
        let length = body.len();
        format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n{head}Connection: close\r\n\r\n{body}").into_bytes()
    }
}

/// An event as the booking-service answers it, so far as it matters.
pub fn answered(event: DbUuid, name: &str, hosts: &[&str]) -> Value {
    json!({
        "eventId": event, "name": name, "description": "", "place": "S516", "timeStart": "2030-04-04T09:00:00Z",
        "timeEnd": "2030-04-04T11:00:00Z", "admins": hosts.iter().map(|host| id(host)).collect::<Vec<_>>(),
    })
}

/// The same, as it is since it was changed.
pub fn changed(mut event: Value, at: &str) -> Value {
    event["updatedAt"] = at.into();
    event
}

/// The same, as it is since it was deleted.
pub fn deleted(event: Value, at: &str) -> Value {
    let mut event = changed(event, at);
    event["deletedAt"] = at.into();
    event
}

/// A false booking-service.
pub struct False {
    pub address: String,
    manner: Arc<RwLock<Manner>>,
    asked: Arc<RwLock<Vec<Asked>>>,
    ended: Arc<AtomicBool>,
}

impl False {
    pub fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let this =
            Self { address, manner: Arc::new(RwLock::new(manner)), asked: Arc::default(), ended: Arc::default() };
        let (manner, asked, ended) = (this.manner.clone(), this.asked.clone(), this.ended.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let (manner, asked) = (manner.clone(), asked.clone());
                std::thread::spawn(move || serve(&stream.unwrap(), &manner, &asked));
            }
        });
        this
    }

    pub fn now(&self, manner: Manner) {
        *self.manner.write().unwrap_or_else(PoisonError::into_inner) = manner;
    }

    /// The tokens of all who asked so far.
    pub fn asked(&self) -> Vec<String> {
        self.questions().into_iter().map(|asked| asked.token).collect()
    }

    /// All that was asked so far.
    pub fn questions(&self) -> Vec<Asked> {
        self.asked.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until it is asked `times` times more.
    #[track_caller]
    pub fn until_asked(&self, times: usize) {
        let before = self.asked().len();
        until("the booking-service is asked", || self.asked().len() >= before + times);
    }
}

/// What the false booking-service was asked.
#[derive(Debug, Clone)]
pub struct Asked {
    pub token: String,
    /// Only for what changed after this.
    pub since: Option<Timestamp>,
    /// From which event on.
    pub from: usize,
}

impl Drop for False {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        TcpStream::connect(self.address.trim_start_matches("http://")).ok();
    }
}

fn serve(stream: &TcpStream, manner: &RwLock<Manner>, asked: &RwLock<Vec<Asked>>) {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty());
    let Some(first) = lines.next() else { return };
    let address = Url::parse(&format!("http://false{}", first.split(' ').nth(1).unwrap())).unwrap();
    let parameter = |name| address.query_pairs().find(|it| it.0 == name).map(|(_, value)| value.into_owned());
    let since: Option<Timestamp> = parameter("updatedSince").map(|since| since.parse().unwrap());
    let [limit, from] = ["limit", "cursor"].map(|name| parameter(name).map_or(0, |number| number.parse().unwrap()));
    let token = lines.find_map(|line| line.strip_prefix("authorization: Bearer ").map(str::to_owned));
    let Some(token) = token else { return };
    for _ in lines {}
    // What it will do is settled before it counts, so that whoever waits for the count knows what was done.
    let manner = {
        let mut present = manner.write().unwrap_or_else(PoisonError::into_inner);
        let manner = present.clone();
        if let (Manner::Once(_, next), None) = (&manner, since) {
            *present = (**next).clone();
        }
        manner
    };
    let is_again = {
        let mut asked = asked.write().unwrap_or_else(PoisonError::into_inner);
        let is_again = asked.last().is_some_and(|last| (last.since, last.from) == (since, from));
        asked.push(Asked { token, since, from });
        is_again
    };
    let mut stream = stream;
    match manner {
        Manner::Answer(bytes) => drop(stream.write_all(&bytes)),
        Manner::Once(list, _) => drop(stream.write_all(&Manner::page(&list, ""))),
        Manner::Tell(events) => drop(stream.write_all(&Manner::page(&told(events, since).into(), ""))),
        Manner::Pages(_, Some((bad, bytes))) if bad == from => drop(stream.write_all(&bytes)),
        Manner::Busy(_) if !is_again => {
            let head = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(head.as_bytes()).ok();
        }
        Manner::Pages(events, _) | Manner::Busy(events) => {
            let events = told(events, since);
            let rest = events.get(from..).unwrap_or_default();
            let (page, others) = rest.split_at(limit.min(rest.len()));
            let mut next = address.clone();
            let parameters = address.query_pairs().filter(|(name, _)| name != "cursor");
            next.query_pairs_mut().clear().extend_pairs(parameters).append_pair("cursor", &(from + limit).to_string());
            let link = format!("Link: <{}?{}>; rel=\"next\"\r\n", next.path(), next.query().unwrap());
            stream.write_all(&Manner::page(&page.into(), if others.is_empty() { "" } else { &link })).ok();
        }
        Manner::Stall(bytes) => {
            stream.write_all(&bytes).ok();
            // Until the other side gives up.
            stream.read_exact(&mut [0]).ok();
        }
    }
}

/// Those of the events that are told of.
fn told(events: Vec<Value>, since: Option<Timestamp>) -> Vec<Value> {
    let is_told = |event: &Value| match since {
        Some(since) => event["updatedAt"].as_str().unwrap().parse::<Timestamp>().unwrap() > since,
        None => event["deletedAt"].is_null() && event["moves"].is_null(),
    };
    events.into_iter().filter(is_told).collect()
}

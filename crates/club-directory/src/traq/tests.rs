//! Against a real server on the loopback, which answers by a script.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use super::*;
use crate::Source;

/// What the server does with one connection.
#[derive(Clone, Copy)]
enum Step {
    /// Answers with this status and body.
    Answer(u16, &'static str),
    /// Redirects to this address.
    Redirect(&'static str),
    /// Sends a body of this many bytes, with its length in the header or without.
    Body(usize, bool),
    /// Sends half an answer and then nothing, with the connection open.
    Stall,
    /// Closes without an answer.
    Close,
    /// Sends what is no HTTP.
    Noise,
}
use Step::{Answer, Body, Close, Noise, Redirect, Stall};

struct Server {
    base: Url,
    /// First line and Authorization header of each request.
    requests: Receiver<(String, String)>,
    /// Short only where it is bound to run out, so that a busy machine fails no other test.
    timeout: Duration,
    /// Dropped with the server, which ends what stalls.
    _alive: Sender<()>,
}

impl Server {
    fn new(script: Vec<Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = Url::parse(&format!("http://{}/api/v3", listener.local_addr().unwrap())).unwrap();
        let (seen, requests) = channel();
        let (alive, ended) = channel::<()>();
        let stalls = script.iter().any(|step| matches!(step, Stall));
        let timeout = Duration::from_millis(if stalls { 200 } else { 5_000 });
        thread::spawn(move || {
            for step in script {
                let (stream, _) = listener.accept().unwrap();
                let _ = seen.send(read_request(&stream));
                play(step, stream, &ended);
            }
        });
        Self { base, requests, timeout, _alive: alive }
    }

    fn read(&self) -> Result<Snapshot, DirectoryError> {
        let request = outbound::Limits { connect: self.timeout, request: self.timeout, bytes: 10_000 };
        let limits = Limits { request, attempts: 3, pause: Duration::from_millis(1) };
        Client::new(&self.base, "t0ken", &limits).read().and_then(Snapshot::checked)
    }

    fn fails(script: Vec<Step>) -> (DirectoryError, usize) {
        let server = Self::new(script);
        let error = server.read().unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("t0ken") && !shown.contains("s3cret"), "{shown}");
        (error, server.requests.try_iter().count())
    }
}

fn read_request(stream: &TcpStream) -> (String, String) {
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap).take_while(|line| !line.is_empty());
    let first = lines.next().unwrap();
    let authorization = lines.filter(|line| line.to_lowercase().starts_with("authorization:")).collect();
    (first, authorization)
}

fn play(step: Step, mut stream: TcpStream, ended: &Receiver<()>) {
    let head = |status, rest: &str| format!("HTTP/1.1 {status} Whatever\r\nConnection: close\r\n{rest}\r\n");
    let text = match step {
        Answer(status, body) => head(status, &format!("Content-Length: {}\r\n", body.len())) + body,
        Redirect(to) => head(302, &format!("Location: {to}\r\nContent-Length: 0\r\n")),
        Body(length, true) => head(200, &format!("Content-Length: {length}\r\n")) + &" ".repeat(length),
        Body(length, false) => head(200, "") + &" ".repeat(length),
        Stall => head(200, "Content-Length: 100\r\n") + "[",
        Close => String::new(),
        Noise => "220 mail.example ESMTP s3cret\r\n\r\n".into(),
    };
    // The client may have had enough, such as of a body that is too large.
    let _ = stream.write_all(text.as_bytes());
    if matches!(step, Stall) {
        let _ = ended.recv();
    }
}

const ANNA: Uuid = Uuid::from_u128(1);
const BEN: Uuid = Uuid::from_u128(2);
const USERS: &str = r#"[
    {"id": "00000000-0000-0000-0000-000000000001", "name": "anna", "displayName": "Anna", "state": 1, "bot": false,
     "iconFileId": "00000000-0000-0000-0000-000000000009", "updatedAt": "2026-04-01T09:00:00Z"},
    {"id": "00000000-0000-0000-0000-000000000002", "name": "a/ñ", "displayName": "", "state": 2, "bot": false},
    {"id": "00000000-0000-0000-0000-000000000003", "name": "BOT_x", "displayName": "X", "state": 9, "bot": true}
]"#;
const GROUPS: &str = r#"[
    {"id": "00000000-0000-0000-0000-000000000004", "name": "graphics", "description": "CG", "type": "team",
     "members": [{"id": "00000000-0000-0000-0000-000000000002", "role": ""},
                 {"id": "00000000-0000-0000-0000-000000000002", "role": "twice"},
                 {"id": "00000000-0000-0000-0000-000000000003", "role": "bot"},
                 {"id": "00000000-0000-0000-0000-000000000008", "role": "nobody"}],
     "admins": ["00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000003"]}
]"#;

#[test]
fn reads_users_and_groups() {
    let server = Server::new(vec![Answer(200, USERS), Answer(200, GROUPS)]);
    let base = &server.base;
    let read = Source::Traq { base: base.clone(), token: "t0ken".into() }.read().unwrap();

    let user = |id, name: &str, display_name: &str, icon: &str, state| DirectoryUser {
        id,
        name: name.into(),
        display_name: display_name.into(),
        real_name: None,
        icon: Some(format!("{base}/public/icon/{icon}")),
        email: None,
        state,
    };
    let anna = user(ANNA, "anna", "Anna", "anna", UserState::Active);
    let ben = user(BEN, "a/ñ", "", "a%2F%C3%B1", UserState::Suspended);
    let graphics = DirectoryGroup {
        id: Uuid::from_u128(4),
        name: "graphics".into(),
        description: "CG".into(),
        admins: vec![ANNA],
        members: vec![BEN],
    };
    assert_eq!(read, Snapshot { users: vec![anna, ben], groups: vec![graphics], privileged: None });

    let (requests, tokens): (Vec<_>, Vec<_>) = server.requests.try_iter().unzip();
    assert_eq!(requests, ["GET /api/v3/users?include-suspended=true HTTP/1.1", "GET /api/v3/groups HTTP/1.1"]);
    assert!(tokens.iter().all(|token| token.ends_with(": Bearer t0ken")), "{tokens:?}");
}

#[test]
fn addresses_of_any_form_of_base() {
    let limits = Limits::default();
    for base in ["https://q.example/api/v3", "https://q.example/api/v3/", "https://me:pw@q.example/api/v3?x=1#y"] {
        let client = Client::new(&Url::parse(base).unwrap(), "", &limits);
        assert_eq!(client.address(&["public", "icon", "a?b"]).as_str(), "https://q.example/api/v3/public/icon/a%3Fb");
    }
}

#[test]
fn what_may_pass_is_tried_again() {
    for trouble in [Answer(500, "s3cret"), Answer(503, ""), Answer(429, ""), Close] {
        let server = Server::new(vec![trouble, trouble, Answer(200, USERS), trouble, Answer(200, GROUPS)]);
        assert_eq!(server.read().unwrap().users.len(), 2);
        let (error, requests) = Server::fails(vec![trouble; 3]);
        assert_eq!(requests, 3, "{error}");
    }
    // A server that is not there.
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let base = Url::parse(&format!("http://{gone}")).unwrap();
    let nowhere = Server { base, ..Server::new(Vec::new()) };
    assert!(matches!(nowhere.read().unwrap_err(), DirectoryError::Unreachable("users", _)));
}

#[test]
fn what_will_not_pass_is_asked_once() {
    for status in [401, 403, 404, 204] {
        let (error, requests) = Server::fails(vec![Answer(status, "s3cret")]);
        assert!(matches!(error, DirectoryError::Status("users", found) if found == status), "{error}");
        assert_eq!(requests, 1);
    }
    let (error, requests) = Server::fails(vec![Redirect("/login?s3cret")]);
    assert!(matches!(error, DirectoryError::Status("users", 302)) && requests == 1, "{error}");
    let (error, requests) = Server::fails(vec![Noise]);
    assert!(matches!(error, DirectoryError::Unreachable("users", _)) && requests == 1, "{error}");
}

#[test]
fn garbage_is_refused_without_quoting_it() {
    for body in ["<html>s3cret", r#"["s3cret"]"#, r#"{"s3cret": 1}"#, "", r#"[{"id": "s3cret", "name": "a"}]"#] {
        let (error, requests) = Server::fails(vec![Answer(200, body)]);
        assert!(matches!(error, DirectoryError::Malformed(..)), "{error}");
        assert_eq!(requests, 1);
    }
    let (error, _) = Server::fails(vec![Answer(200, USERS), Answer(200, "null")]);
    assert!(error.to_string().contains("groups"), "{error}");
}

#[test]
fn more_than_the_limit_is_refused() {
    for with_length in [true, false] {
        let (error, requests) = Server::fails(vec![Body(10_001, with_length)]);
        assert!(matches!(error, DirectoryError::TooLarge(_, 10_000)), "{error}");
        assert_eq!(requests, 1);
    }
}

#[test]
fn a_server_that_stalls_is_given_up() {
    let (error, requests) = Server::fails(vec![Stall]);
    assert!(error.to_string().contains("in time"), "{error}");
    assert_eq!(requests, 1);
}

#[test]
fn what_is_unfit_is_refused() {
    const STATE: &str =
        r#"[{"id": "00000000-0000-0000-0000-000000000001", "name": "anna", "displayName": "", "state": 7}]"#;
    const TWICE: &str = r#"[
        {"id": "00000000-0000-0000-0000-000000000001", "name": "anna", "displayName": "", "state": 1},
        {"id": "00000000-0000-0000-0000-000000000002", "name": "anna", "displayName": "", "state": 0}
    ]"#;
    for (users, fault) in [(STATE, "unknown state 7"), (TWICE, "two users have the name \"anna\"")] {
        let (error, _) = Server::fails(vec![Answer(200, users), Answer(200, "[]")]);
        assert!(error.to_string().contains(fault), "{error}");
    }
}

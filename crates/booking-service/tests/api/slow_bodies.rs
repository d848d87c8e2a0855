//! Bodies that arrive slowly: who may not send one learns that before, and nobody fills the memory with them.

use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
};

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;
use serde_json::json;

use crate::{
    builders::{At, event_body},
    harness::{ALICE, BOB, CAROL, Club, SUSAN},
    process::{LONG, Process, until},
    tokens::make_token,
};

const IMPORT: &str = "/api/rooms/all";

/// A connection on which a request has begun.
struct Slow(TcpStream);

impl Slow {
    /// Sends a head that declares a body.
    fn begin(address: &str, method: &str, path: &str, headers: &str, length: usize) -> Self {
        let mut stream = TcpStream::connect(address.trim_start_matches("http://")).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        Self(stream)
    }

    /// Sends a part of the body, as far as the service takes it.
    fn send(&mut self, bytes: &[u8]) {
        self.0.set_nonblocking(true).unwrap();
        let mut sent = 0;
        while sent < bytes.len() {
            match self.0.write(&bytes[sent..]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock && !self.is_answered() => std::thread::yield_now(),
                Err(_) => break,
            }
        }
        self.0.set_nonblocking(false).unwrap();
    }

    fn is_answered(&self) -> bool {
        self.0.peek(&mut [0]).is_ok()
    }

    /// The status, and the whole answer.
    fn answer(mut self) -> (u16, String) {
        let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
        while let Ok(count @ 1..) = self.0.read(&mut buffer) {
            bytes.extend_from_slice(&buffer[..count]);
            if bytes.ends_with(b"}") || bytes.ends_with(b"]") {
                break;
            }
        }
        let text = String::from_utf8(bytes).unwrap();
        (text.split(' ').nth(1).unwrap_or_default().parse().unwrap_or(0), text)
    }
}

fn cookie(member: &str) -> String {
    format!("Cookie: session=session-of-{member}\r\n")
}

fn bytes_under_way(club: &Club) -> u64 {
    let metrics = club.anonymous().get("/metrics").expect(200).text();
    metrics.lines().find_map(|line| line.strip_prefix("http_request_body_bytes ")).unwrap().parse().unwrap()
}

#[rstest]
fn rights_are_checked_before_the_body_arrives(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (read, board) = (make_token(&club, ALICE, "read"), make_token(&club, ALICE, "board"));
    let bearer = |token: &str| format!("Authorization: Bearer {token}\r\n");
    let cross_site = format!("{}Origin: https://evil.example\r\n", cookie(ALICE));
    for (method, path, headers, status, code) in [
        ("POST", IMPORT, String::new(), 401, "not-signed-in"),
        ("POST", IMPORT, cookie("nobody"), 401, "bad-credentials"),
        ("POST", "/api/events", bearer("guess"), 401, "bad-credentials"),
        ("POST", IMPORT, cookie(BOB), 403, "forbidden"),
        ("POST", "/api/events", cookie(SUSAN), 403, "account-inactive"),
        ("POST", "/api/events", bearer(&read), 403, "insufficient-scope"),
        ("PUT", "/api/events/0198c0de-0000-7000-8000-000000000001", bearer(&board), 403, "insufficient-scope"),
        ("POST", IMPORT, cross_site, 403, "cross-site"),
    ] {
        for sent in [&b""[..], b"{", &vec![b' '; 100_000]] {
            let mut slow = Slow::begin(club.origin(0), method, path, &headers, 900_000);
            slow.send(sent);
            let (found, answer) = slow.answer();
            assert!(found == status && answer.contains(code), "{method} {path}: {answer}");
        }
        // The same for a body that has arrived, whatever is wrong with it.
        let mut all = Slow::begin(club.origin(0), method, path, &headers, 3);
        all.send(b"[{]");
        let (found, answer) = all.answer();
        assert!(found == status && answer.contains(code), "{method} {path}: {answer}");
    }
    // Who may, is waited for.
    let body = event_body(&club, BOB, At::Place("x"), (1, 2)).to_string();
    let mut slow = Slow::begin(club.origin(0), "POST", "/api/events", &cookie(BOB), body.len());
    for byte in body.as_bytes().chunks(100) {
        slow.send(byte);
        assert!(club.by(CAROL).get("/api/users/me").status == 200);
    }
    assert_eq!(slow.answer().0, 201);
}

#[rstest]
fn one_caller_has_only_so_many_bytes_under_way(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (length, part) = (1_000_000, vec![b' '; 900_000]);
    let begin = |member: &str| {
        let mut slow = Slow::begin(club.origin(0), "POST", "/api/events", &cookie(member), length);
        slow.send(&part);
        slow
    };
    // Four have room.
    let alices: Vec<_> = (0..4).map(|_| begin(ALICE)).collect();
    until("they have arrived", || bytes_under_way(&club) == 4 * 900_000);
    let (status, answer) = begin(ALICE).answer();
    assert!(status == 429 && answer.contains("retry-after: 1\r\n"), "{answer}");
    // Others, and what does not have to be waited for, are not concerned.
    let mut bobs = begin(BOB);
    bobs.send(&vec![b' '; 100_000]);
    assert_eq!(bobs.answer().0, 400);
    club.by(CAROL).post("/api/tags", json!({"name": "a"})).expect(201);
    club.by(ALICE).post("/api/tags", json!({"name": "b"})).expect(201);
    let metrics = club.anonymous().get("/metrics").expect(200).text();
    assert!(metrics.contains("http_request_bodies_refused_total 1\n"), "{metrics}");
    drop(alices);
    until("nothing is left", || bytes_under_way(&club) == 0);
    let mut again = begin(ALICE);
    again.send(&vec![b' '; 100_000]);
    assert_eq!(again.answer().0, 400);
}

#[rstest]
fn slow_bodies_do_not_fill_the_memory(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let process = Process::beside(&club, &["--secret-key", crate::harness::KEY]);
    let part = vec![b' '; 300_000];
    // Of one member, and of somebody who has not signed in.
    let slow: Vec<_> = (0..300)
        .map(|number| {
            let headers = if number % 2 == 0 { cookie(ALICE) } else { String::new() };
            let mut slow = Slow::begin(&process.address, "POST", IMPORT, &headers, 2_000_000);
            slow.send(&part);
            slow
        })
        .collect();
    // Somebody else's arrives.
    let body = br#"{"name":"fine"}"#;
    let mut others = Slow::begin(&process.address, "POST", "/api/tags", &cookie(BOB), body.len());
    others.send(&body[..5]);
    others.send(&body[5..]);
    assert_eq!(others.answer().0, 201);
    let most = process.peak_memory();
    // A debug build takes 65 MiB at its start, and some of each connection. The parts are 90 MB.
    assert!(most < 160, "{most} MiB");
    drop(slow);
}

//! The command `health` of the real program.

use crate::harness::{
    Backend::{self, Postgres, Sqlite},
    Club,
};
use rstest::rstest;
use std::{io::Write as _, net::TcpListener};

use crate::{
    commands::outcome,
    process::{Process, program},
};

/// The output for the service at an address, and the exit status.
fn health(bind: &str) -> (String, Option<i32>) {
    let (out, err, status) = outcome(program(&["health"]).env("BIND", bind));
    assert_eq!(out, "");
    (err, status)
}

/// Asserts that it prints in one line why the service at an address is not ready.
#[track_caller]
pub fn is_unhealthy(bind: &str, why: &str) {
    let (said, status) = health(bind);
    assert_eq!((said.lines().count(), status), (1, Some(1)), "{said}");
    assert!(said.starts_with("booking-service: ") && said.contains(why), "{said}");
}

#[rstest]
fn a_service_is_healthy_until_it_drains(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut process = Process::beside(&club, &["--drain-delay", "600"]);
    let port = process.address.rsplit(':').next().unwrap().to_owned();
    for bind in [format!("0.0.0.0:{port}"), format!("[::]:{port}"), format!("127.0.0.1:{port}")] {
        assert_eq!(health(&bind), (String::new(), Some(0)), "{bind}");
    }
    process.signal("TERM");
    process.until_it_logs("draining");
    is_unhealthy(&format!("127.0.0.1:{port}"), "/readyz: status 503, draining");
}

#[test]
fn an_unhealthy_service_is_explained_in_one_line() {
    is_unhealthy("127.0.0.1:0", "port 0");
    is_unhealthy("127.0.0.1:1", "refused");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    // A listener that accepts connections and never answers.
    is_unhealthy(&address, "no answer within 5 s");
    std::thread::spawn(move || {
        for client in listener.incoming() {
            client.unwrap().write_all(b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n").unwrap();
        }
    });
    is_unhealthy(&address, "status 302, and does not say why");
}

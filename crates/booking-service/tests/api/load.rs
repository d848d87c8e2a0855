//! Ordinary use of the real program: many who read and write at once.

#[path = "../../../service-kit/tests/shared/load.rs"]
mod rules;

use serde_json::{Value, json};

use crate::{
    builders::EVERYONE,
    commands::outcome,
    process::{self, program},
};

use process::PROGRAM;

const OPTIONS: [&str; 2] = ["--feed-rate-limit", "0"];

const READS: [&str; 9] = [
    "/api/events",
    "/",
    "/api/rooms",
    "/events",
    "/api/events?limit=20",
    "/board?view=week",
    "/api/users/me",
    "/api/audit",
    "/rooms",
];

/// A list that is streamed once it has more than 1,000 rows.
const STREAM: &str = "/api/events";

/// A header that says who sends a request.
fn authorization(url: &str) -> (&'static str, String) {
    let command = ["--database-url", url, "token", "create", "--user", "alice", "--name", "load"];
    let (token, error, status) = outcome(&mut program(&[&command[..], &["--scope", "write"]].concat()));
    assert_eq!(status, Some(0), "{error}");
    ("authorization", format!("Bearer {}", token.trim()))
}

/// The path and the body of a new object, of another size for each number.
fn creation(number: u64) -> (String, Value) {
    let body = json!({
        "name": format!("Load {number}"), "description": "あ".repeat(rules::length(number, 10_000)),
        "place": format!("place {number}"), "sharedRoom": false, "open": true, "groupId": EVERYONE,
        "timeStart": "2031-05-05T10:00:00Z", "timeEnd": "2031-05-05T12:00:00Z",
        "admins": [club_directory::demo::member_id("alice")],
    });
    ("/api/events".to_owned(), body)
}

/// A change of something that exists.
fn change(_number: u64) -> (&'static str, String, Value) {
    ("PUT", "/api/users/me/ical".to_owned(), json!({}))
}

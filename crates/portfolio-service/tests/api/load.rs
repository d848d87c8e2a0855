//! Ordinary use of the real program: many who read and write at once.

#[path = "../../../service-kit/tests/shared/load.rs"]
mod rules;

use serde_json::{Value, json};

pub use crate::backup::PROGRAM;

const OPTIONS: [&str; 2] = ["--admins", "alice"];

const READS: [&str; 8] = [
    "/api/v1/projects",
    "/",
    "/api/v1/users",
    "/projects",
    "/api/v1/audit",
    "/people/alice",
    "/api/v1/events",
    "/api/v1/users/me",
];

/// A list that is streamed once it has more than 1,000 rows.
const STREAM: &str = "/api/v1/projects";

/// A header that says who sends a request.
fn authorization(_url: &str) -> (&'static str, String) {
    ("x-forwarded-user", "alice".to_owned())
}

/// The path and the body of a new object, of another size for each number.
fn creation(number: u64) -> (String, Value) {
    let body = json!({
        "name": format!("Load {number}"), "description": "あ".repeat(1 + rules::length(number, 256)),
        "duration": {"since": {"year": 2025, "semester": 0}}, "link": "",
    });
    ("/api/v1/projects".to_owned(), body)
}

/// A change of something that exists.
fn change(number: u64) -> (&'static str, String, Value) {
    let path = format!("/api/v1/users/{}", club_directory::demo::member_id("alice"));
    ("PATCH", path, json!({"bio": format!("{number} {}", "あ".repeat(200))}))
}

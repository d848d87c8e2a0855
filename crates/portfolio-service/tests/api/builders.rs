//! Requests of many tests.

use serde_json::{Value, json};

use crate::harness::{Club, id};

/// An id without an object.
pub const NOBODY: &str = "0198c0de-0000-7000-8000-00000000dead";

/// A semester in JSON.
pub fn semester((year, half): (i32, i32)) -> Value {
    json!({"year": year, "semester": half})
}

/// A span of semesters in JSON.
pub fn span(since: (i32, i32), until: Option<(i32, i32)>) -> Value {
    match until {
        Some(until) => json!({"since": semester(since), "until": semester(until)}),
        None => json!({"since": semester(since)}),
    }
}

/// The object `body` with the members of `more`, which replace those of the same name.
pub fn with(mut body: Value, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("{more} is no object") };
    for (name, value) in more {
        body[name] = value;
    }
    body
}

/// The body of `POST /projects`.
pub fn project_body(name: &str) -> Value {
    json!({"name": name, "description": "about it", "duration": span((2024, 0), None)})
}

/// Creates a project and returns its path.
pub fn project(club: &Club, by: &str, name: &str) -> String {
    made(club, by, "/api/v1/projects", project_body(name))
}

/// Creates an object by POST to a list, and returns its path.
pub fn made(club: &Club, by: &str, list: &str, body: Value) -> String {
    let answer = club.by(by).post(list, body).expect(201);
    let path = format!("{list}/{}", text(&answer.json()["id"]));
    assert_eq!(answer.header("location"), Some(&*path));
    path
}

/// A member with a span, for the body of `PUT …/members`.
pub fn member(name: &str, since: (i32, i32), until: Option<(i32, i32)>) -> Value {
    json!({"userId": id(name), "duration": span(since, until)})
}

/// The body of `POST /contests`.
pub fn contest_body(name: &str) -> Value {
    json!({"name": name, "description": "about it", "duration": {"since": "2026-04-01T09:00:00Z"}})
}

/// Creates a contest and returns its path.
pub fn contest(club: &Club, by: &str, name: &str) -> String {
    made(club, by, "/api/v1/contests", contest_body(name))
}

/// The body of `POST /contests/{contestId}/teams`.
pub fn team_body(name: &str) -> Value {
    json!({"name": name, "description": "about it"})
}

/// Creates a team and returns its path.
pub fn team(club: &Club, by: &str, contest: &str, name: &str) -> String {
    made(club, by, &format!("{contest}/teams"), team_body(name))
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// The values of one member of each object of a list.
pub fn each(list: &Value, member: &str) -> Vec<String> {
    list.as_array().unwrap().iter().map(|item| text(&item[member])).collect()
}

//! Requests that many tests send, with times in whole hours from now.

use serde_json::{Value, json};

use crate::harness::{ALICE, Answer, Club, hours_from_now, id};

/// The everyone group.
pub const EVERYONE: &str = "11111111-1111-1111-1111-111111111111";

/// A span of whole hours from now, as request fields.
pub fn span(club: &Club, from: i64, to: i64) -> Value {
    json!({"timeStart": hours_from_now(club, from).to_string(), "timeEnd": hours_from_now(club, to).to_string()})
}

/// One object with the members of all these objects. Later members replace earlier ones.
pub fn merge<const N: usize>(objects: [Value; N]) -> Value {
    let mut all = json!({});
    for object in objects {
        for (name, value) in object.as_object().unwrap() {
            all[name] = value.clone();
        }
    }
    all
}

/// The path of the page that a form leads to, without what it says has happened.
pub fn landed(answer: &Answer) -> String {
    answer.header("location").unwrap().split('?').next().unwrap().to_owned()
}

/// The body of `POST /rooms`.
pub fn room_body(club: &Club, by: &str, place: &str, (from, to): (i64, i64)) -> Value {
    merge([span(club, from, to), json!({"place": place, "admins": [id(by)]})])
}

/// Creates an unverified room and returns its id.
pub fn room(club: &Club, by: &str, place: &str, hours: (i64, i64)) -> String {
    let room = club.by(by).post("/api/rooms", room_body(club, by, place, hours)).expect(201).json();
    room["roomId"].as_str().unwrap().to_owned()
}

/// Creates a verified room and returns its id.
pub fn verified_room(club: &Club, by: &str, place: &str, hours: (i64, i64)) -> String {
    let id = room(club, by, place, hours);
    club.by(ALICE).post(&format!("/api/rooms/{id}/verified"), json!({})).expect(204);
    id
}

/// The venue of an event.
#[derive(Clone, Copy)]
pub enum At<'a> {
    Place(&'a str),
    Room(&'a str),
}

/// The body of an event of the everyone group.
pub fn event_body(club: &Club, by: &str, at: At<'_>, (from, to): (i64, i64)) -> Value {
    let at = match at {
        At::Place(place) => json!({ "place": place }),
        At::Room(room) => json!({ "roomId": room }),
    };
    let rest = json!({
        "name": "Rust evening", "description": "", "sharedRoom": false, "groupId": EVERYONE, "admins": [id(by)],
    });
    merge([rest, span(club, from, to), at])
}

/// Sends a request for an event.
pub fn declare(club: &Club, by: &str, at: At<'_>, hours: (i64, i64)) -> Answer {
    club.by(by).post("/api/events", event_body(club, by, at, hours))
}

/// Sends a request for a shared event.
pub fn declare_shared(club: &Club, by: &str, at: At<'_>, hours: (i64, i64)) -> Answer {
    club.by(by).post("/api/events", merge([event_body(club, by, at, hours), json!({"sharedRoom": true})]))
}

/// Creates an event and returns its id.
pub fn event(club: &Club, by: &str, at: At<'_>, hours: (i64, i64)) -> String {
    text(&declare(club, by, at, hours).expect(201).json()["eventId"])
}

/// Creates a group with these members and returns its id.
pub fn group(club: &Club, by: &str, name: &str, members: &[&str]) -> String {
    let members: Vec<_> = members.iter().map(|member| id(member)).collect();
    let body = json!({"name": name, "description": "", "open": false, "members": members, "admins": [id(by)]});
    text(&club.by(by).post("/api/groups", body).expect(201).json()["groupId"])
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// The values of one member of each object of a list.
pub fn each(list: &Value, member: &str) -> Vec<String> {
    list.as_array().unwrap().iter().map(|item| text(&item[member])).collect()
}

/// Spans of an answer, in whole hours from now.
pub fn hours(club: &Club, spans: &Value) -> Vec<(i64, i64)> {
    let zero = hours_from_now(club, 0).micros();
    let hour = |value: &Value| {
        (value.as_str().unwrap().parse::<common::time::Timestamp>().unwrap().micros() - zero) / 3_600_000_000
    };
    spans.as_array().unwrap().iter().map(|span| (hour(&span["timeStart"]), hour(&span["timeEnd"]))).collect()
}

/// The body of a poll without invitees, with two slots in 48 and 72 hours and the deadline in 24 hours.
pub fn poll_body(club: &Club, by: &str) -> Value {
    let slots = [span(club, 48, 50), span(club, 72, 74)];
    let deadline = hours_from_now(club, 24).to_string();
    json!({"name": "Kick-off", "deadline": deadline, "candidateSlots": slots, "admins": [id(by)]})
}

/// Creates a poll with this body and additional members, and returns its path and the ids of its slots.
pub fn poll(club: &Club, by: &str, members: Value) -> (String, Vec<String>) {
    let body = merge([poll_body(club, by), members]);
    let answer = club.by(by).post("/api/draft-events", body).expect(201);
    let path = answer.header("location").unwrap().to_owned();
    let slots = each(&club.by(by).get(&path).expect(200).json()["candidateSlots"], "slotId");
    (path, slots)
}

/// Answers a poll with these slots.
pub fn answer_poll(club: &Club, by: &str, poll: &str, slots: &[&String]) -> Answer {
    club.by(by).post(&format!("{poll}/availability"), json!({ "slotIds": slots }))
}

//! The daily limit on what one member creates and changes.

use std::thread;

use crate::harness::Backend::{self, Postgres, Sqlite};
use chrono::TimeDelta;
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    builders::{At, EVERYONE, event_body, group, merge, poll, poll_body, room_body},
    harness::{ALICE, Answer, BOB, CAROL, Club, id},
    series::series,
};

/// Creates something.
type Create<'a> = Box<dyn Fn(&Club) -> Answer + 'a>;

fn limited(answer: Answer) {
    let wait: i64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=86_400).contains(&wait), "{wait}");
    answer.refused(429, "daily-limit");
}

fn tag(club: &Club, by: &str, name: &str) -> Answer {
    club.by(by).post("/api/tags", json!({"name": name}))
}

#[rstest]
fn whatever_a_member_creates_counts(#[values(Sqlite, Postgres)] backend: Backend) {
    let event = |club: &Club, number: i64| event_body(club, BOB, At::Place("x"), (2 * number, 2 * number + 1));
    let group = json!({"name": "g", "description": "", "open": true, "admins": [id(BOB)]});
    let creations: [Create<'_>; 7] = [
        Box::new(|club| club.by(BOB).post("/api/events", event(club, 50))),
        Box::new(|club| club.by(BOB).post("/api/rooms", room_body(club, BOB, "S516", (0, 1)))),
        Box::new(|club| club.by(BOB).post("/api/groups", group.clone())),
        Box::new(|club| club.by(BOB).post("/api/draft-events", poll_body(club, BOB))),
        Box::new(|club| tag(club, BOB, "new")),
        Box::new(|club| club.by(BOB).post("/api/users/me/tokens", json!({"name": "t", "scope": "read"}))),
        Box::new(|club| {
            let (poll, slots) = poll(club, ALICE, json!({"admins": [id(BOB)]}));
            let body = json!({"slotId": slots[0], "place": "y", "groupId": EVERYONE});
            club.by(BOB).post(&format!("{poll}/confirm"), body)
        }),
    ];
    let club = Club::start_with(backend, &["--daily-limit", "8"]);
    // What is refused, tried or repeated does not count.
    club.by(BOB).post("/api/groups", json!({})).expect(400);
    club.by(BOB).post("/api/events?dryRun=true", event(&club, 1)).expect(200);
    tag(&club, ALICE, "old").expect(201);
    tag(&club, BOB, "old").expect(409);
    for create in &creations {
        create(&club).expect(201);
    }
    let once = || club.by(BOB).header("idempotency-key", "k").post("/api/events", event(&club, 2));
    let made = once().expect(201).json()["eventId"].as_str().unwrap().to_owned();
    once().expect(201);
    for create in creations[..4].iter().chain(&creations[5..6]) {
        limited(create(&club));
    }
    limited(tag(&club, BOB, "newest"));
    limited(club.by(BOB).post("/api/events?dryRun=true", event(&club, 3)));
    let path = format!("/api/events/{made}");
    let with_tags = |names: &[&str]| {
        let tags: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
        merge([event(&club, 2), json!({"tags": tags})])
    };
    // What changes nothing does not count, nor does an answer.
    club.by(BOB).put(&path, event(&club, 2)).expect(200);
    club.by(BOB).put(&format!("{path}/attendees/me"), json!({"schedule": "attendance"})).expect(204);
    limited(club.by(BOB).put(&path, with_tags(&["old"])));
    limited(club.by(BOB).put(&path, with_tags(&["old", "newer"])));
    limited(club.by(BOB).post(&format!("{path}/tags"), json!({"name": "newer"})));
    let names = |tags: &Value| tags.as_array().unwrap().iter().map(|tag| tag["name"].clone()).collect::<Vec<_>>();
    assert_eq!(names(&club.by(BOB).get("/api/tags").json()), ["new", "old"]);
    assert_eq!(club.by(BOB).get(&path).json()["tags"], json!([]));
    let metrics = club.anonymous().get("/metrics").expect(200).text();
    assert!(metrics.contains("daily_limit_refusals_total 10\n"), "{metrics}");
    // Deleting gives nothing back, and restoring counts. A refusal is not stored: later the same key succeeds.
    club.by(BOB).delete(&path).expect(204);
    limited(club.by(BOB).post(&format!("{path}/restore"), json!({})));
    let again = || club.by(BOB).header("idempotency-key", "l").post("/api/events", event(&club, 60));
    limited(again());
    tag(&club, CAROL, "carol").expect(201);
    club.clock.advance(TimeDelta::hours(24));
    again().expect(201);
}

#[rstest]
fn changes_count_as_well(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start_with(backend, &["--daily-limit", "14"]);
    let (path, made) = series(&club, BOB, "S516", "FREQ=WEEKLY;COUNT=4");
    let group = group(&club, BOB, "g", &[]);
    // Each date of a series that changes is one.
    let describe = |text: &str| club.by(BOB).patch(&path, json!({ "description": text }));
    describe("a").expect(200);
    describe("a").expect(200);
    let tag = |n: usize| {
        let event = made["events"][n]["eventId"].as_str().unwrap().to_owned();
        club.by(BOB).post(&format!("/api/events/{event}/tags"), json!({"name": "rust"}))
    };
    // A new tag, and the event; then the event alone.
    for n in [0, 1] {
        tag(n).expect(204);
    }
    let body = |name: &str| json!({"name": name, "description": "", "open": true, "members": [], "admins": [id(BOB)]});
    club.by(BOB).put(&format!("/api/groups/{group}"), body("h")).expect(200);
    club.by(CAROL).put(&format!("/api/groups/{group}/members/me"), json!({})).expect(204);
    limited(describe("b"));
    assert_eq!(club.by(BOB).get(&path).json()["events"][0]["description"], "a");
    club.by(BOB).put(&format!("/api/groups/{group}"), body("i")).expect(200);
    limited(club.by(BOB).put(&format!("/api/groups/{group}"), body("j")));
    limited(tag(2));
    club.by(BOB).delete(&path).expect(204);
}

#[rstest]
fn who_runs_the_club_has_no_daily_limit(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start_with(backend, &["--daily-limit", "1"]);
    for number in 0..3 {
        tag(&club, ALICE, &format!("t{number}")).expect(201);
    }
    tag(&club, BOB, "one").expect(201);
    limited(tag(&club, BOB, "two"));
    let without = Club::start_with(backend, &["--daily-limit", "0"]);
    for number in 0..3 {
        tag(&without, BOB, &format!("t{number}")).expect(201);
    }
}

#[rstest]
fn the_daily_limit_holds_over_replicas_and_restarts(#[values(Sqlite, Postgres)] backend: Backend) {
    let mut club = Club::start_with(backend, &["--daily-limit", "10"]);
    let second = club.start_another();
    let shared = &club;
    let created: usize = thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|thread| {
                scope.spawn(move || {
                    let client = shared.by(BOB).at(if thread % 2 == 0 { 0 } else { second });
                    let statuses = (0..5)
                        .map(|number| client.post("/api/tags", json!({"name": format!("t{thread}-{number}")})).status);
                    statuses.filter(|status| *status == 201).count()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(created, 10);
    club.stop_all();
    club.start_another();
    limited(tag(&club, BOB, "after"));
}

//! The copy of the events, from the real booking-service and from a false one.

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;
use std::{
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use diesel::prelude::*;
use portfolio_service::schema::{copies, events, leases};
use serde_json::{Value, json};
use service_kit::database::types::{DbTimestamp, DbUuid};

use crate::{
    booking::{Booking, False, Manner, answered, calm_options, changed, deleted, options, until},
    builders::each,
    harness::{ALICE, BOB, CAROL, Club, id},
};

const EVENTS: &str = "/api/v1/events";

pub fn start(backend: Backend, options: &[String]) -> Club {
    Club::start_with(backend, &options.iter().map(String::as_str).collect::<Vec<_>>())
}

/// What an admin, from whom nothing is hidden, sees.
fn names(club: &Club) -> Vec<String> {
    each(&club.by(ALICE).get(EVENTS).expect(200).json(), "name")
}

pub fn detail(club: &Club, event: &str) -> Value {
    club.by(ALICE).get(&format!("{EVENTS}/{event}")).expect(200).json()
}

fn age(club: &Club) -> Option<f64> {
    let report = club.anonymous().get("/readyz?verbose").expect(200).json();
    report["copies"]["events"]["ageSeconds"].as_f64()
}

/// Waits until a copy was made that began after this moment.
#[track_caller]
fn until_copied(club: &Club) {
    let now = club.clock.now();
    until("the events are copied", || {
        let report = club.anonymous().get("/readyz?verbose").json();
        let at = report["copies"]["events"]["copiedAt"].as_str();
        at.is_some_and(|at| at.parse::<common::time::Timestamp>().unwrap() > now)
    });
}

fn holder(club: &Club) -> Option<DbUuid> {
    leases::table.find("events").select(leases::holder).first(&mut club.connect()).optional().unwrap()
}

#[rstest]
fn what_the_real_booking_service_has_is_here(#[values(Sqlite, Postgres)] backend: Backend) {
    let mut booking = Booking::start();
    let first = booking.declare("Rust evening", &[BOB, CAROL]);
    let second = booking.declare("Go evening", &[BOB]);
    // They would be in each other's way, were S516 verified; so both are there.
    let mut club = start(backend, &booking.options());
    until("both are copied", || names(&club).len() == 2);
    let user = |name: &str| json!({"id": id(name), "name": name, "realName": ""});
    let shown = detail(&club, &first);
    assert_eq!(
        shown,
        json!({
            "id": first, "name": "Rust evening", "description": "about Rust evening", "place": "S516", "level": 0,
            "duration": {"since": "2030-04-04T09:00:00Z", "until": "2030-04-04T11:00:00Z"},
            "hostname": [user(BOB), user(CAROL)],
        })
    );
    // A new one is anonymous.
    assert_eq!(club.anonymous().get(&format!("{EVENTS}/{first}")).expect(200).json()["hostname"], json!([]));
    let set = |event: &str, level: i16| {
        club.by(BOB).patch(&format!("{EVENTS}/{event}"), json!({ "level": level })).expect(204);
    };
    set(&first, 1);
    set(&second, 2);

    // Changed, and its level survives.
    booking.change(&first, "Zig evening", "S517", &[BOB]);
    until("the change is copied", || detail(&club, &first)["name"] == "Zig evening");
    let shown = detail(&club, &first);
    assert_eq!(
        (&shown["place"], &shown["level"], &shown["hostname"]),
        (&json!("S517"), &json!(1), &json!([user(BOB)]))
    );
    assert_eq!(club.anonymous().get(EVENTS).json().as_array().unwrap().len(), 1);

    // Deleted, and a new one.
    booking.delete(&second);
    let third = booking.declare("C evening", &[BOB]);
    until("the new one is copied, and the deleted one gone", || {
        let mut found = names(&club);
        found.sort();
        found == ["C evening", "Zig evening"]
    });
    club.by(BOB).get(&format!("{EVENTS}/{second}")).refused(404, "not-found");
    club.by(BOB).patch(&format!("{EVENTS}/{third}"), json!({"level": 2})).expect(204);

    // Unreachable for a while: the copy is served, and its age grows.
    booking.stop();
    until("the copy is old", || age(&club).unwrap() > 0.3);
    let before = club.by(ALICE).get(EVENTS).text();
    assert_eq!(names(&club).len(), 2);
    club.by(BOB).patch(&format!("{EVENTS}/{third}"), json!({"level": 1})).expect(204);
    club.by(BOB).patch(&format!("{EVENTS}/{third}"), json!({"level": 2})).expect(204);
    let metrics = club.anonymous().get("/metrics").text();
    let line = metrics.lines().find(|line| line.starts_with("copy_age_seconds{what=\"events\"} ")).unwrap();
    assert!(line.rsplit(' ').next().unwrap().parse::<f64>().unwrap() > 0.3, "{line}");

    // A restart of this service without the other one changes nothing.
    club.restart();
    assert_eq!(club.by(ALICE).get(EVENTS).text(), before);
    until("the age is known again", || age(&club).is_some());

    // Back again.
    booking.resume();
    until_copied(&club);
    assert_eq!(club.by(ALICE).get(EVENTS).text(), before);
    let fourth = booking.declare("D evening", &[CAROL, BOB]);
    until("the new one is copied", || names(&club).len() == 3);
    assert_eq!(["level"; 3].map(|level| detail(&club, &third)[level].clone()), [2, 2, 2].map(Value::from));
    assert_eq!((&detail(&club, &first)["level"], &detail(&club, &fourth)["level"]), (&json!(1), &json!(0)));
}

#[rstest]
fn without_the_booking_service_the_copy_goes_and_the_levels_stay(#[values(Sqlite, Postgres)] backend: Backend) {
    let event = DbUuid::new();
    let booking = False::start(Manner::json(&json!([answered(event, "one", &[BOB])])));
    let mut club = start(backend, &options(&booking.address, "t"));
    until("it is copied", || names(&club).len() == 1);
    club.by(BOB).patch(&format!("{EVENTS}/{event}"), json!({"level": 1})).expect(204);
    let configured = club.config.booking.clone();
    club.config.booking.booking_url = None;
    club.config.booking.booking_token = None;
    club.restart();
    assert_eq!(club.by(ALICE).get(EVENTS).expect(200).json(), json!([]));
    club.by(BOB).get(&format!("{EVENTS}/{event}")).refused(404, "not-found");
    club.config.booking = configured;
    club.restart();
    until("it is copied again", || names(&club).len() == 1);
    assert_eq!(detail(&club, &event.to_string())["level"], 1);
}

#[rstest]
fn garbage_changes_nothing(#[values(Sqlite, Postgres)] backend: Backend) {
    let events = [DbUuid::new(), DbUuid::new()];
    let whole = json!([answered(events[0], "one", &[BOB]), answered(events[1], "two", &[CAROL])]);
    let booking = False::start(Manner::json(&whole));
    let club = start(backend, &options(&booking.address, "t"));
    until("both are copied", || names(&club).len() == 2);
    club.by(BOB).patch(&format!("{EVENTS}/{}", events[0]), json!({"level": 1})).expect(204);
    let before = [None, Some(events[0]), Some(events[1])].map(|event| {
        let path = event.map_or_else(|| EVENTS.to_owned(), |event| format!("{EVENTS}/{event}"));
        (path.clone(), club.by(ALICE).get(&path).expect(200).text())
    });
    let Manner::Answer(good) = Manner::json(&whole) else { unreachable!() };
    let twice = json!([answered(events[0], "x", &[]), answered(events[0], "y", &[])]);
    let garbage = [
        Manner::Answer(b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 2\r\n\r\n[]".to_vec()),
        Manner::Answer(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n<p>oops</".to_vec()),
        Manner::Answer(b"HTTP/1.1 302 Found\r\nLocation: /api/version\r\nContent-Length: 2\r\n\r\n[]".to_vec()),
        Manner::Answer(good[..good.len() - 1].to_vec()),
        Manner::Answer(good[..good.len() / 2].to_vec()),
        Manner::Answer(Vec::new()),
        Manner::json(&json!({})),
        Manner::json(&json!([{}])),
        Manner::json(&json!([answered(events[0], "changed", &[BOB]), {"eventId": events[1]}])),
        Manner::json(&json!([answered(events[0], "nul \0", &[BOB])])),
        Manner::json(&twice),
    ];
    for answer in garbage {
        booking.now(answer.clone());
        // The third is asked for after the second was dealt with.
        booking.until_asked(3);
        for (path, text) in &before {
            assert_eq!(club.by(ALICE).get(path).expect(200).text(), *text, "{answer:?}");
        }
        club.anonymous().get("/readyz").expect(200);
    }
    booking.now(Manner::json(&json!([answered(events[0], "changed", &[BOB])])));
    until("the good answer is copied", || names(&club) == ["changed"]);
    assert_eq!(detail(&club, &events[0].to_string())["level"], 1);
    // One that is gone and comes back has the level it had.
    booking.now(Manner::json(&json!([])));
    until("all are gone", || names(&club).is_empty());
    booking.now(Manner::json(&whole));
    until("all are back", || names(&club).len() == 2);
    assert_eq!(detail(&club, &events[0].to_string())["level"], 1);
}

#[rstest]
fn one_short_list_changes_nothing(#[values(Sqlite, Postgres)] backend: Backend) {
    let events: Vec<_> = ["one", "three", "two"].map(|name| answered(DbUuid::new(), name, &[BOB])).into();
    let whole = Manner::json(&json!(events));
    let booking = False::start(whole.clone());
    let club = start(backend, &calm_options(&booking.address, "t"));
    until("all are copied", || names(&club).len() == 3);
    let failures = || {
        let metrics = club.anonymous().get("/metrics").text();
        let line = metrics.lines().find_map(|line| line.strip_prefix("copy_failures_total{what=\"events\"} "));
        line.unwrap().parse::<u32>().unwrap()
    };
    for short in [json!([]), json!(events[..1])] {
        let before = failures();
        booking.now(Manner::Once(short, Box::new(whole.clone())));
        until("the short list is refused", || failures() == before + 1);
        // What is said next is believed, and the doubt forgotten.
        booking.until_asked(2);
        assert_eq!(names(&club).len(), 3);
        assert_eq!(failures(), before + 1);
    }
    // A third of them may go at once, and all when it is said twice.
    booking.now(Manner::json(&json!(events[..2])));
    let before = failures();
    until("one is gone", || names(&club).len() == 2);
    assert_eq!(failures(), before);
    booking.now(Manner::json(&json!([])));
    until("all are gone", || names(&club).is_empty());
    assert_eq!(failures(), before + 1);
}

#[rstest]
fn only_changes_are_asked_for_and_a_day_later_everything(#[values(Sqlite, Postgres)] backend: Backend) {
    let event = |name: &str, at: &str| changed(answered(DbUuid::new(), name, &[BOB]), at);
    let (one, two) = (event("one", "2026-02-01T09:00:00Z"), event("two", "2026-03-01T09:00:00Z"));
    let booking = False::start(Manner::Tell(vec![one.clone(), two.clone()]));
    let club = start(backend, &options(&booking.address, "t"));
    let is_there = |expected: &[&str]| {
        until(&format!("{expected:?} are there"), || {
            let mut found = names(&club);
            found.sort();
            found == expected
        });
    };
    is_there(&["one", "two"]);

    // A change, and an event that was not there.
    let mut three = changed(one, "2026-03-01T10:00:00Z");
    three["name"] = "three".into();
    booking.now(Manner::Tell(vec![three.clone(), two.clone(), event("four", "2026-03-01T09:30:00Z")]));
    is_there(&["four", "three", "two"]);
    // Deleted as told; of the others nothing is said any more.
    let gone = deleted(three, "2026-03-01T11:00:00Z");
    booking.now(Manner::Tell(vec![gone.clone(), two.clone()]));
    is_there(&["four", "two"]);
    // What was changed before that, and shows only now.
    let late = event("late", "2026-03-01T10:56:00Z");
    booking.now(Manner::Tell(vec![gone.clone(), two.clone(), late.clone()]));
    is_there(&["four", "late", "two"]);
    let asked = booking.questions();
    assert!(asked[0].since.is_none() && asked[1..].iter().all(|asked| asked.since.is_some()), "{asked:?}");

    // Gone long since: nothing is told of it, so it stays until everything is asked for again.
    booking.now(Manner::Tell(vec![gone, two.clone(), late.clone()]));
    booking.until_asked(3);
    is_there(&["four", "late", "two"]);
    club.clock.advance(chrono::TimeDelta::hours(25));
    is_there(&["late", "two"]);

    // What cannot be understood makes everything be asked for again.
    booking.now(Manner::json(&json!({})));
    booking.until_asked(2);
    booking.now(Manner::Tell(vec![two.clone()]));
    is_there(&["two"]);

    // A replica without a booking-service drops the copy.
    booking.until_asked(3);
    let conn = &mut club.connect();
    diesel::delete(events::table).execute(conn).unwrap();
    diesel::delete(copies::table).execute(conn).unwrap();
    is_there(&["two"]);
}

#[rstest]
fn one_that_was_set_back_is_copied_as_it_is_now(#[values(Sqlite, Postgres)] backend: Backend) {
    let event = |name: &str, at| changed(answered(DbUuid::new(), name, &[BOB]), at);
    let (one, two) = (event("one", "2026-02-01T09:00:00Z"), event("two", "2026-03-01T09:00:00Z"));
    let mut since = changed(one.clone(), "2026-04-01T09:00:00Z");
    since["name"] = "changed".into();
    let booking = False::start(Manner::Tell(vec![since, two]));
    let club = start(backend, &options(&booking.address, "t"));
    until("both are copied", || names(&club).len() == 2);
    booking.until_asked(2);
    // From a backup: of neither there is anything to tell.
    booking.now(Manner::Tell(vec![one]));
    until("it is as it was", || names(&club) == ["one"]);
    let before = booking.questions().len();
    booking.until_asked(3);
    let questions = booking.questions();
    assert!(questions[before + 1..].iter().all(|asked| asked.since.is_some()), "{questions:?}");
}

#[rstest]
fn one_that_was_set_back_and_changed_since_is_copied_as_it_is_now(#[values(Sqlite, Postgres)] backend: Backend) {
    let event = |name: &str, at| changed(answered(DbUuid::new(), name, &[BOB]), at);
    let (one, lost) = (event("one", "2026-02-01T09:00:00Z"), event("lost", "2026-03-01T09:00:00Z"));
    let booking = False::start(Manner::Tell(vec![one.clone(), lost]));
    let club = start(backend, &options(&booking.address, "t"));
    until("both are copied", || names(&club).len() == 2);
    booking.until_asked(2);
    // The restored one has already gone on.
    booking.now(Manner::Tell(vec![one, event("new", "2026-03-01T09:01:00Z")]));
    until("it is as it was, and what is new is there", || {
        let mut found = names(&club);
        found.sort();
        found == ["new", "one"]
    });
}

#[rstest]
fn one_that_cannot_tell_what_changed_is_asked_for_everything(#[values(Sqlite, Postgres)] backend: Backend) {
    let event = |name: &str| changed(answered(DbUuid::new(), name, &[BOB]), "2026-03-01T09:00:00Z");
    let (one, mut two) = (event("one"), changed(event("two"), "2026-02-01T09:00:00Z"));
    let booking = False::start(Manner::json(&json!([one, two])));
    let club = start(backend, &options(&booking.address, "t"));
    until("both are copied", || names(&club).len() == 2);
    until("it is asked for changes", || booking.questions().iter().any(|asked| asked.since.is_some()));
    booking.until_asked(2);
    two["name"] = "changed".into();
    booking.now(Manner::json(&json!([two])));
    until("one is changed, and one gone", || names(&club) == ["changed"]);
    booking.now(Manner::json(&json!([])));
    until("all are gone", || names(&club).is_empty());
    assert_eq!(booking.questions().iter().filter(|asked| asked.since.is_some()).count(), 1);
}

#[rstest]
fn reads_are_fast_while_the_booking_service_is_slow(#[values(Sqlite, Postgres)] backend: Backend) {
    let booking = False::start(Manner::json(&json!([answered(DbUuid::new(), "one", &[BOB])])));
    let club = start(backend, &options(&booking.address, "t"));
    until("it is copied", || names(&club).len() == 1);
    booking.now(Manner::Stall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n[".to_vec()));
    booking.until_asked(1);
    let begun = Instant::now();
    for _ in 0..50 {
        assert_eq!(names(&club), ["one"]);
        club.anonymous().get("/readyz?verbose").expect(200);
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    // The lease is kept meanwhile.
    let expires_at = || leases::table.select(leases::expires_at).first::<DbTimestamp>(&mut club.connect()).unwrap();
    let before = expires_at();
    until("the lease is kept", || expires_at() > before);
}

#[rstest]
fn one_of_two_replicas_copies(#[values(Sqlite, Postgres)] backend: Backend) {
    let booking = False::start(Manner::json(&json!([answered(DbUuid::new(), "one", &[BOB])])));
    let mut club = start(backend, &calm_options(&booking.address, "first"));
    until("the first copies", || !booking.asked().is_empty());
    let first = holder(&club);
    club.config.booking.booking_token = Some("second".parse().unwrap());
    let second = club.start_another();
    // The second sees how old the copy of the first is.
    let age = || {
        let report = club.by(ALICE).at(second).get("/readyz?verbose").expect(200).json();
        report["copies"]["events"]["ageSeconds"].as_f64()
    };
    until("the second looks on", || age().is_some());
    booking.until_asked(5);
    assert_eq!(holder(&club), first);
    assert!(booking.asked().iter().all(|token| token == "first"), "{:?}", booking.asked());
    assert_eq!(each(&club.by(ALICE).at(second).get(EVENTS).expect(200).json(), "name"), ["one"]);
    // It gives the lease back.
    club.stop(0);
    until("the second copies", || booking.asked().last().unwrap() == "second");
    assert_ne!(holder(&club), first);
    booking.now(Manner::json(&json!([answered(DbUuid::new(), "two", &[BOB])])));
    until("what is new is copied", || {
        each(&club.by(ALICE).at(second).get(EVENTS).expect(200).json(), "name") == ["two"]
    });
}

#[rstest]
fn who_drains_does_not_take_the_lease_again(#[values(Sqlite, Postgres)] backend: Backend) {
    let booking = False::start(Manner::json(&json!([answered(DbUuid::new(), "one", &[BOB])])));
    let mut club =
        start(backend, &[&options(&booking.address, "t")[..], &["--drain-delay".into(), "1".into()]].concat());
    until("it is copied", || names(&club).len() == 1);
    booking.now(Manner::Stall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n[".to_vec()));
    booking.until_asked(1);
    assert!(holder(&club).is_some());
    // It asks all the while, and would keep the lease if it still had it.
    club.stop(0);
    assert_eq!(holder(&club), None);
}

#[rstest]
fn when_the_one_that_copies_is_killed_the_other_takes_over(#[values(Sqlite, Postgres)] backend: Backend) {
    let booking = False::start(Manner::json(&json!([answered(DbUuid::new(), "one", &[BOB])])));
    let mut club = start(backend, &[]);
    let killed = Killed::start(&club, &calm_options(&booking.address, "first"));
    until("the first copies", || !booking.asked().is_empty());
    let first = holder(&club);
    club.config.booking.booking_url = Some(booking.address.parse().unwrap());
    club.config.booking.booking_token = Some("second".parse().unwrap());
    club.config.booking.booking_interval = Duration::from_millis(200);
    let second = club.start_another();
    booking.until_asked(5);
    assert!(booking.asked().iter().all(|token| token == "first"), "{:?}", booking.asked());
    drop(killed);
    until("the second copies", || booking.asked().last().unwrap() == "second");
    assert_ne!(holder(&club), first);
    assert_eq!(each(&club.by(ALICE).at(second).get(EVENTS).expect(200).json(), "name"), ["one"]);
}

#[rstest]
fn whoever_lost_the_lease_writes_nothing(#[values(Sqlite, Postgres)] backend: Backend) {
    let booking = False::start(Manner::json(&json!([answered(DbUuid::new(), "one", &[BOB])])));
    let club = start(backend, &options(&booking.address, "t"));
    until("it is copied", || names(&club).len() == 1);
    // Somebody else has it, for long.
    let other = (
        leases::holder.eq(DbUuid::new()),
        leases::expires_at.eq(DbTimestamp(club.clock.now().plus(chrono::TimeDelta::hours(1)))),
    );
    diesel::update(leases::table).set(other).execute(&mut club.connect()).unwrap();
    booking.now(Manner::json(&json!([])));
    let mut asked = 0;
    until("it asks no more", || {
        let before = std::mem::replace(&mut asked, booking.asked().len());
        let _ = age(&club);
        before == asked && age(&club).unwrap() > 0.5
    });
    assert_eq!(names(&club), ["one"]);
    // Expired, it is taken again.
    club.clock.advance(chrono::TimeDelta::hours(2));
    until("it is taken again", || names(&club).is_empty());
}

/// The real program beside a club, killed in the end.
struct Killed(Child);

impl Killed {
    fn start(club: &Club, options: &[String]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_portfolio-service"));
        command.env_clear().args(["--bind", "127.0.0.1:0", "--workers", "1", "--database-url", club.url()]);
        Self(command.args(options).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

//! The copy of the events of the real booking-service and of a fake one.

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;
use std::{
    process::{Child, Command, Stdio},
    time::Duration,
};

use diesel::prelude::*;
use portfolio_service::schema::{copies, events};
use serde_json::{Value, json};
use service_kit::database::schema::leases;
use service_kit::database::types::{DbTimestamp, DbUuid};

use crate::{
    booking::{Behavior, Booking, FakeBooking, calm_options, changed_event, deleted_event, event_json, options, until},
    builders::each,
    harness::{ALICE, BOB, CAROL, Club, id},
};

const EVENTS: &str = "/api/v1/events";

pub fn start(backend: Backend, options: &[String]) -> Club {
    Club::start_with(backend, &options.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The names of all events, as an admin sees them.
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

/// Waits for an update of the copy that begins after this call.
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
fn the_events_of_the_real_booking_service_are_copied(#[values(Sqlite, Postgres)] backend: Backend) {
    let mut booking = Booking::start();
    let first = booking.declare("Rust evening", &[BOB, CAROL]);
    let second = booking.declare("Go evening", &[BOB]);
    // They overlap in S516, which is allowed because it has no verified room.
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
    // A new event is anonymous.
    assert_eq!(club.anonymous().get(&format!("{EVENTS}/{first}")).expect(200).json()["hostname"], json!([]));
    let set = |event: &str, level: i16| {
        club.by(BOB).patch(&format!("{EVENTS}/{event}"), json!({ "level": level })).expect(204);
    };
    set(&first, 1);
    set(&second, 2);

    // A changed event keeps its level.
    booking.change(&first, "Zig evening", "S517", &[BOB]);
    until("the change is copied", || detail(&club, &first)["name"] == "Zig evening");
    let shown = detail(&club, &first);
    assert_eq!(
        (&shown["place"], &shown["level"], &shown["hostname"]),
        (&json!("S517"), &json!(1), &json!([user(BOB)]))
    );
    assert_eq!(club.anonymous().get(EVENTS).json().as_array().unwrap().len(), 1);

    // One event is deleted, and another is created.
    booking.delete(&second);
    let third = booking.declare("C evening", &[BOB]);
    until("the new one is copied, and the deleted one gone", || {
        let mut found = names(&club);
        found.sort();
        found == ["C evening", "Zig evening"]
    });
    club.by(BOB).get(&format!("{EVENTS}/{second}")).refused(404, "not-found");
    club.by(BOB).patch(&format!("{EVENTS}/{third}"), json!({"level": 2})).expect(204);

    // While the booking-service is unreachable, the copy is served and its age grows.
    booking.stop();
    until("the copy is old", || age(&club).unwrap() > 0.3);
    let before = club.by(ALICE).get(EVENTS).text();
    assert_eq!(names(&club).len(), 2);
    club.by(BOB).patch(&format!("{EVENTS}/{third}"), json!({"level": 1})).expect(204);
    club.by(BOB).patch(&format!("{EVENTS}/{third}"), json!({"level": 2})).expect(204);
    let metrics = club.anonymous().get("/metrics").text();
    let line = metrics.lines().find(|line| line.starts_with("copy_age_seconds{what=\"events\"} ")).unwrap();
    assert!(line.rsplit(' ').next().unwrap().parse::<f64>().unwrap() > 0.3, "{line}");

    // A restart of this service while the booking-service is down changes nothing.
    club.restart();
    assert_eq!(club.by(ALICE).get(EVENTS).text(), before);
    until("the age is known again", || age(&club).is_some());

    // The booking-service runs again.
    booking.resume();
    until_copied(&club);
    assert_eq!(club.by(ALICE).get(EVENTS).text(), before);
    let fourth = booking.declare("D evening", &[CAROL, BOB]);
    until("the new one is copied", || names(&club).len() == 3);
    assert_eq!(["level"; 3].map(|level| detail(&club, &third)[level].clone()), [2, 2, 2].map(Value::from));
    assert_eq!((&detail(&club, &first)["level"], &detail(&club, &fourth)["level"]), (&json!(1), &json!(0)));
}

#[rstest]
fn without_a_booking_service_the_copy_is_deleted_and_levels_stay(#[values(Sqlite, Postgres)] backend: Backend) {
    let event = DbUuid::new();
    let booking = FakeBooking::start(Behavior::json(&json!([event_json(event, "one", &[BOB])])));
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
fn invalid_answers_change_nothing(#[values(Sqlite, Postgres)] backend: Backend) {
    let events = [DbUuid::new(), DbUuid::new()];
    let whole = json!([event_json(events[0], "one", &[BOB]), event_json(events[1], "two", &[CAROL])]);
    let booking = FakeBooking::start(Behavior::json(&whole));
    let club = start(backend, &options(&booking.address, "t"));
    until("both are copied", || names(&club).len() == 2);
    club.by(BOB).patch(&format!("{EVENTS}/{}", events[0]), json!({"level": 1})).expect(204);
    let before = [None, Some(events[0]), Some(events[1])].map(|event| {
        let path = event.map_or_else(|| EVENTS.to_owned(), |event| format!("{EVENTS}/{event}"));
        (path.clone(), club.by(ALICE).get(&path).expect(200).text())
    });
    let Behavior::Answer(good) = Behavior::json(&whole) else { unreachable!() };
    let twice = json!([event_json(events[0], "x", &[]), event_json(events[0], "y", &[])]);
    let garbage = [
        Behavior::Answer(b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 2\r\n\r\n[]".to_vec()),
        Behavior::Answer(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n<p>oops</".to_vec()),
        Behavior::Answer(b"HTTP/1.1 302 Found\r\nLocation: /api/version\r\nContent-Length: 2\r\n\r\n[]".to_vec()),
        Behavior::Answer(good[..good.len() - 1].to_vec()),
        Behavior::Answer(good[..good.len() / 2].to_vec()),
        Behavior::Answer(Vec::new()),
        Behavior::json(&json!({})),
        Behavior::json(&json!([{}])),
        Behavior::json(&json!([event_json(events[0], "changed", &[BOB]), {"eventId": events[1]}])),
        Behavior::json(&json!([event_json(events[0], "nul \0", &[BOB])])),
        Behavior::json(&twice),
    ];
    for answer in garbage {
        booking.set_behavior(answer.clone());
        // The third request follows after the second answer was processed.
        booking.wait_for_requests(3);
        for (path, text) in &before {
            assert_eq!(club.by(ALICE).get(path).expect(200).text(), *text, "{answer:?}");
        }
        club.anonymous().get("/readyz").expect(200);
    }
    booking.set_behavior(Behavior::json(&json!([event_json(events[0], "changed", &[BOB])])));
    until("the good answer is copied", || names(&club) == ["changed"]);
    assert_eq!(detail(&club, &events[0].to_string())["level"], 1);
    // An event that is deleted and created again keeps its level.
    booking.set_behavior(Behavior::json(&json!([])));
    until("all are deleted", || names(&club).is_empty());
    booking.set_behavior(Behavior::json(&whole));
    until("all are back", || names(&club).len() == 2);
    assert_eq!(detail(&club, &events[0].to_string())["level"], 1);
}

/// The bounds keep a faulty booking-service from filling the memory. The pages before are copied, and the rest once it is
/// sound.
#[rstest]
fn a_page_that_is_too_long_is_refused(#[values(Sqlite, Postgres)] backend: Backend) {
    let event = |name: &str| changed_event(event_json(DbUuid::new(), name, &[BOB]), "2026-02-01T09:00:00Z");
    let events: Vec<_> = (0..201).map(|n| event(&format!("event {n:03}"))).collect();
    let with = |description: &str, length: usize| {
        let mut event = event("long");
        event["description"] = json!(description.repeat(length));
        event
    };
    let long_event = json!([events[200], with("x", 30_000_000)]);
    // Each of its 430 events is as long as the contract allows: 40 kB. In all, 16 MiB are kept.
    let long_list = json!((0..430).map(|_| with("\u{20bb7}", 10_000)).collect::<Vec<_>>());
    for (page, cause) in [(long_event, "a long event"), (long_list, "a long list")] {
        let page = Behavior::page(&page, "");
        let booking = FakeBooking::start(Behavior::Pages(events.clone(), Some((200, page))));
        let club = start(backend, &calm_options(&booking.address, "t"));
        until("the first page is copied", || names(&club).len() == 200);
        let failures = || {
            let metrics = club.anonymous().get("/metrics").text();
            let line = metrics.lines().find_map(|line| line.strip_prefix("copy_failures_total{what=\"events\"} "));
            line.unwrap().parse::<u32>().unwrap()
        };
        let before = failures();
        until(&format!("it is refused again: {cause}"), || failures() > before);
        let found = names(&club);
        assert!(found.len() == 200 && found.iter().all(|name| name.starts_with("event ")), "{cause}: {found:?}");
        booking.set_behavior(Behavior::Pages(events.clone(), None));
        until("the rest is copied", || names(&club).len() == 201);
    }
}

#[rstest]
fn one_short_list_changes_nothing(#[values(Sqlite, Postgres)] backend: Backend) {
    let events: Vec<_> = ["one", "three", "two"].map(|name| event_json(DbUuid::new(), name, &[BOB])).into();
    let complete = Behavior::json(&json!(events));
    let booking = FakeBooking::start(complete.clone());
    let club = start(backend, &calm_options(&booking.address, "t"));
    until("all are copied", || names(&club).len() == 3);
    let failures = || {
        let metrics = club.anonymous().get("/metrics").text();
        let line = metrics.lines().find_map(|line| line.strip_prefix("copy_failures_total{what=\"events\"} "));
        line.unwrap().parse::<u32>().unwrap()
    };
    for short in [json!([]), json!(events[..1])] {
        let before = failures();
        booking.set_behavior(Behavior::Once(short, Box::new(complete.clone())));
        until("the short list is refused", || failures() == before + 1);
        // The next list is used, and the suspicion is dropped.
        booking.wait_for_requests(2);
        assert_eq!(names(&club).len(), 3);
        assert_eq!(failures(), before + 1);
    }
    // A third of them is deleted at once, and all of them after two such lists.
    booking.set_behavior(Behavior::json(&json!(events[..2])));
    let before = failures();
    until("one is deleted", || names(&club).len() == 2);
    assert_eq!(failures(), before);
    booking.set_behavior(Behavior::json(&json!([])));
    until("all are deleted", || names(&club).is_empty());
    assert_eq!(failures(), before + 1);
}

#[rstest]
fn changes_are_requested_and_after_an_hour_all_events(#[values(Sqlite, Postgres)] backend: Backend) {
    let event = |name: &str, at: &str| changed_event(event_json(DbUuid::new(), name, &[BOB]), at);
    let (one, two) = (event("one", "2026-02-01T09:00:00Z"), event("two", "2026-03-01T09:00:00Z"));
    let booking = FakeBooking::start(Behavior::List(vec![one.clone(), two.clone()]));
    let club = start(backend, &options(&booking.address, "t"));
    let is_there = |expected: &[&str]| {
        until(&format!("{expected:?} are there"), || {
            let mut found = names(&club);
            found.sort();
            found == expected
        });
    };
    is_there(&["one", "two"]);

    // A change, and a new event.
    let mut three = changed_event(one, "2026-03-01T10:00:00Z");
    three["name"] = "three".into();
    booking.set_behavior(Behavior::List(vec![three.clone(), two.clone(), event("four", "2026-03-01T09:30:00Z")]));
    is_there(&["four", "three", "two"]);
    // A deleted event is listed as deleted. Events that are not listed stay.
    let gone = deleted_event(three, "2026-03-01T11:00:00Z");
    booking.set_behavior(Behavior::List(vec![gone.clone(), two.clone()]));
    is_there(&["four", "two"]);
    // A change that is listed late, with an earlier time.
    let late = event("late", "2026-03-01T10:56:00Z");
    booking.set_behavior(Behavior::List(vec![gone.clone(), two.clone(), late.clone()]));
    is_there(&["four", "late", "two"]);
    let requests = booking.requests();
    assert!(requests[0].since.is_none() && requests[1..].iter().all(|request| request.since.is_some()), "{requests:?}");

    // A deletion that is not listed any more takes effect when all events are requested again.
    booking.set_behavior(Behavior::List(vec![gone, two.clone(), late.clone()]));
    booking.wait_for_requests(3);
    is_there(&["four", "late", "two"]);
    club.clock.advance(chrono::TimeDelta::minutes(61));
    is_there(&["late", "two"]);

    // After an invalid answer, all events are requested again.
    booking.set_behavior(Behavior::json(&json!({})));
    booking.wait_for_requests(2);
    booking.set_behavior(Behavior::List(vec![two.clone()]));
    is_there(&["two"]);

    // A replica without a booking-service deletes the copy.
    booking.wait_for_requests(3);
    let conn = &mut club.connect();
    diesel::delete(events::table).execute(conn).unwrap();
    diesel::delete(copies::table).execute(conn).unwrap();
    is_there(&["two"]);
}

#[rstest]
fn a_clock_that_was_wrong_hides_no_event_for_long(#[values(Sqlite, Postgres)] backend: Backend) {
    let day = chrono::TimeDelta::days(1);
    let club_with = |booking: &FakeBooking| start(backend, &options(&booking.address, "t"));
    let booking = FakeBooking::start(Behavior::List(Vec::new()));
    let club = club_with(&booking);
    let now = club.clock.now();
    let event = |name: &str, at: common::time::Timestamp| {
        changed_event(event_json(DbUuid::new(), name, &[BOB]), &at.to_string())
    };
    let mut events = vec![event("before", now)];
    let mut is_copied = |new: Value| {
        let name = new["name"].as_str().unwrap().to_owned();
        events.push(new);
        booking.set_behavior(Behavior::List(events.clone()));
        booking.wait_for_requests(3);
        names(&club).contains(&name)
    };
    assert!(is_copied(event("now", now)));
    // The clock of the booking-service is a day ahead for a moment.
    assert!(is_copied(event("ahead", now.plus(day))));
    assert!(is_copied(event("after", now.plus(chrono::TimeDelta::seconds(1)))));
    // Now it is a day behind: the event is found within an hour.
    assert!(!is_copied(event("behind", now.plus(-day))));
    club.clock.advance(chrono::TimeDelta::minutes(61));
    until("the hourly comparison finds it", || names(&club).contains(&"behind".to_owned()));
    // Both clocks are a day, then half an hour ahead, and are set back.
    for ahead in [day, chrono::TimeDelta::minutes(30)] {
        club.clock.advance(ahead);
        let there = club.clock.now();
        assert!(is_copied(event("there", there)));
        club.clock.advance(-ahead);
        let back = format!("back from {ahead}");
        assert!(is_copied(event(&back, club.clock.now())), "{back}");
    }
}

#[rstest]
fn a_restored_booking_service_is_copied_again(#[values(Sqlite, Postgres)] backend: Backend) {
    let event = |name: &str, at| changed_event(event_json(DbUuid::new(), name, &[BOB]), at);
    let (one, two) = (event("one", "2026-02-01T09:00:00Z"), event("two", "2026-03-01T09:00:00Z"));
    let mut since = changed_event(one.clone(), "2026-04-01T09:00:00Z");
    since["name"] = "changed".into();
    let booking = FakeBooking::start(Behavior::List(vec![since, two]));
    let club = start(backend, &options(&booking.address, "t"));
    until("both are copied", || names(&club).len() == 2);
    booking.wait_for_requests(2);
    // As restored from a backup, it lists no change.
    booking.set_behavior(Behavior::List(vec![one]));
    until("it is as it was", || names(&club) == ["one"]);
    let before = booking.requests().len();
    booking.wait_for_requests(3);
    let requests = booking.requests();
    assert!(requests[before + 1..].iter().all(|request| request.since.is_some()), "{requests:?}");
}

#[rstest]
fn a_restored_booking_service_with_new_changes_is_copied_again(#[values(Sqlite, Postgres)] backend: Backend) {
    let event = |name: &str, at| changed_event(event_json(DbUuid::new(), name, &[BOB]), at);
    let (one, lost) = (event("one", "2026-02-01T09:00:00Z"), event("lost", "2026-03-01T09:00:00Z"));
    let booking = FakeBooking::start(Behavior::List(vec![one.clone(), lost]));
    let club = start(backend, &options(&booking.address, "t"));
    until("both are copied", || names(&club).len() == 2);
    booking.wait_for_requests(2);
    // The restored booking-service already has a new event.
    booking.set_behavior(Behavior::List(vec![one, event("new", "2026-03-01T09:01:00Z")]));
    until("it is as it was, and what is new is there", || {
        let mut found = names(&club);
        found.sort();
        found == ["new", "one"]
    });
}

#[rstest]
fn a_booking_service_without_updated_since_is_always_read_completely(#[values(Sqlite, Postgres)] backend: Backend) {
    let event = |name: &str| changed_event(event_json(DbUuid::new(), name, &[BOB]), "2026-03-01T09:00:00Z");
    let (one, mut two) = (event("one"), changed_event(event("two"), "2026-02-01T09:00:00Z"));
    let booking = FakeBooking::start(Behavior::json(&json!([one, two])));
    let club = start(backend, &options(&booking.address, "t"));
    until("both are copied", || names(&club).len() == 2);
    until("it is asked for changes", || booking.requests().iter().any(|request| request.since.is_some()));
    booking.wait_for_requests(2);
    two["name"] = "changed".into();
    booking.set_behavior(Behavior::json(&json!([two])));
    until("one is changed, and one gone", || names(&club) == ["changed"]);
    booking.set_behavior(Behavior::json(&json!([])));
    until("all are deleted", || names(&club).is_empty());
    assert_eq!(booking.requests().iter().filter(|request| request.since.is_some()).count(), 1);
}

#[rstest]
fn reads_are_fast_while_the_booking_service_is_slow(#[values(Sqlite, Postgres)] backend: Backend) {
    let booking = FakeBooking::start(Behavior::json(&json!([event_json(DbUuid::new(), "one", &[BOB])])));
    let club = start(backend, &options(&booking.address, "t"));
    until("it is copied", || names(&club).len() == 1);
    booking.set_behavior(Behavior::Stall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n[".to_vec()));
    booking.wait_for_requests(1);
    // The other service does not answer meanwhile, so what waited for it would be refused.
    for _ in 0..50 {
        assert_eq!(names(&club), ["one"]);
        club.anonymous().get("/readyz?verbose").expect(200);
    }
    // The lease is extended meanwhile.
    let expires_at = || leases::table.select(leases::expires_at).first::<DbTimestamp>(&mut club.connect()).unwrap();
    let before = expires_at();
    until("the lease is kept", || expires_at() > before);
}

#[rstest]
fn one_of_two_replicas_copies(#[values(Sqlite, Postgres)] backend: Backend) {
    let booking = FakeBooking::start(Behavior::json(&json!([event_json(DbUuid::new(), "one", &[BOB])])));
    let mut club = start(backend, &calm_options(&booking.address, "first"));
    until("the first copies", || !booking.tokens().is_empty());
    let first = holder(&club);
    club.config.booking.booking_token = Some("second".parse().unwrap());
    let second = club.start_another();
    // The second replica reads the age of the copy from the database.
    let age = || {
        let report = club.by(ALICE).at(second).get("/readyz?verbose").expect(200).json();
        report["copies"]["events"]["ageSeconds"].as_f64()
    };
    until("the second looks on", || age().is_some());
    booking.wait_for_requests(5);
    assert_eq!(holder(&club), first);
    assert!(booking.tokens().iter().all(|token| token == "first"), "{:?}", booking.tokens());
    assert_eq!(each(&club.by(ALICE).at(second).get(EVENTS).expect(200).json(), "name"), ["one"]);
    // When the first one stops, it gives the lease back.
    club.stop(0);
    until("the second copies", || booking.tokens().last().unwrap() == "second");
    assert_ne!(holder(&club), first);
    booking.set_behavior(Behavior::json(&json!([event_json(DbUuid::new(), "two", &[BOB])])));
    until("what is new is copied", || {
        each(&club.by(ALICE).at(second).get(EVENTS).expect(200).json(), "name") == ["two"]
    });
}

#[rstest]
fn a_draining_replica_does_not_take_the_lease_again(#[values(Sqlite, Postgres)] backend: Backend) {
    let booking = FakeBooking::start(Behavior::json(&json!([event_json(DbUuid::new(), "one", &[BOB])])));
    let mut club =
        start(backend, &[&options(&booking.address, "t")[..], &["--drain-delay".into(), "1".into()]].concat());
    until("it is copied", || names(&club).len() == 1);
    booking.set_behavior(Behavior::Stall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n[".to_vec()));
    booking.wait_for_requests(1);
    assert!(holder(&club).is_some());
    // Its request still waits. It would extend the lease if it still held it.
    club.stop(0);
    assert_eq!(holder(&club), None);
}

#[rstest]
fn another_replica_takes_over_from_a_killed_one(#[values(Sqlite, Postgres)] backend: Backend) {
    let booking = FakeBooking::start(Behavior::json(&json!([event_json(DbUuid::new(), "one", &[BOB])])));
    let mut club = start(backend, &[]);
    let killed = Killed::start(&club, &calm_options(&booking.address, "first"));
    until("the first copies", || !booking.tokens().is_empty());
    let first = holder(&club);
    club.config.booking.booking_url = Some(booking.address.parse().unwrap());
    club.config.booking.booking_token = Some("second".parse().unwrap());
    club.config.booking.booking_interval = Duration::from_millis(200);
    let second = club.start_another();
    booking.wait_for_requests(5);
    assert!(booking.tokens().iter().all(|token| token == "first"), "{:?}", booking.tokens());
    drop(killed);
    until("the second copies", || booking.tokens().last().unwrap() == "second");
    assert_ne!(holder(&club), first);
    assert_eq!(each(&club.by(ALICE).at(second).get(EVENTS).expect(200).json(), "name"), ["one"]);
}

#[rstest]
fn a_replica_that_has_lost_the_lease_writes_nothing(#[values(Sqlite, Postgres)] backend: Backend) {
    let booking = FakeBooking::start(Behavior::json(&json!([event_json(DbUuid::new(), "one", &[BOB])])));
    let club = start(backend, &options(&booking.address, "t"));
    until("it is copied", || names(&club).len() == 1);
    // Another holder has it for some minutes.
    let other = (
        leases::holder.eq(DbUuid::new()),
        leases::expires_at.eq(DbTimestamp(club.clock.now().plus(chrono::TimeDelta::minutes(4)))),
    );
    diesel::update(leases::table).set(other).execute(&mut club.connect()).unwrap();
    booking.set_behavior(Behavior::json(&json!([])));
    let mut count = 0;
    until("it asks no more", || {
        let before = std::mem::replace(&mut count, booking.tokens().len());
        let _ = age(&club);
        before == count && age(&club).unwrap() > 0.5
    });
    assert_eq!(names(&club), ["one"]);
    // After it expires, it is taken again.
    club.clock.advance(chrono::TimeDelta::minutes(5));
    until("it is taken again", || names(&club).is_empty());
}

#[rstest]
fn a_lease_of_a_clock_that_was_ahead_is_taken_over(#[values(Sqlite, Postgres)] backend: Backend) {
    let booking = FakeBooking::start(Behavior::json(&json!([event_json(DbUuid::new(), "one", &[BOB])])));
    let mut club = start(backend, &options(&booking.address, "t"));
    until("it is copied", || names(&club).len() == 1);
    club.stop(0);
    let a_day_ahead = DbTimestamp(club.clock.now().plus(chrono::TimeDelta::days(1)));
    let other = (leases::task.eq("events"), leases::holder.eq(DbUuid::new()), leases::expires_at.eq(a_day_ahead));
    let conn = &mut club.connect();
    diesel::delete(leases::table).execute(conn).unwrap();
    diesel::insert_into(leases::table).values(other).execute(conn).unwrap();
    diesel::update(copies::table).set(copies::copied_at.eq(a_day_ahead)).execute(conn).unwrap();
    booking.set_behavior(Behavior::json(&json!([])));
    club.start_another();
    booking.wait_for_requests(2);
}

/// The real program, on the database of a club. It is killed in the end.
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

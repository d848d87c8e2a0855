//! Events: what each caller sees. The tests of the copy are in `event_copy`.

use crate::harness::Backend::{self, Postgres, Sqlite};
use diesel::prelude::*;
use portfolio_service::{
    auth::Caller,
    events::queries,
    schema::{event_hosts, event_levels, events},
};
use rstest::rstest;
use serde_json::{Value, json};
use service_kit::{
    database::types::{DbTimestamp, DbUuid},
    history::{Author, By},
};

use crate::{
    builders::{NOBODY, each},
    harness::{ALICE, BOB, CAROL, Club, DAVE, DORA, SUSAN, id, real_name},
    objects::Objects,
    plans,
};

const EVENTS: &str = "/api/v1/events";

/// Inserts an event as the copy does, and returns its id.
pub fn plant(club: &Club, name: &str, since: &str, hosts: &[&str], level: Option<i16>) -> String {
    let (conn, id, since) = (&mut club.connect(), DbUuid::new(), DbTimestamp(since.parse().unwrap()));
    let until = DbTimestamp(since.plus(chrono::TimeDelta::hours(2)));
    diesel::insert_into(events::table)
        .values((
            (events::id.eq(id), events::name.eq(name), events::since.eq(since), events::until.eq(until)),
            (events::description.eq(format!("about {name}")), events::place.eq(format!("place of {name}"))),
            events::updated_at.eq(since),
        ))
        .execute(conn)
        .unwrap();
    for host in hosts {
        let row = (event_hosts::event_id.eq(id), event_hosts::user_id.eq(crate::harness::id(host)));
        diesel::insert_into(event_hosts::table).values(row).execute(conn).unwrap();
    }
    if let Some(level) = level {
        let row = (event_levels::event_id.eq(id), event_levels::level.eq(level));
        diesel::insert_into(event_levels::table).values(row).execute(conn).unwrap();
    }
    id.to_string()
}

const DAY: &str = "2026-04-04T09:00:00Z";

fn user(name: &str) -> Value {
    json!({"id": id(name), "name": name, "realName": ""})
}

fn names(club: &Club, who: Option<&str>, path: &str) -> Vec<String> {
    let client = who.map_or_else(|| club.anonymous(), |who| club.by(who));
    each(&client.get(path).expect(200).json(), "name")
}

#[rstest]
fn without_a_booking_service_there_are_none(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    assert_eq!(club.anonymous().get(EVENTS).expect(200).json(), json!([]));
    assert_eq!(club.by(ALICE).get(&format!("/api/v1/users/{}/events", id(BOB))).expect(200).json(), json!([]));
    assert_eq!(club.anonymous().get("/readyz?verbose").expect(200).json(), json!({"status": "ready", "copies": {}}));
    assert!(!club.anonymous().get("/metrics").text().contains("copy_age_seconds{"));
}

#[rstest]
fn a_public_event_is_shown_with_its_hosts(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    // One host is not a user of this service yet.
    let event = plant(&club, "open day", DAY, &[CAROL, BOB, "newcomer"], Some(1));
    let listed = json!({
        "id": event, "name": "open day", "level": 1,
        "duration": {"since": "2026-04-04T09:00:00Z", "until": "2026-04-04T11:00:00Z"},
    });
    let mut detail = listed.clone();
    detail["description"] = json!("about open day");
    detail["place"] = json!("place of open day");
    detail["hostname"] = json!([user(BOB), user(CAROL)]);
    assert_eq!(club.anonymous().get(EVENTS).expect(200).json(), json!([listed]));
    assert_eq!(club.anonymous().get(&format!("{EVENTS}/{event}")).expect(200).json(), detail);
    for host in [BOB, CAROL] {
        let of_user = format!("/api/v1/users/{}/events", id(host));
        assert_eq!(club.anonymous().get(&of_user).expect(200).json(), json!([listed]));
    }
    assert_eq!(names(&club, None, &format!("/api/v1/users/{}/events", id(DAVE))), [""; 0]);
}

#[rstest]
fn lists_are_ordered_by_start_then_by_id(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut expected: Vec<_> =
        ["2026-04-04T09:00:00Z", "2025-01-01T00:00:00Z", "2026-04-04T09:00:00Z", "1960-01-01T00:00:00Z"]
            .map(|since| (since, plant(&club, "x", since, &[BOB], Some(1))))
            .into();
    expected.sort();
    let ids = |path: &str| each(&club.anonymous().get(path).expect(200).json(), "id");
    let expected: Vec<_> = expected.into_iter().map(|(_, id)| id).collect();
    let of_bob = format!("/api/v1/users/{}/events", id(BOB));
    for path in [EVENTS, &of_bob] {
        assert_eq!(ids(path), expected);
        assert_eq!(ids(&format!("{path}?limit=3")), expected[..3]);
        for bad in ["0", "1001", "x"] {
            assert_eq!(club.anonymous().get(&format!("{path}?limit={bad}")).expect(400).pointers(), ["limit"]);
        }
    }
}

#[rstest]
fn the_level_decides_who_sees_an_event_and_its_hosts(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let levels = [("unset", None), ("anonymous", Some(0)), ("public", Some(1)), ("private", Some(2))];
    let events = levels.map(|(name, level)| (name, plant(&club, name, DAY, &[BOB, CAROL, SUSAN], level)));
    let of_bob = format!("/api/v1/users/{}/events", id(BOB));
    let all = ["unset", "anonymous", "public", "private"];
    let hosts = json!([user(BOB), user(CAROL), user(SUSAN)]);
    // A suspended host sees what an anonymous caller sees.
    for who in [None, Some(DAVE), Some(SUSAN), Some("stranger")] {
        assert_eq!(names(&club, who, EVENTS), all[..3], "{who:?}");
        assert_eq!(names(&club, who, &of_bob), ["public"], "{who:?}");
        let client = who.map_or_else(|| club.anonymous(), |who| club.by(who));
        for (name, event) in &events {
            let answer = client.get(&format!("{EVENTS}/{event}"));
            match *name {
                "private" => {
                    answer.refused(404, "not-found");
                }
                "public" => assert_eq!(answer.expect(200).json()["hostname"], hosts),
                _ => {
                    let shown = answer.expect(200).json();
                    assert_eq!((&shown["hostname"], &shown["level"]), (&json!([]), &json!(0)), "{who:?} {name}");
                }
            }
        }
    }
    for who in [BOB, CAROL, ALICE] {
        assert_eq!(names(&club, Some(who), EVENTS), all, "{who}");
        assert_eq!(names(&club, Some(who), &of_bob), all, "{who}");
        for (_, event) in &events {
            let detail = club.by(who).get(&format!("{EVENTS}/{event}")).expect(200).json();
            assert_eq!(detail["hostname"], hosts);
        }
    }
    // A hidden event does not count for the limit of a list.
    plant(&club, "hidden", "1990-01-01T00:00:00Z", &[ALICE], Some(2));
    assert_eq!(names(&club, None, &format!("{EVENTS}?limit=1")), ["unset"]);
    assert_eq!(names(&club, Some(CAROL), &format!("{of_bob}?limit=2")), ["unset", "anonymous"]);
}

#[rstest]
fn hosts_and_admins_set_the_level(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let event = plant(&club, "meeting", DAY, &[BOB, SUSAN], None);
    let path = format!("{EVENTS}/{event}");
    let level = || club.by(ALICE).get(&path).expect(200).json()["level"].clone();
    for (who, value) in [(BOB, 1), (ALICE, 0), (BOB, 0), (ALICE, 1), (BOB, 2)] {
        assert!(club.by(who).patch(&path, json!({"level": value})).expect(204).body.is_empty());
        assert_eq!(level(), value);
        club.by(who).patch(&path, json!({})).expect(204);
        assert_eq!(level(), value);
    }
    // The event is private now, so others get 404.
    club.by(CAROL).patch(&path, json!({"level": 1})).refused(404, "not-found");
    club.by(ALICE).patch(&path, json!({"level": 0})).expect(204);
    let problem = club.by(CAROL).patch(&path, json!({"level": 1})).refused(403, "forbidden");
    assert_eq!(problem["detail"], "This needs a host of the event, or an admin.");
    club.by(SUSAN).patch(&path, json!({"level": 1})).refused(403, "account-inactive");
    club.by(DORA).patch(&path, json!({"level": 1})).refused(403, "account-inactive");
    club.by("stranger").patch(&path, json!({"level": 1})).refused(403, "forbidden");
    club.anonymous().patch(&path, json!({"level": 1})).refused(401, "not-signed-in");
    assert_eq!(level(), 0);
    for bad in [json!(3), json!(-1), json!("1"), json!(1.5), json!(true), json!([]), json!(99_999_999_999_i64)] {
        assert_eq!(club.by(BOB).patch(&path, json!({"level": bad})).expect(400).pointers(), ["/level"], "{bad}");
    }
    let nowhere = format!("{EVENTS}/{NOBODY}");
    for who in [BOB, ALICE] {
        club.by(who).patch(&nowhere, json!({"level": 1})).refused(404, "not-found");
        club.by(who).get(&nowhere).refused(404, "not-found");
    }
    assert_eq!(club.anonymous().get(&format!("{EVENTS}/x")).expect(400).pointers(), ["eventId"]);
    assert_eq!(club.by(BOB).patch(&format!("{EVENTS}/x"), json!({})).expect(400).pointers(), ["eventId"]);
    club.anonymous().get(&format!("/api/v1/users/{NOBODY}/events")).refused(404, "not-found");
    assert_eq!(club.anonymous().get("/api/v1/users/x/events").expect(400).pointers(), ["userId"]);
}

#[rstest]
fn one_of_two_concurrent_levels_remains(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for round in 0..40 {
        let event = plant(&club, &format!("e{round}"), DAY, &[BOB], None);
        let path = format!("{EVENTS}/{event}");
        std::thread::scope(|scope| {
            for level in [1, 2] {
                let (club, path) = (&club, &path);
                scope.spawn(move || club.by(BOB).patch(path, json!({ "level": level })).expect(204));
            }
        });
        let level = club.by(BOB).get(&path).expect(200).json()["level"].as_i64();
        assert!([Some(1), Some(2)].contains(&level), "{level:?}");
    }
}

#[rstest]
fn private_events_and_hidden_hosts_are_not_shown_to_others(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let private = plant(&club, "plot", DAY, &[BOB], Some(2));
    let anonymous = plant(&club, "seance", DAY, &[BOB], Some(0));
    let of_bob = format!("/api/v1/users/{}/events", id(BOB));
    for who in [None, Some(CAROL), Some(SUSAN), Some(DORA), Some("stranger")] {
        let client = who.map_or_else(|| club.anonymous(), |who| club.by(who));
        let paths = [EVENTS.to_owned(), of_bob.clone(), format!("{EVENTS}/{private}"), format!("{EVENTS}/{anonymous}")];
        let answers = paths.map(|path| client.get(&path).text()).join("\n");
        for secret in ["plot", &private, &id(BOB).to_string(), &real_name(BOB)] {
            assert!(!answers.contains(secret), "{who:?}: {secret} in {answers}");
        }
        assert!(!client.get(&of_bob).text().contains(&anonymous));
    }
}

#[rstest]
fn queries_use_indexes(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut objects = Objects::new();
    objects.grow(&club, 2);
    let author = Author::new(By::Proxy, DbTimestamp(club.clock.now()));
    let bob = Caller { id: id(BOB), admin: false, author: author.clone() };
    let other = Caller { id: id(CAROL), admin: false, author };
    let callers = [None, Some(&bob), Some(&Caller { admin: true, ..bob.clone() })];
    let at = DbTimestamp(club.clock.now());
    plans::check_page(&club, |conn| {
        for page in plans::pages((at, id(BOB))) {
            for caller in callers {
                queries::list(conn, caller, &page).unwrap();
            }
        }
    });
    plans::check(&club, |conn| {
        for caller in [None, Some(&other)] {
            for page in plans::pages((at, id(BOB))) {
                queries::of_user(conn, id(BOB), caller, &page).unwrap();
            }
            queries::get(conn, objects.first("eventId"), caller).unwrap();
        }
    });
}

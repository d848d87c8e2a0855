//! `GET /availability`: the free times that it finds can be booked, and none is missing.

use crate::harness::Backend::{self, Postgres, Sqlite};
use booking_service::{
    availability::queries::{self, People},
    rooms::queries::Selection,
};
use chrono::{DateTime, TimeDelta, Utc};
use common::time::Timestamp;
use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, TestRunner},
};
use rstest::rstest;
use serde_json::{Value, json};
use service_kit::database::types::{DbTimestamp, DbUuid};

use crate::{
    builders::{
        At, EVERYONE, declare, declare_shared, each, event, event_body, group, merge, room, text, verified_room,
    },
    conditions::statements,
    harness::{ALICE, Answer, BOB, CAROL, Club, DAVE, hours_from_now, id},
    pages::walk,
    plans,
};

/// The path for a span, in hours from now.
fn path(club: &Club, (from, to): (i64, i64), rest: &str) -> String {
    let (from, to) = (hours_from_now(club, from), hours_from_now(club, to));
    format!("/api/availability?dateBegin={from}&dateEnd={to}{rest}")
}

fn search(club: &Club, hours: (i64, i64), rest: &str) -> Answer {
    club.by(BOB).get(&path(club, hours, rest))
}

/// Place, start and end in hours from now.
fn free_times(club: &Club, answer: &Value) -> Vec<(String, f64, f64)> {
    let now = hours_from_now(club, 0).utc();
    let hours = |at: &Value| {
        let at: DateTime<Utc> = at.as_str().unwrap().parse().unwrap();
        f64::from(i32::try_from((at - now).num_minutes()).unwrap()) / 60.0
    };
    let free_time = |item: &Value| (text(&item["place"]), hours(&item["timeStart"]), hours(&item["timeEnd"]));
    answer.as_array().unwrap().iter().map(free_time).collect()
}

fn find(club: &Club, hours: (i64, i64), rest: &str) -> Vec<(String, f64, f64)> {
    free_times(club, &search(club, hours, rest).expect(200).json())
}

fn free_time(place: &str, from: f64, to: f64) -> (String, f64, f64) {
    (place.to_owned(), from, to)
}

#[rstest]
fn free_times_that_are_long_enough_are_found(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let first = verified_room(&club, ALICE, "S516", (0, 9));
    verified_room(&club, ALICE, "S517", (3, 6));
    room(&club, ALICE, "Hall", (1, 4));
    event(&club, BOB, At::Room(&first), (2, 3));
    declare_shared(&club, BOB, At::Room(&first), (5, 7)).expect(201);
    let all = |rest: &str| find(&club, (-24, 24), rest);
    assert_eq!(
        all("&minutes=60"),
        [
            free_time("S516", 0.0, 2.0),
            free_time("S516", 3.0, 5.0),
            free_time("S517", 3.0, 6.0),
            free_time("S516", 7.0, 9.0)
        ]
    );
    assert_eq!(all("&minutes=121"), [free_time("S517", 3.0, 6.0)]);
    assert_eq!(all("&minutes=121&shared=true"), [free_time("S516", 3.0, 9.0), free_time("S517", 3.0, 6.0)]);
    assert_eq!(all("&minutes=181&onlyVerified=false"), []);
    assert_eq!(all("&minutes=180&onlyVerified=0"), [free_time("Hall", 1.0, 4.0), free_time("S517", 3.0, 6.0)]);
    // Clipped to the span.
    assert_eq!(
        find(&club, (1, 4), "&minutes=60"),
        [free_time("S516", 1.0, 2.0), free_time("S516", 3.0, 4.0), free_time("S517", 3.0, 4.0)]
    );
    assert_eq!(find(&club, (10, 24), "&minutes=15"), []);
    let answer = search(&club, (-24, 24), "&minutes=60").json();
    assert_eq!(answer[0]["roomId"], json!(first));
    assert!(answer[0].get("freeUsers").is_none() && answer[0].get("busyUsers").is_none());
    let pages = walk(&club.by(BOB), &path(&club, (-24, 24), "&minutes=60"), 1, || {});
    assert_eq!(json!(pages), answer);
}

#[rstest]
fn hours_of_the_day_are_those_of_the_club(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start_with(backend, &["--time-zone", "Europe/Berlin"]);
    // The day on which summer time begins, and the one after.
    let period = json!({"timeStart": "2030-03-30T23:00:00Z", "timeEnd": "2030-04-01T22:00:00Z"});
    let body = merge([period, json!({"place": "S516", "admins": [id(BOB)]})]);
    club.by(BOB).post("/api/rooms", body).expect(201);
    let find = |between: &str| {
        let span = "dateBegin=2030-03-31T00:00:00%2B01:00&dateEnd=2030-04-02T00:00:00%2B02:00";
        let path = format!("/api/availability?{span}&minutes=15&onlyVerified=false&between={between}");
        let list = club.by(BOB).get(&path).expect(200).json();
        list.as_array()
            .unwrap()
            .iter()
            .map(|item| (text(&item["timeStart"]), text(&item["timeEnd"])))
            .collect::<Vec<_>>()
    };
    let times = |start: &str, end: &str| (start.to_owned(), end.to_owned());
    assert_eq!(
        find("1:30-03:30"),
        [
            times("2030-03-31T01:30:00+01:00", "2030-03-31T03:30:00+02:00"),
            times("2030-04-01T01:30:00+02:00", "2030-04-01T03:30:00+02:00"),
        ]
    );
    // 02:30 does not exist on the first day.
    assert_eq!(find("2:30-3:15")[0], times("2030-03-31T03:00:00+02:00", "2030-03-31T03:15:00+02:00"));
    assert_eq!(
        find("22:00-01:00"),
        [
            times("2030-03-31T00:00:00+01:00", "2030-03-31T01:00:00+01:00"),
            times("2030-03-31T22:00:00+02:00", "2030-04-01T01:00:00+02:00"),
            times("2030-04-01T22:00:00+02:00", "2030-04-02T00:00:00+02:00"),
        ]
    );
}

#[rstest]
fn people_are_counted_and_not_named(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (few, empty) = (group(&club, ALICE, "few", &[BOB, CAROL]), group(&club, ALICE, "empty", &[]));
    verified_room(&club, ALICE, "S516", (0, 2));
    verified_room(&club, ALICE, "S517", (3, 5));
    let busy = |user: &str, place: &str, hours, schedule: &str| {
        let body = merge([event_body(&club, BOB, At::Place(place), hours), json!({"open": true})]);
        let event = text(&club.by(BOB).post("/api/events", body).expect(201).json()["eventId"]);
        club.by(user).put(&format!("/api/events/{event}/attendees/me"), json!({ "schedule": schedule })).expect(204);
        event
    };
    busy(CAROL, "x", (1, 4), "attendance");
    busy(CAROL, "y", (1, 2), "attendance");
    busy(BOB, "z", (0, 1), "absent");
    busy(BOB, "z", (2, 3), "attendance");
    let deleted = busy(BOB, "w", (0, 9), "attendance");
    club.by(BOB).delete(&format!("/api/events/{deleted}")).expect(204);
    let counts = |rest: &str| {
        let list = search(&club, (0, 24), &format!("&minutes=60{rest}")).expect(200).json();
        list.as_array()
            .unwrap()
            .iter()
            .map(|item| (item["freeUsers"].as_u64().unwrap(), item["busyUsers"].as_u64().unwrap()))
            .collect::<Vec<_>>()
    };
    assert_eq!(counts(&format!("&groupId={few}")), [(1, 1), (1, 1)]);
    assert_eq!(counts(&format!("&groupId={EVERYONE}")), [(3, 1), (3, 1)]);
    assert_eq!(counts(&format!("&groupId={empty}")), [(0, 0), (0, 0)]);
    let both = format!("{},{},{}", id(BOB), id(DAVE), id(BOB));
    assert_eq!(counts(&format!("&userIds={both}")), [(2, 0), (2, 0)]);
    // Bob is busy from 2 to 3. The new room is free from 2 on, so that its free time overlaps this.
    verified_room(&club, ALICE, "S518", (2, 6));
    assert_eq!(counts(&format!("&userIds={both}")), [(2, 0), (1, 1), (2, 0)]);
}

#[rstest]
fn invalid_parameters_are_refused(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let nobody = "0198c0de-0000-7000-8000-000000000099";
    let many: Vec<_> = (0..201).map(|n| format!("0198c0de-0000-7000-8000-{n:012}")).collect();
    for (hours, rest, parameter, code) in [
        ((0, 24), String::new(), "minutes", "required"),
        ((0, 24), "&minutes=14".to_owned(), "minutes", "range"),
        ((0, 24), "&minutes=1441".to_owned(), "minutes", "range"),
        ((0, 24), "&minutes=1e2".to_owned(), "minutes", "invalid"),
        ((24, 0), "&minutes=60".to_owned(), "dateEnd", "out-of-order"),
        ((0, 31 * 24 + 2), "&minutes=60".to_owned(), "dateEnd", "range"),
        ((0, 24), "&minutes=60&shared=x".to_owned(), "shared", "wrong-type"),
        ((0, 24), "&minutes=60&between=9:00".to_owned(), "between", "invalid"),
        ((0, 24), "&minutes=60&between=9:00-9:00".to_owned(), "between", "invalid"),
        ((0, 24), "&minutes=60&groupId=x".to_owned(), "groupId", "not-a-uuid"),
        ((0, 24), format!("&minutes=60&groupId={nobody}"), "groupId", "unknown-group"),
        ((0, 24), format!("&minutes=60&userIds={},x", id(BOB)), "userIds", "not-a-uuid"),
        ((0, 24), format!("&minutes=60&userIds={},{nobody}", id(BOB)), "userIds", "unknown-user"),
        ((0, 24), format!("&minutes=60&userIds={}", many.join(",")), "userIds", "length"),
        ((0, 24), format!("&minutes=60&userIds={}&groupId={EVERYONE}", id(BOB)), "userIds", "given-together"),
        ((0, 24), "&minutes=60&limit=0".to_owned(), "limit", "range"),
    ] {
        let problem = search(&club, hours, &rest).refused(400, "invalid-parameter");
        let violation = &problem["violations"][0];
        assert_eq!((&violation["parameter"], &violation["code"]), (&json!(parameter), &json!(code)), "{rest}");
    }
    let only_end = format!("/api/availability?minutes=60&dateEnd={}", hours_from_now(&club, 1));
    assert_eq!(
        club.by(BOB).get(&only_end).refused(400, "invalid-parameter")["violations"][0]["parameter"],
        "dateBegin"
    );
    assert_eq!(find(&club, (0, 31 * 24), "&minutes=1440"), []);
}

#[rstest]
fn the_search_takes_a_fixed_number_of_statements(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let count = |rest: &str| {
        let path = path(&club, (-1, 100), rest);
        let before = statements(&club);
        club.by(BOB).get(&path).expect(200);
        statements(&club) - before
    };
    let group = group(&club, ALICE, "few", &[BOB, CAROL]);
    let kinds =
        ["&minutes=15".to_owned(), format!("&minutes=15&groupId={group}"), format!("&minutes=15&userIds={}", id(BOB))];
    let first = verified_room(&club, ALICE, "S516", (0, 9));
    event(&club, BOB, At::Room(&first), (2, 3));
    let small = kinds.each_ref().map(|rest| count(rest));
    for n in 1..20 {
        let room = verified_room(&club, ALICE, &format!("S{n}"), (n, n + 3));
        event(&club, BOB, At::Room(&room), (n, n + 1));
    }
    assert_eq!(kinds.each_ref().map(|rest| count(rest)), small);
}

/// A room: the index of its place, its start and length in quarters of an hour, and whether it is verified.
type RoomCase = (usize, i64, i64, bool);

#[rstest]
fn free_times_are_exactly_the_times_that_can_be_booked(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let places = ["S516", "ｓ516", "Discord"];
    let rooms = vec((0_usize..3, 0..40_i64, 4..30_i64, any::<bool>()), 1..5);
    let events = vec((0_usize..3, 0..40_i64, 1..12_i64, any::<bool>()), 0..6);
    let probes = vec((0_usize..5, 0..60_i64, 1..12_i64), 8);
    let search = (0..20_i64, 1..40_i64, 1..9_i64, any::<bool>(), any::<bool>());
    let mut runner = TestRunner::new(Config { cases: 12, failure_persistence: None, ..Config::default() });
    // Each case uses its own day.
    let day = std::cell::Cell::new(0);
    let outcome = runner.run(&(rooms, events, probes, search), |(rooms, events, probes, search)| {
        day.set(day.get() + 1);
        let start = hours_from_now(&club, day.get() * 24);
        let at = |quarter: i64| start.plus(TimeDelta::minutes(15 * quarter));
        let times = |from: i64, length: i64| json!({"timeStart": at(from).to_string(), "timeEnd": at(from + length).to_string()});
        let mut room_ids: Vec<(String, RoomCase)> = Vec::new();
        for (place, from, length, verified) in rooms {
            let body = merge([times(from, length), json!({"place": places[place], "admins": [id(BOB)]})]);
            let room = text(&club.by(BOB).post("/api/rooms", body).expect(201).json()["roomId"]);
            // Refused if another verified room overlaps it.
            let verified =
                verified && club.by(ALICE).post(&format!("/api/rooms/{room}/verified"), json!({})).status == 204;
            room_ids.push((room, (place, from, length, verified)));
        }
        for (place, from, length, shared) in events {
            let body = event_body(&club, BOB, At::Place(places[place]), (1, 2));
            club.by(BOB).post("/api/events", merge([body, times(from, length), json!({ "sharedRoom": shared })]));
        }
        let (from, length, least, shared, only_verified) = search;
        let path = format!(
            "/api/availability?dateBegin={}&dateEnd={}&minutes={}&shared={shared}&onlyVerified={only_verified}",
            at(from), at(from + length), least * 15
        );
        let free_times = club.by(CAROL).get(&path).expect(200).json();
        let free_times = free_times.as_array().unwrap();
        let quarter = |value: &Value| {
            let at: Timestamp = value.as_str().unwrap().parse().unwrap();
            (at.micros() - start.micros()) / (15 * 60 * 1_000_000)
        };
        let can_book = |room: &str, from: i64, length: i64| {
            let body = event_body(&club, CAROL, At::Room(room), (1, 2));
            let body = merge([body, times(from, length), json!({ "sharedRoom": shared })]);
            club.by(CAROL).post("/api/events?dryRun=true", body).status == 200
        };
        // Every free time can be booked, and no longer time can.
        for free_time in free_times {
            let (begin, end) = (quarter(&free_time["timeStart"]), quarter(&free_time["timeEnd"]));
            let room = text(&free_time["roomId"]);
            prop_assert!(end - begin >= least && begin >= from && end <= from + length);
            prop_assert!(can_book(&room, begin, end - begin), "{}", free_time);
            prop_assert!(begin == from || !can_book(&room, begin - 1, end - begin + 1), "{}", free_time);
            prop_assert!(end == from + length || !can_book(&room, begin, end - begin + 1), "{}", free_time);
        }
        // Any span within the search that can be booked is part of a free time.
        for (room, begin, more) in probes {
            let Some((room, (.., verified))) = room_ids.get(room) else { continue };
            let size = least + more - 1;
            let is_within_search = begin >= from && begin + size <= from + length && (*verified || !only_verified);
            let is_free = free_times.iter().any(|free_time| {
                free_time["roomId"] == json!(room)
                    && quarter(&free_time["timeStart"]) <= begin
                    && begin + size <= quarter(&free_time["timeEnd"])
            });
            if is_within_search {
                prop_assert_eq!(is_free, can_book(room, begin, size), "{} {} {}", room, begin, size);
            } else {
                prop_assert!(!is_free);
            }
        }
        Ok(())
    });
    outcome.unwrap();
    assert_eq!(crate::double_booking::double_bookings(&club), []);
}

#[rstest]
fn a_booked_time_is_no_longer_free(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let room = verified_room(&club, ALICE, "S516", (0, 3));
    assert_eq!(each(&search(&club, (0, 9), "&minutes=180").json(), "roomId"), [&*room]);
    declare(&club, BOB, At::Room(&room), (0, 3)).expect(201);
    assert_eq!(search(&club, (0, 9), "&minutes=15").json(), json!([]));
}

#[rstest]
fn queries_use_indexes(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    event(&club, BOB, At::Room(&verified_room(&club, ALICE, "S516", (0, 9))), (1, 2));
    let at = |hours| DbTimestamp(hours_from_now(&club, hours));
    let group = DbUuid(group(&club, BOB, "few", &[BOB]).parse().unwrap());
    let everyone = DbUuid(EVERYONE.parse().unwrap());
    for people in [People::Users(vec![id(BOB)]), People::Group(group), People::Group(everyone)] {
        plans::check(&club, |conn| {
            queries::busy_times(conn, &people, at(-10), at(100)).unwrap();
        });
    }
    for only_verified in [true, false] {
        let selection = Selection { from: Some(at(-10)), to: Some(at(100)), only_verified, ..Selection::default() };
        plans::check(&club, |conn| {
            assert_eq!(queries::free_rooms(conn, &selection, false).unwrap().len(), 1);
        });
    }
}

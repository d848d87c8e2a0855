//! No room is ever booked twice (contract, "No double booking"): the rule case by case, and under load.

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;
use std::sync::Barrier;

use booking_service::{
    rooms::overlap::{Span, Use, conflicts},
    schema::{events, rooms},
};
use chrono::{DateTime, Utc};
use diesel::prelude::*;
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use serde_json::{Value, json};
use service_kit::database::types::{DbTimestamp, DbUuid};

use crate::{
    builders::{At, declare, declare_shared, each, event, event_body, merge, room, text, verified_room},
    harness::{ALICE, BOB, CAROL, Club, hours_from_now},
};

/// Every pair of events in the database that conflicts.
pub fn double_bookings(club: &Club) -> Vec<(DbUuid, DbUuid)> {
    type Row = (DbUuid, DbUuid, String, bool, DbTimestamp, DbTimestamp, bool);
    let rows: Vec<Row> = events::table
        .inner_join(rooms::table)
        .filter(events::deleted_at.is_null())
        .select((
            events::id,
            events::room_id,
            events::place_key,
            rooms::verified,
            events::starts_at,
            events::ends_at,
            events::shared,
        ))
        .load(&mut club.connect())
        .unwrap();
    let usage = |row: &Row| Use { span: Span { start: row.4.utc(), end: row.5.utc() }, shared: row.6 };
    let mut found = Vec::new();
    for (n, a) in rows.iter().enumerate() {
        for b in &rows[n + 1..] {
            let same_place = a.1 == b.1 || (a.2 == b.2 && (a.3 || b.3));
            if same_place && conflicts(&usage(a), &usage(b)) {
                found.push((a.0, b.0));
            }
        }
    }
    found
}

#[rstest]
fn one_room_takes_one_exclusive_event_at_a_time(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let room = room(&club, ALICE, "S516", (0, 9));
    let first = event(&club, BOB, At::Room(&room), (2, 4));
    let problem = declare(&club, CAROL, At::Room(&room), (3, 5)).refused(409, "room-conflict");
    assert_eq!(each(&problem["conflicts"], "eventId"), [first]);
    assert_eq!(problem["conflicts"][0]["sharedRoom"], false);
    assert_eq!(problem["freeTimes"].as_array().unwrap().len(), 2);
    declare_shared(&club, CAROL, At::Room(&room), (3, 5)).refused(409, "room-conflict");
    declare(&club, CAROL, At::Room(&room), (4, 5)).expect(201);
    declare(&club, CAROL, At::Room(&room), (1, 2)).expect(201);
    declare_shared(&club, CAROL, At::Room(&room), (6, 8)).expect(201);
    declare_shared(&club, CAROL, At::Room(&room), (7, 9)).expect(201);
    declare(&club, CAROL, At::Room(&room), (8, 9)).refused(409, "room-conflict");
}

#[rstest]
fn a_verified_place_is_one_room_however_it_is_written(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let room = verified_room(&club, ALICE, "S516", (0, 9));
    event(&club, BOB, At::Room(&room), (2, 4));
    for spelling in ["S516", "s516", " S516\t", "Ｓ５１６"] {
        declare(&club, CAROL, At::Place(spelling), (3, 5)).refused(409, "room-conflict");
    }
    declare(&club, CAROL, At::Place("S517"), (3, 5)).expect(201);
    // An instant event in the way of the verified room.
    event(&club, BOB, At::Place("ｓ516"), (6, 7));
    declare(&club, CAROL, At::Room(&room), (6, 7)).refused(409, "room-conflict");
}

#[rstest]
fn unverified_rooms_on_one_place_never_conflict(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for _ in 0..3 {
        event(&club, BOB, At::Place("Discord"), (1, 2));
    }
    let room = room(&club, BOB, "discord", (0, 9));
    event(&club, BOB, At::Room(&room), (1, 2));
}

#[rstest]
fn a_change_into_the_way_of_another_is_refused_and_changes_nothing(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let room = verified_room(&club, ALICE, "S516", (0, 9));
    event(&club, BOB, At::Room(&room), (2, 4));
    let moving = event(&club, BOB, At::Room(&room), (5, 6));
    let path = format!("/api/events/{moving}");
    let before = club.by(BOB).get(&path).json();
    for at in [At::Room(&room), At::Place("s516")] {
        club.by(BOB).put(&path, event_body(&club, BOB, at, (3, 6))).refused(409, "room-conflict");
    }
    assert_eq!(club.by(BOB).get(&path).json(), before);
    // It is not in its own way.
    club.by(BOB).put(&path, event_body(&club, BOB, At::Room(&room), (4, 7))).expect(200);
    // A shared event that becomes exclusive.
    declare_shared(&club, CAROL, At::Room(&room), (7, 9)).expect(201);
    let shared = text(&declare_shared(&club, BOB, At::Room(&room), (7, 8)).expect(201).json()["eventId"]);
    let exclusive = event_body(&club, BOB, At::Room(&room), (7, 8));
    club.by(BOB).put(&format!("/api/events/{shared}"), exclusive).refused(409, "room-conflict");
    assert_eq!(double_bookings(&club), []);
}

#[rstest]
fn rooms_and_bookings_never_disagree(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    // Random attempts on a few rooms of two places: what freeTimes and sharedTimes offer is taken, all else refused.
    let places = [("S516", true), ("s516 ", false), ("Discord", false)];
    let held: Vec<_> =
        places
            .iter()
            .map(|(place, verified)| {
                if *verified { verified_room(&club, ALICE, place, (0, 12)) } else { room(&club, ALICE, place, (0, 12)) }
            })
            .collect();
    let attempt = (0..3_usize, 0..12_i64, 1..5_i64, any::<bool>());
    let mut runner = TestRunner::new(Config { cases: 60, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&attempt, |(n, from, length, shared)| {
        let (from, to) = (from, (from + length).min(12));
        let shown = club.by(BOB).get(&format!("/api/rooms/{}", held[n])).expect(200).json();
        let offered = if shared { &shown["sharedTimes"] } else { &shown["freeTimes"] };
        let (start, end) = (hours_from_now(&club, from).utc(), hours_from_now(&club, to).utc());
        let time = |value: &Value| value.as_str().unwrap().parse::<DateTime<Utc>>().unwrap();
        let fits = offered
            .as_array()
            .unwrap()
            .iter()
            .any(|free| time(&free["timeStart"]) <= start && end <= time(&free["timeEnd"]));
        let body = merge([event_body(&club, BOB, At::Room(&held[n]), (from, to)), json!({ "sharedRoom": shared })]);
        let status = club.by(BOB).post("/api/events", body).status;
        prop_assert_eq!(status, if fits { 201 } else { 409 });
        Ok(())
    });
    outcome.unwrap();
    assert_eq!(double_bookings(&club), []);
}

const ROUNDS: i64 = 20;
const ATTEMPTS: usize = 50;

/// Fires all attempts at the same moment, spread over the services, and returns their statuses in order.
fn at_once(services: usize, attempt: impl Fn(usize, usize) -> u16 + Sync) -> Vec<u16> {
    let barrier = Barrier::new(ATTEMPTS);
    std::thread::scope(|scope| {
        let start = |n| {
            let (barrier, attempt) = (&barrier, &attempt);
            scope.spawn(move || {
                barrier.wait();
                attempt(n, n % services)
            })
        };
        let threads: Vec<_> = (0..ATTEMPTS).map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Asks again while the service says that it is too busy (503), as a client does. A refusal for that reason changes
/// nothing, so it must not change who wins either.
fn answered(ask: impl Fn() -> u16) -> u16 {
    (0..50).map(|_| ask()).find(|status| *status != 503).unwrap_or(503)
}

/// Two replicas on PostgreSQL; SQLite has one process at a time.
fn start_services(club: &mut Club) -> usize {
    if club.is_postgres() { club.start_another() + 1 } else { 1 }
}

/// Twenty rounds of fifty simultaneous attempts, every fifth of which moves an event that is out of the way; `wish`
/// says what the n-th attempt wants in the rooms of its round, all at one span. One of them wins.
fn one_winner_each_round(
    mut club: Club,
    rooms: impl Fn(&Club, (i64, i64)) -> Vec<String>,
    wish: impl Fn(&[String], usize) -> (String, bool) + Sync,
) {
    let services = start_services(&mut club);
    for round in 0..ROUNDS {
        let hours = (round * 10, round * 10 + 4);
        let rooms = rooms(&club, hours);
        let movers: Vec<_> = (0..ATTEMPTS / 5).map(|_| event(&club, BOB, At::Place("elsewhere"), hours)).collect();
        let statuses = at_once(services, |n, service| {
            let (room, shared) = wish(&rooms, n);
            let body = merge([event_body(&club, BOB, At::Room(&room), hours), json!({ "sharedRoom": shared })]);
            let client = club.by(BOB).at(service);
            answered(|| {
                if n % 5 == 4 {
                    client.put(&format!("/api/events/{}", movers[n / 5]), body.clone()).status
                } else {
                    client.post("/api/events", body.clone()).status
                }
            })
        });
        let winners = statuses.iter().filter(|status| [200, 201].contains(*status)).count();
        let losers = statuses.iter().filter(|status| **status == 409).count();
        assert_eq!((winners, losers), (1, ATTEMPTS - 1), "round {round}: {statuses:?}");
        assert_eq!(double_bookings(&club), [], "round {round}");
    }
}

#[rstest]
fn fifty_at_once_for_the_same_room(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    one_winner_each_round(
        club,
        |club, hours| vec![verified_room(club, ALICE, "S516", hours)],
        |rooms, _| (rooms[0].clone(), false),
    );
}

#[rstest]
fn fifty_at_once_for_one_place_under_two_rows_and_spellings(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    one_winner_each_round(
        club,
        |club, hours| vec![verified_room(club, ALICE, "S516", hours), room(club, ALICE, " ｓ５１６", hours)],
        |rooms, n| (rooms[n % 2].clone(), false),
    );
}

#[rstest]
fn fifty_at_once_of_whom_one_would_share(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    one_winner_each_round(
        club,
        |club, hours| vec![verified_room(club, ALICE, "S516", hours), room(club, ALICE, "s516", hours)],
        |rooms, n| (rooms[n % 2].clone(), n == 7),
    );
}

#[rstest]
fn verifying_while_others_book(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    // Two rows of one place, both unverified: events in the one do not conflict with those in the other, until
    // one of the rows is verified.
    let mut club = club;
    let services = start_services(&mut club);
    for round in 0..ROUNDS {
        let hours = (round * 10, round * 10 + 4);
        let rooms = [room(&club, ALICE, "S516", hours), room(&club, ALICE, "ｓ516", hours)];
        let booking = round % 2 == 0;
        let statuses = at_once(services, |n, service| {
            let room = &rooms[n % 2];
            if booking && n % 5 != 0 {
                let body = event_body(&club, BOB, At::Room(room), hours);
                answered(|| club.by(BOB).at(service).post("/api/events", body.clone()).status)
            } else {
                let path = format!("/api/rooms/{room}/verified");
                answered(|| club.by(ALICE).at(service).send("POST", &path, None).status)
            }
        });
        assert!(statuses.iter().all(|status| [201, 204, 409].contains(status)), "{statuses:?}");
        assert_eq!(double_bookings(&club), [], "round {round}");
        let is_verified = |room: &String| club.by(BOB).get(&format!("/api/rooms/{room}")).json()["verified"] == true;
        let verified = rooms.iter().filter(|room| is_verified(room)).count();
        assert!(verified <= 1, "round {round}: two verified rooms overlap");
        let booked = statuses.iter().filter(|status| **status == 201).count();
        if booking {
            assert!((1..=2 - verified).contains(&booked), "round {round}: {booked} booked, {verified} verified");
        } else {
            assert_eq!(verified, 1, "round {round}");
        }
    }
}

#[rstest]
fn imports_at_once_make_each_room_once(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut club = club;
    let services = start_services(&mut club);
    let table = "Subject,Start date,End date,Start time,End time,Location\n\
            x,2030/04/04,2030/04/04,18:00,21:00,S516\nx,2030/04/04,2030/04/04,18:00,21:00,S517\n";
    let statuses = at_once(services, |_, service| {
        let client = club.by(ALICE).at(service).header("content-type", "text/csv");
        answered(|| client.send_bytes("POST", "/api/rooms/all", table.as_bytes().to_vec()).status)
    });
    assert!(statuses.iter().all(|status| *status == 201), "{statuses:?}");
    assert_eq!(club.by(BOB).get("/api/rooms").json().as_array().unwrap().len(), 2);
}

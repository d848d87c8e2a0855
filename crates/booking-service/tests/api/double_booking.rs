//! No room is ever booked twice (contract, "No double booking"): the rule case by case, and under load.

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;
use std::sync::Barrier;

use booking_service::schema::{events, rooms};
use chrono::{DateTime, Utc};
use diesel::prelude::*;
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use serde_json::{Value, json};
use service_kit::database::types::{DbTimestamp, DbUuid};

use crate::{
    builders::{
        At, declare, declare_shared, each, event, event_body, hours, merge, poll, room, span, text, verified_room,
    },
    harness::{ALICE, BOB, CAROL, Club, hours_from_now},
};

/// Every pair of conflicting events in the database, found by comparing all pairs by the rule of the contract.
pub fn double_bookings(club: &Club) -> Vec<(DbUuid, DbUuid)> {
    struct Event {
        id: DbUuid,
        room: DbUuid,
        place: String,
        span: (DbTimestamp, DbTimestamp),
        shared: bool,
    }
    let conn = &mut club.connect();
    let columns =
        (events::id, events::room_id, events::place_key, (events::starts_at, events::ends_at), events::shared);
    let events = events::table.filter(events::deleted_at.is_null()).select(columns).load(conn).unwrap();
    let events: Vec<_> =
        events.into_iter().map(|(id, room, place, span, shared)| Event { id, room, place, span, shared }).collect();
    let verified: Vec<(DbUuid, String, (DbTimestamp, DbTimestamp))> = rooms::table
        .filter(rooms::deleted_at.is_null().and(rooms::verified))
        .select((rooms::id, rooms::place_key, (rooms::starts_at, rooms::ends_at)))
        .load(conn)
        .unwrap();
    let mut found = Vec::new();
    for (n, a) in events.iter().enumerate() {
        for b in &events[n + 1..] {
            let common = (a.span.0.max(b.span.0), a.span.1.min(b.span.1));
            let by_verified = |(room, place, period): &(DbUuid, String, (DbTimestamp, DbTimestamp))| {
                let covers = period.0 < common.1 && common.0 < period.1;
                *room == a.room || *room == b.room || (*place == a.place && covers)
            };
            let exclude = a.room == b.room || (a.place == b.place && verified.iter().any(by_verified));
            if common.0 < common.1 && !(a.shared && b.shared) && exclude {
                found.push((a.id, b.id));
            }
        }
    }
    found
}

#[rstest]
fn a_double_booking_in_the_database_would_be_found(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let room = verified_room(&club, ALICE, "S516", (0, 9));
    let ids = [(2, 4), (4, 6)].map(|hours| event(&club, BOB, At::Place("S516"), hours));
    assert_eq!(double_bookings(&club), []);
    let shift = |id: &str, hours| {
        let event = events::table.find(DbUuid(id.parse().unwrap()));
        diesel::update(event)
            .set(events::starts_at.eq(DbTimestamp(hours_from_now(&club, hours))))
            .execute(&mut club.connect())
            .unwrap();
    };
    shift(&ids[1], 3);
    assert_eq!(double_bookings(&club).len(), 1);
    club.by(ALICE).delete(&format!("/api/rooms/{room}/verified")).expect(204);
    assert_eq!(double_bookings(&club), [], "nothing verified covers them");
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
    // An instant event also excludes events in the verified room.
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
fn instant_events_exclude_each_other_while_a_verified_room_covers_their_place(
    #[values(Sqlite, Postgres)] backend: Backend,
) {
    let club = Club::start(backend);
    let verified = verified_room(&club, ALICE, "S516", (0, 9));
    let first = event(&club, BOB, At::Place("S516"), (2, 4));
    let problem = declare(&club, CAROL, At::Place(" s516"), (3, 6)).refused(409, "room-conflict");
    assert_eq!(each(&problem["conflicts"], "eventId"), std::slice::from_ref(&first));
    assert_eq!(hours(&club, &problem["freeTimes"]), [(4, 6)]);
    declare_shared(&club, CAROL, At::Place("s516"), (3, 6)).refused(409, "room-conflict");
    declare_shared(&club, CAROL, At::Place("S516"), (5, 7)).expect(201);
    declare_shared(&club, BOB, At::Place("S516"), (5, 7)).expect(201);
    declare(&club, BOB, At::Place("S516"), (6, 8)).refused(409, "room-conflict");
    // Only the common time counts: the room is verified until 9.
    event(&club, BOB, At::Place("S516"), (8, 14));
    declare(&club, CAROL, At::Place("S516"), (9, 12)).expect(201);
    declare(&club, CAROL, At::Place("S516"), (7, 10)).refused(409, "room-conflict");
    // Exactly the free times of an unverified room can be booked.
    let room = room(&club, CAROL, "s516", (0, 20));
    let path = format!("/api/rooms/{room}");
    let shown = club.by(CAROL).get(&path).json();
    assert_eq!(hours(&club, &shown["freeTimes"]), [(0, 2), (4, 5), (7, 8), (9, 20)]);
    assert_eq!(hours(&club, &shown["sharedTimes"]), [(0, 2), (4, 8), (9, 20)]);
    assert_eq!(
        club.by(CAROL).get("/api/rooms").json().as_array().unwrap().iter().find(|item| item["roomId"] == room),
        Some(&shown)
    );
    declare(&club, CAROL, At::Room(&room), (8, 10)).refused(409, "room-conflict");
    declare(&club, CAROL, At::Room(&room), (9, 20)).expect(201);
    assert_eq!(double_bookings(&club), []);
    // A move is checked as well.
    let put = |id: &str, hours| {
        club.by(BOB).put(&format!("/api/events/{id}"), event_body(&club, BOB, At::Place("S516"), hours))
    };
    put(&first, (4, 6)).refused(409, "room-conflict");
    put(&first, (1, 4)).expect(200);
    // Without the verified room each event has a room of its own.
    club.by(ALICE).delete(&format!("/api/rooms/{verified}/verified")).expect(204);
    put(&first, (4, 6)).expect(200);
    club.by(ALICE).post(&format!("/api/rooms/{verified}/verified"), json!({})).refused(409, "room-conflict");
    club.by(ALICE).delete(&format!("/api/rooms/{verified}")).expect(200);
    declare(&club, CAROL, At::Place("S516"), (4, 6)).expect(201);
    assert_eq!(double_bookings(&club), []);
}

#[rstest]
fn a_double_booking_keeps_nobody_from_changing_the_rest(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let room = room(&club, BOB, "S516", (1, 12));
    let (first, second) = (event(&club, BOB, At::Room(&room), (3, 5)), event(&club, BOB, At::Room(&room), (6, 8)));
    // As an import leaves them.
    let conn = &mut club.connect();
    let span: (DbTimestamp, DbTimestamp) = events::table
        .find(DbUuid(first.parse().unwrap()))
        .select((events::starts_at, events::ends_at))
        .first(conn)
        .unwrap();
    diesel::update(events::table.find(DbUuid(second.parse().unwrap())))
        .set((events::starts_at.eq(span.0), events::ends_at.eq(span.1)))
        .execute(conn)
        .unwrap();
    assert_eq!(double_bookings(&club).len(), 1);
    let path = format!("/api/events/{second}");
    let change =
        |more: Value, hours| club.by(BOB).put(&path, merge([event_body(&club, BOB, At::Room(&room), hours), more]));
    let times = club.by(BOB).get(&path).json();
    let same = json!({"timeStart": times["timeStart"], "timeEnd": times["timeEnd"]});
    change(merge([same.clone(), json!({"name": "Zig evening"})]), (3, 5)).expect(200);
    assert_eq!(club.by(BOB).get(&path).json()["name"], "Zig evening");
    // Also outside the time of its room.
    diesel::update(rooms::table.find(DbUuid(room.parse().unwrap())))
        .set(rooms::ends_at.eq(span.0))
        .execute(conn)
        .unwrap();
    change(merge([same.clone(), json!({"name": "Go evening"})]), (3, 5)).expect(200);
    change(json!({}), (2, 4)).refused(400, "outside-room-window");
    diesel::update(rooms::table.find(DbUuid(room.parse().unwrap())))
        .set(rooms::ends_at.eq(span.1))
        .execute(conn)
        .unwrap();
    change(json!({}), (2, 4)).refused(409, "room-conflict");
    change(merge([same, json!({"sharedRoom": true})]), (3, 5)).refused(409, "room-conflict");
}

#[rstest]
fn a_change_that_conflicts_is_refused_and_changes_nothing(#[values(Sqlite, Postgres)] backend: Backend) {
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
    // An event does not conflict with itself.
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
    // Random bookings of a few rooms of two places: those within freeTimes or sharedTimes succeed, all others are
    // refused. Two verified rooms cover a part of one place.
    let mut rooms = [(0, 4), (7, 9)].map(|hours| verified_room(&club, ALICE, "S516", hours)).to_vec();
    rooms.extend(["s516 ", "Discord", "Ｓ516"].map(|place| room(&club, ALICE, place, (0, 12))));
    // The last room has no events, so it is free exactly when a new room at its place is.
    let instant = rooms.len() - 1;
    let attempt = (0..rooms.len(), 0..12_i64, 1..5_i64, any::<bool>());
    let mut runner = TestRunner::new(Config { cases: 120, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&attempt, |(n, from, length, shared)| {
        let (from, to) = (from, (from + length).min(12));
        let shown = club.by(BOB).get(&format!("/api/rooms/{}", rooms[n])).expect(200).json();
        let free_times = if shared { &shown["sharedTimes"] } else { &shown["freeTimes"] };
        let (start, end) = (hours_from_now(&club, from).utc(), hours_from_now(&club, to).utc());
        let time = |value: &Value| value.as_str().unwrap().parse::<DateTime<Utc>>().unwrap();
        let is_free = free_times
            .as_array()
            .unwrap()
            .iter()
            .any(|free| time(&free["timeStart"]) <= start && end <= time(&free["timeEnd"]));
        let at = if n == instant { At::Place("S516") } else { At::Room(&rooms[n]) };
        let body = merge([event_body(&club, BOB, at, (from, to)), json!({ "sharedRoom": shared })]);
        let status = club.by(BOB).post("/api/events", body).status;
        let is_outside = n < 2 && (start < time(&shown["timeStart"]) || time(&shown["timeEnd"]) < end);
        prop_assert_eq!(
            status,
            if is_outside {
                400
            } else if is_free {
                201
            } else {
                409
            }
        );
        Ok(())
    });
    outcome.unwrap();
    assert_eq!(double_bookings(&club), []);
}

const ROUNDS: i64 = 8;
const ATTEMPTS: usize = 50;

/// Runs all attempts at the same time, distributed over the services, and returns their statuses in order.
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

/// Repeats a request while the answer is 503, as a client does. A 503 changes nothing, so it must not change which
/// request succeeds.
pub fn retry_while_busy(send: impl Fn() -> u16) -> u16 {
    (0..50).map(|_| send()).find(|status| *status != 503).unwrap_or(503)
}

/// Starts a second replica on PostgreSQL. Returns the number of replicas.
pub fn start_services(club: &mut Club) -> usize {
    if club.is_postgres() { club.start_another() + 1 } else { 1 }
}

/// Runs eight rounds of fifty concurrent attempts to book one span. Of every five attempts, one moves an event from
/// another place, one confirms a poll and one makes a series. `target` returns the venue of the n-th attempt, given the
/// rooms of its round, and whether it is shared. In each round, one attempt succeeds.
fn one_winner_each_round(
    mut club: Club,
    rooms: impl Fn(&Club, (i64, i64)) -> Vec<String>,
    target: impl for<'a> Fn(&'a [String], usize) -> (At<'a>, bool) + Sync,
) {
    let services = start_services(&mut club);
    for round in 0..ROUNDS {
        let hours = (round * 10, round * 10 + 4);
        let rooms = rooms(&club, hours);
        let movers: Vec<_> = (0..ATTEMPTS / 5).map(|_| event(&club, BOB, At::Place("elsewhere"), hours)).collect();
        let slot = json!({"candidateSlots": [span(&club, hours.0, hours.1)]});
        let polls: Vec<_> = (0..ATTEMPTS / 5).map(|_| poll(&club, BOB, slot.clone())).collect();
        let statuses = at_once(services, |n, service| {
            let (at, shared) = target(&rooms, n);
            let body = merge([event_body(&club, BOB, at, hours), json!({ "sharedRoom": shared })]);
            let (poll, slots) = &polls[n / 5];
            let confirmation = merge([body.clone(), json!({ "slotId": slots[0] })]);
            let client = club.by(BOB).at(service);
            let series = json!({"event": body, "rrule": "FREQ=WEEKLY;COUNT=1"});
            retry_while_busy(|| match n % 5 {
                1 => client.post("/api/event-series", series.clone()).status,
                4 => client.put(&format!("/api/events/{}", movers[n / 5]), body.clone()).status,
                2 => client.post(&format!("{poll}/confirm"), confirmation.clone()).status,
                _ => client.post("/api/events", body.clone()).status,
            })
        });
        let winners = statuses.iter().filter(|status| [200, 201].contains(*status)).count();
        let losers = statuses.iter().filter(|status| **status == 409).count();
        assert_eq!((winners, losers), (1, ATTEMPTS - 1), "round {round}: {statuses:?}");
        assert_eq!(double_bookings(&club), [], "round {round}");
        // A poll is confirmed if and only if it has the event.
        for (n, (poll, _)) in polls.iter().enumerate() {
            let status = &club.by(BOB).get(poll).expect(200).json()["status"];
            assert_eq!(status == "confirmed", statuses[n * 5 + 2] == 201, "round {round}");
        }
    }
}

/// Takes seconds: fifty threads in several rounds, each of which waits for the place.
#[rstest]
fn fifty_concurrent_bookings_of_one_room(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    one_winner_each_round(
        club,
        |club, hours| vec![verified_room(club, ALICE, "S516", hours)],
        |rooms, _| (At::Room(&rooms[0]), false),
    );
}

#[rstest]
fn fifty_concurrent_bookings_of_one_place_with_two_rooms_and_spellings(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    one_winner_each_round(
        club,
        |club, hours| vec![verified_room(club, ALICE, "S516", hours), room(club, ALICE, " ｓ５１６", hours)],
        |rooms, n| (At::Room(&rooms[n % 2]), false),
    );
}

#[rstest]
fn fifty_concurrent_bookings_of_which_one_is_shared(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    one_winner_each_round(
        club,
        |club, hours| vec![verified_room(club, ALICE, "S516", hours), room(club, ALICE, "s516", hours)],
        |rooms, n| (At::Room(&rooms[n % 2]), n == 7),
    );
}

#[rstest]
fn fifty_concurrent_bookings_that_mostly_name_a_verified_place(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    one_winner_each_round(
        club,
        |club, hours| vec![verified_room(club, ALICE, "S516", hours)],
        |rooms, n| match n % 4 {
            0 => (At::Room(&rooms[0]), false),
            1 => (At::Place(" ｓ５１６"), false),
            _ => (At::Place("S516"), n == 7),
        },
    );
}

#[rstest]
fn verifying_while_others_name_the_place(#[values(Sqlite, Postgres)] backend: Backend) {
    let mut club = Club::start(backend);
    let services = start_services(&mut club);
    for round in 0..ROUNDS {
        let hours = (round * 10, round * 10 + 4);
        let room = room(&club, ALICE, "S516", hours);
        let statuses = at_once(services, |n, service| {
            // In every other round there are more verifications.
            if n % 5 == 0 || (round % 2 == 0 && n % 5 < 3) {
                let path = format!("/api/rooms/{room}/verified");
                retry_while_busy(|| club.by(ALICE).at(service).send("POST", &path, None).status)
            } else {
                let body = event_body(&club, BOB, At::Place("ｓ516"), hours);
                retry_while_busy(|| club.by(BOB).at(service).post("/api/events", body.clone()).status)
            }
        });
        assert!(statuses.iter().all(|status| [201, 204, 409].contains(status)), "{statuses:?}");
        assert_eq!(double_bookings(&club), [], "round {round}");
        let booked = statuses.iter().filter(|status| **status == 201).count();
        let verified = club.by(BOB).get(&format!("/api/rooms/{room}")).json()["verified"] == true;
        assert!(!verified || booked == 1, "round {round}: {booked} booked");
    }
}

#[rstest]
fn verifying_while_others_book(#[values(Sqlite, Postgres)] backend: Backend) {
    let mut club = Club::start(backend);
    // Two unverified rooms of one place: events in one room do not conflict with events in the other, until one of the
    // rooms is verified.
    let services = start_services(&mut club);
    for round in 0..ROUNDS {
        let hours = (round * 10, round * 10 + 4);
        let rooms = [room(&club, ALICE, "S516", hours), room(&club, ALICE, "ｓ516", hours)];
        let booking = round % 2 == 0;
        let statuses = at_once(services, |n, service| {
            let room = &rooms[n % 2];
            if booking && n % 5 != 0 {
                let body = event_body(&club, BOB, At::Room(room), hours);
                retry_while_busy(|| club.by(BOB).at(service).post("/api/events", body.clone()).status)
            } else {
                let path = format!("/api/rooms/{room}/verified");
                retry_while_busy(|| club.by(ALICE).at(service).send("POST", &path, None).status)
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
fn concurrent_imports_create_each_room_once(#[values(Sqlite, Postgres)] backend: Backend) {
    let mut club = Club::start(backend);
    let services = start_services(&mut club);
    let table = "Subject,Start date,End date,Start time,End time,Location\n\
            x,2030/04/04,2030/04/04,18:00,21:00,S516\nx,2030/04/04,2030/04/04,18:00,21:00,S517\n";
    let statuses = at_once(services, |_, service| {
        let client = club.by(ALICE).at(service).header("content-type", "text/csv");
        retry_while_busy(|| client.send_bytes("POST", "/api/rooms/all", table.as_bytes().to_vec()).status)
    });
    assert!(statuses.iter().all(|status| *status == 201), "{statuses:?}");
    assert_eq!(club.by(BOB).get("/api/rooms").json().as_array().unwrap().len(), 2);
}

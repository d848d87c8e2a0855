//! Concurrent changes between a request's reads and writes. Most tests hold a lock or an uncommitted row and send a
//! request that waits for it; the others send many requests at once.

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;
use std::time::Duration;

use booking_service::schema::{attendees, event_admins, events, places, rooms, tags, users};
use diesel::{connection::SimpleConnection, prelude::*, sql_query};
use serde_json::json;
use service_kit::database::{
    AnyConnection,
    types::{DbTimestamp, DbUuid},
};

use crate::{
    builders::{At, each, event, event_body, group, merge, room, text},
    harness::{BOB, CAROL, Club, DAVE, id},
    process::until,
    sign_in::{Browser, set_state},
};

/// Runs `request` while another transaction is open. That transaction runs `before` first, `after` once the request
/// waits, and then commits.
fn during_transaction<T: Send>(
    club: &Club,
    before: impl FnOnce(&mut AnyConnection),
    request: impl FnOnce() -> T + Send,
    after: impl FnOnce(&mut AnyConnection),
) -> T {
    let conn = &mut club.connect();
    conn.batch_execute(if club.is_postgres() { "BEGIN" } else { "BEGIN IMMEDIATE" }).unwrap();
    before(conn);
    std::thread::scope(|scope| {
        let request = scope.spawn(request);
        until_it_waits(club, || request.is_finished());
        after(conn);
        conn.batch_execute("COMMIT").unwrap();
        request.join().unwrap()
    })
}

/// Waits until a request waits for a lock, or has ended without waiting. On SQLite nothing shows that: on
/// a slow machine the request begins later, and is not in anybody's way.
fn until_it_waits(club: &Club, has_ended: impl Fn() -> bool) {
    if !club.is_postgres() {
        return pause(300);
    }
    let waits = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let mut conn = club.connect();
    until("the request waits", || has_ended() || sql_query(waits).execute(&mut conn).unwrap() > 0);
}

#[expect(clippy::disallowed_methods, reason = "the pace of a client, which waits for nothing")]
fn pause(millis: u64) {
    std::thread::sleep(Duration::from_millis(millis));
}

fn lock_place(conn: &mut AnyConnection, key: &str) {
    if let AnyConnection::Postgresql(conn) = conn {
        places::table.find(key).for_no_key_update().execute(conn).unwrap();
    }
}

fn uid(id: &str) -> DbUuid {
    DbUuid(id.parse().unwrap())
}

/// Suspends Bob and removes his feed, as a sync of the directory does.
fn suspend(conn: &mut AnyConnection) {
    let bob = users::table.find(id(BOB));
    diesel::update(bob).set((users::state.eq(2), users::feed_nonce.eq(None::<String>))).execute(conn).unwrap();
}

#[rstest]
fn a_user_suspended_during_sign_in_gets_no_session(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut browser = Browser::new(&club);
    let page = browser.begin();
    let callback = browser.choose(&page, BOB);
    during_transaction(&club, suspend, || browser.get(&callback), |_| {}).refused(403, "account-inactive");
    set_state(&club, BOB, 1);
    assert_eq!(browser.who(), None, "the session would be valid after the suspension");
}

#[rstest]
fn a_user_suspended_while_making_a_token_or_feed_gets_none(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let bob = club.by(BOB);
    let token = || bob.post("/api/users/me/tokens", json!({"name": "bot", "scope": "write"}));
    during_transaction(&club, suspend, token, |_| {}).refused(403, "account-inactive");
    let nonce = || -> Option<String> {
        users::table.find(id(BOB)).select(users::feed_nonce).first(&mut club.connect()).unwrap()
    };
    for method in ["GET", "PUT"] {
        set_state(&club, BOB, 1);
        let feed = || bob.send(method, "/api/users/me/ical", None);
        during_transaction(&club, suspend, feed, |_| {}).refused(403, "account-inactive");
        assert_eq!(nonce(), None, "{method}");
    }
    set_state(&club, BOB, 1);
    assert_eq!(bob.get("/api/users/me/tokens").expect(200).json(), json!([]));
}

#[rstest]
fn an_answer_during_the_invitation_of_its_user_stays(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (first, second) = (group(&club, BOB, "a", &[BOB]), group(&club, BOB, "b", &[CAROL, DAVE]));
    let body =
        |group: &str| merge([event_body(&club, BOB, At::Place("x"), (1, 2)), json!({"groupId": group, "open": true})]);
    let event = text(&club.by(BOB).post("/api/events", body(&first)).expect(201).json()["eventId"]);
    let path = format!("/api/events/{event}");
    let answer = |conn: &mut AnyConnection| {
        diesel::insert_into(attendees::table)
            .values((
                attendees::event_id.eq(uid(&event)),
                attendees::user_id.eq(id(CAROL)),
                attendees::schedule.eq("attendance"),
            ))
            .execute(conn)
            .unwrap();
    };
    let changed =
        during_transaction(&club, answer, || club.by(BOB).put(&path, body(&second)), |_| {}).expect(200).json();
    let mut expected = [(id(CAROL), "attendance"), (id(DAVE), "pending")];
    expected.sort();
    assert_eq!(
        changed["attendees"],
        json!(expected.map(|(user, schedule)| json!({"userId": user, "schedule": schedule})))
    );
}

#[rstest]
fn a_caller_who_loses_the_right_while_waiting_changes_nothing(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let both = json!({"admins": [id(BOB), id(CAROL)]});
    let body = merge([event_body(&club, BOB, At::Place("x"), (1, 2)), both]);
    let event = text(&club.by(BOB).post("/api/events", body.clone()).expect(201).json()["eventId"]);
    let path = format!("/api/events/{event}");
    let dismiss = |conn: &mut AnyConnection| {
        diesel::delete(event_admins::table.find((uid(&event), id(CAROL)))).execute(conn).unwrap();
    };
    let put = || club.by(CAROL).put(&path, body.clone());
    during_transaction(&club, |conn| lock_place(conn, "x"), put, dismiss).refused(403, "forbidden");
    club.by(BOB).put(&path, body.clone()).expect(200);
    during_transaction(&club, |conn| lock_place(conn, "x"), || club.by(CAROL).delete(&path), dismiss)
        .refused(403, "forbidden");
}

#[rstest]
fn a_place_that_is_verified_during_a_booking_takes_one_event(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let first = event(&club, BOB, At::Place("S516"), (1, 2));
    let room = room(&club, BOB, "S516", (0, 4));
    let verify = |conn: &mut AnyConnection| {
        diesel::update(rooms::table.find(uid(&room))).set(rooms::verified.eq(true)).execute(conn).unwrap();
    };
    let book = || club.by(CAROL).post("/api/events", event_body(&club, CAROL, At::Place("s516"), (1, 2)));
    let problem =
        during_transaction(&club, |conn| lock_place(conn, "s516"), book, verify).refused(409, "room-conflict");
    assert_eq!(each(&problem["conflicts"], "eventId"), [first]);
}

#[rstest]
fn changes_of_an_event_and_of_its_tags_do_not_deadlock(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let event = event(&club, BOB, At::Place("x"), (1, 2));
    let lock = |conn: &mut AnyConnection| {
        if let AnyConnection::Postgresql(conn) = conn {
            // If they were in each other's way, making the tag would wait, and fail before PostgreSQL sees the deadlock.
            conn.batch_execute("SET LOCAL lock_timeout = 500").unwrap();
            events::table.find(uid(&event)).for_no_key_update().execute(conn).unwrap();
        }
    };
    let make_tag = |conn: &mut AnyConnection| {
        let now = DbTimestamp(club.clock.now());
        diesel::insert_into(tags::table)
            .values((
                tags::id.eq(DbUuid::new()),
                tags::name.eq("new"),
                tags::name_key.eq("new"),
                tags::created_at.eq(now),
                tags::updated_at.eq(now),
            ))
            .execute(conn)
            .unwrap();
    };
    let add = || club.by(CAROL).post(&format!("/api/events/{event}/tags"), json!({"name": "new"}));
    during_transaction(&club, lock, add, make_tag).expect(204);
}

#[rstest]
fn deleting_a_group_keeps_a_room_that_is_being_booked(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for round in 0..15 {
        let gone = group(&club, BOB, "gone", &[BOB]);
        let place = format!("place {round}");
        let body = |group: &str, at| {
            merge([event_body(&club, BOB, at, (1, 2)), json!({"groupId": group, "sharedRoom": true})])
        };
        let owner = club.by(BOB).post("/api/events", body(&gone, At::Place(&place))).expect(201).json();
        let room = text(&owner["room"]["roomId"]);
        let guest = merge([body(crate::builders::EVERYONE, At::Room(&room)), json!({"name": "guest"})]);
        let barrier = std::sync::Barrier::new(2);
        let (deleted, made) = std::thread::scope(|scope| {
            let delete = scope.spawn(|| {
                barrier.wait();
                club.by(BOB).delete(&format!("/api/groups/{gone}?force=true")).status
            });
            barrier.wait();
            pause(round % 5);
            let made = club.by(CAROL).post("/api/events", guest).status;
            (delete.join().unwrap(), made)
        });
        assert_eq!(deleted, 204);
        assert!(matches!(made, 201 | 400), "{made}");
        let there = club.by(BOB).get(&format!("/api/rooms/{room}")).status;
        assert_eq!(there, if made == 201 { 200 } else { 404 }, "round {round}");
    }
}

#[rstest]
fn deleting_a_group_waits_for_the_places_of_its_events(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let gone = group(&club, BOB, "gone", &[BOB]);
    let body = |group: &str| {
        merge([event_body(&club, BOB, At::Place("x"), (1, 2)), json!({"groupId": group, "sharedRoom": true})])
    };
    let owner = club.by(BOB).post("/api/events", body(&gone)).expect(201).json();
    let room = text(&owner["room"]["roomId"]);
    let guest = club.by(CAROL).post("/api/events", body(crate::builders::EVERYONE)).expect(201).json();
    // Like a booking: locks the place, and then puts the event in the room.
    let book = |conn: &mut AnyConnection| {
        let guest = events::table.find(uid(guest["eventId"].as_str().unwrap()));
        diesel::update(guest).set((events::room_id.eq(uid(&room)), events::owns_room.eq(false))).execute(conn).unwrap();
    };
    let delete = || club.by(BOB).delete(&format!("/api/groups/{gone}?force=true"));
    during_transaction(&club, |conn| lock_place(conn, "x"), delete, book).expect(204);
    club.by(BOB).get(&format!("/api/rooms/{room}")).expect(200);
    club.by(BOB).get(&format!("/api/events/{}", text(&owner["eventId"]))).refused(404, "not-found");
}

#[rstest]
fn two_events_can_swap_places(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let [one, two] = ["p", "q"].map(|place| event(&club, BOB, At::Place(place), (1, 2)));
    let to = |event: &str, place: &str| {
        let body = event_body(&club, BOB, At::Place(place), (1, 2));
        club.by(BOB).put(&format!("/api/events/{event}"), body).status
    };
    for round in 0..10 {
        let places = if round % 2 == 0 { ["q", "p"] } else { ["p", "q"] };
        let statuses = std::thread::scope(|scope| {
            let moves = [(&one, places[0]), (&two, places[1]), (&one, places[0]), (&two, places[1])];
            let to = &to;
            moves.map(|(event, place)| scope.spawn(move || to(event, place))).map(|run| run.join().unwrap())
        });
        assert_eq!(statuses, [200; 4]);
    }
}

#[rstest]
fn a_concurrent_change_does_not_undo_a_deletion(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for round in 0..10 {
        let group = group(&club, BOB, "g", &[BOB]);
        let body = merge([event_body(&club, BOB, At::Place("x"), (1, 2)), json!({"groupId": group})]);
        let made = club.by(BOB).post("/api/events", body.clone()).expect(201).json();
        let (event, room) = (text(&made["eventId"]), text(&made["room"]["roomId"]));
        let path = format!("/api/events/{event}");
        let delete = match round % 3 {
            0 => path.clone(),
            1 => format!("/api/rooms/{room}?force=true"),
            _ => format!("/api/groups/{group}?force=true"),
        };
        let (deleted, changed, tagged, answered) = std::thread::scope(|scope| {
            let deleted = scope.spawn(|| club.by(BOB).delete(&delete).status);
            let changed = scope.spawn(|| {
                let body = merge([body.clone(), json!({"place": "y"})]);
                club.by(BOB).put(&path, body).status
            });
            let tagged = scope.spawn(|| club.by(BOB).post(&format!("{path}/tags"), json!({"name": "x"})).status);
            let answered =
                scope.spawn(|| club.by(BOB).put(&format!("{path}/attendees/me"), json!({"schedule": "absent"})).status);
            let join = |run: std::thread::ScopedJoinHandle<'_, u16>| run.join().unwrap();
            (join(deleted), join(changed), join(tagged), join(answered))
        });
        assert!(matches!(deleted, 200 | 204), "{deleted}");
        assert!(matches!(changed, 200 | 404), "{changed}");
        assert!(matches!(tagged, 204 | 404), "{tagged}");
        assert!(matches!(answered, 204 | 404), "{answered}");
        club.by(BOB).get(&path).refused(404, "not-found");
        club.by(BOB).get(&format!("/api/rooms/{room}")).refused(404, "not-found");
    }
}

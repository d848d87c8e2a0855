//! Rooms.

use crate::harness::Backend::{self, Postgres, Sqlite};
use booking_service::{
    rooms::{
        booking::{Booking, RoomPeriod, refuse_conflicts, refuse_conflicts_of_verified},
        queries,
    },
    schema::{events, places, rooms},
};
use chrono::TimeDelta;
use chrono_tz::Tz::UTC;
use diesel::{connection::SimpleConnection, prelude::*, sql_query, sql_types::Text};
use rstest::rstest;
use serde_json::{Value, json};
use service_kit::database::{
    AnyConnection, PageBounds,
    types::{DbTimestamp, DbUuid},
};

use crate::{
    builders::{
        At, EVERYONE, declare, declare_shared, each, event, event_body, group, hours, merge, poll_body, room,
        room_body, span, text, verified_room,
    },
    harness::{ALICE, Answer, BOB, CAROL, Club, hours_from_now, id},
    plans,
    process::Process,
};

const HEADER: &str = "Subject,Start date,End date,Start time,End time,Location";

/// The club's zone is Asia/Tokyo: 2030-04-04T18:00+09:00 to 21:00.
const ROW: &str = "club,2030/04/04,2030/04/04,18:00,21:00,S516";

/// The rows that a problem names, with the codes.
fn rows(problem: &Value) -> Vec<(u64, String)> {
    let violations = problem["violations"].as_array().unwrap();
    violations.iter().map(|violation| (violation["row"].as_u64().unwrap(), text(&violation["code"]))).collect()
}

fn import(club: &Club, by: &str, query: &str, table: &str) -> Answer {
    let client = club.by(by).header("content-type", "text/csv");
    client.send_bytes("POST", &format!("/api/rooms/all{query}"), table.as_bytes().to_vec())
}

#[rstest]
fn a_room_is_made_unverified_and_shown_in_the_clubs_zone(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let answer = club.by(BOB).post("/api/rooms", room_body(&club, BOB, " S516 ", (1, 4))).expect(201);
    let made = answer.json();
    assert_eq!(made["verified"], false);
    assert_eq!(made["place"], " S516 ", "stored as sent");
    assert_eq!(made["createdBy"], json!(id(BOB)));
    assert!(text(&made["timeStart"]).ends_with("+09:00"), "{made}");
    assert_eq!(hours(&club, &made["freeTimes"]), [(1, 4)]);
    assert_eq!(hours(&club, &made["sharedTimes"]), [(1, 4)]);
    let location = answer.header("location").unwrap();
    assert_eq!(club.by(CAROL).get(location).expect(200).json(), made);
}

#[rstest]
fn a_bad_room_is_refused_with_every_violation(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let refused = club.by(BOB).post("/api/rooms", json!({"place": "", "admins": [], "timeStart": 5}));
    assert_eq!(refused.expect(400).pointers(), ["/admins", "/place", "/timeEnd", "/timeStart"]);
    let body = merge([room_body(&club, BOB, "x", (4, 1))]);
    assert_eq!(club.by(BOB).post("/api/rooms", body).expect(400).pointers(), ["/timeEnd"]);
    let body = merge([room_body(&club, BOB, "x", (1, 1))]);
    assert_eq!(club.by(BOB).post("/api/rooms", body).expect(400).pointers(), ["/timeEnd"]);
    let body = merge([room_body(&club, BOB, "x", (1, 2)), json!({"admins": [id(BOB), id("nobody")]})]);
    assert_eq!(club.by(BOB).post("/api/rooms", body).expect(400).pointers(), ["/admins/1"]);
    let body = merge([room_body(&club, BOB, &"あ".repeat(33), (1, 2))]);
    assert_eq!(club.by(BOB).post("/api/rooms", body).expect(400).pointers(), ["/place"]);
    club.by(BOB).post("/api/rooms", room_body(&club, BOB, &"あ".repeat(32), (1, 2))).expect(201);
    club.anonymous().post("/api/rooms", room_body(&club, BOB, "x", (1, 2))).expect(401);
}

#[rstest]
fn keys_of_places_with_runs_of_white_space_are_migrated(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for place in ["S 516", "S 517"] {
        event(&club, BOB, At::Place(place), (1, 2));
    }
    let conn = &mut club.connect();
    conn.batch_execute("INSERT INTO places (key) VALUES ('s \t\n516')").unwrap();
    for table in ["rooms", "events"] {
        conn.batch_execute(&format!("UPDATE {table} SET place_key = 's \t\n516' WHERE place_key = 's 516'")).unwrap();
    }
    conn.batch_execute("DELETE FROM places WHERE key = 's 516'").unwrap();
    conn.batch_execute(if club.is_postgres() {
        include_str!("../../migrations/postgres/2026-11-23-020000_place_keys/up.sql")
    } else {
        include_str!("../../migrations/sqlite/2026-11-23-020000_place_keys/up.sql")
    })
    .unwrap();
    let keys = places::table.order(places::key).select(places::key).load::<String>(conn).unwrap();
    assert_eq!(keys, ["s 516", "s 517"]);
    assert_eq!(rooms::table.order(rooms::place_key).select(rooms::place_key).load::<String>(conn).unwrap(), keys);
    assert_eq!(events::table.order(events::place_key).select(events::place_key).load::<String>(conn).unwrap(), keys);
}

/// Otherwise they would be ignored as unknown, and the request would do more than its author wants.
#[rstest]
fn parameters_are_known_in_any_case_of_letters(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let table = format!("{HEADER}\n{ROW}\n{}", ROW.replace("S516", "S517"));
    for dry_run in ["dryrun=true", "DRYRUN=1", "DryRun=true", "dry%72UN=true"] {
        import(&club, ALICE, &format!("?{dry_run}"), &table).expect(200);
        let body = event_body(&club, BOB, At::Place("x"), (1, 2));
        club.by(BOB).post(&format!("/api/events?{dry_run}"), body).expect(200);
    }
    assert_eq!(club.by(BOB).get("/api/rooms").json(), json!([]));
    let rooms = each(&import(&club, ALICE, "", &table).expect(201).json(), "roomId");
    let other = room(&club, BOB, "other", (1, 2));
    let get = |query: &str| club.by(BOB).get(&format!("/api/rooms?{query}"));
    assert_eq!(each(&get("onlyverified=true").json(), "roomId"), rooms);
    let first = get("LIMIT=1&onlyverified=1");
    assert_eq!(each(&first.json(), "roomId"), rooms[..1]);
    let next = first.header("link").unwrap().split(['<', '>']).nth(1).unwrap().to_owned();
    let next = next.split_once('?').unwrap().1.replace("cursor", "CURSOR");
    assert_eq!(each(&get(&next).json(), "roomId"), rooms[1..]);
    assert_eq!(each(&get("DATEEND=2029-01-01T00:00:00Z").json(), "roomId"), [&*other]);
    for twice in ["limit=1&Limit=1", "LIMIT=1&limit=2"] {
        let refused = get(twice).refused(400, "invalid-parameter");
        assert_eq!(refused["violations"][0]["parameter"], "limit");
        assert_eq!(refused["violations"][0]["code"], "duplicate");
    }
    let body = event_body(&club, BOB, At::Place("x"), (1, 2));
    club.by(BOB).post("/api/events?dryRun=false&dryrun=true", body).refused(400, "invalid-parameter");
}

#[rstest]
fn one_place_however_it_is_written(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    verified_room(&club, ALICE, "V9-00", (0, 9));
    event(&club, BOB, At::Place("V9-00"), (1, 2));
    for place in ["V9−00", "V9－00", "v9‐00\u{200b}", "V9–\u{2060}00\u{fe0f}", "\u{2800}V9〜00\u{ad}", "Ｖ９～００"]
    {
        declare(&club, BOB, At::Place(place), (1, 2)).refused(409, "room-conflict");
        let other = room(&club, BOB, place, (1, 2));
        club.by(ALICE).post(&format!("/api/rooms/{other}/verified"), json!({})).refused(409, "room-overlap");
    }
    for place in ["V9 00", "V900", "Ѵ9-00", "V9ー00"] {
        declare(&club, BOB, At::Place(place), (1, 2)).expect(201);
    }
}

#[rstest]
fn a_name_of_invisible_characters_is_blank(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let group = json!({"name": "", "description": "", "open": true, "admins": [id(BOB)]});
    let requests = [
        ("/api/rooms", room_body(&club, BOB, "x", (1, 2)), "place"),
        ("/api/events", event_body(&club, BOB, At::Place("x"), (1, 2)), "place"),
        ("/api/events", event_body(&club, BOB, At::Place("x"), (1, 2)), "name"),
        ("/api/draft-events", poll_body(&club, BOB), "name"),
        ("/api/groups", group, "name"),
        ("/api/tags", json!({}), "name"),
    ];
    for (path, body, field) in requests {
        for blank in ["\u{200b}", "\u{2060}\u{fe0f} ", "\u{2800}", "\u{3164}\u{e0020}"] {
            let body = merge([body.clone(), json!({field: blank})]);
            let refused = club.by(BOB).post(path, body).refused(400, "invalid-body");
            assert_eq!(refused["violations"][0]["code"], "blank", "{path} {blank:?}");
        }
    }
}

/// Keys as the former versions stored them.
#[rstest]
fn keys_of_places_are_recomputed_once(#[values(Sqlite, Postgres)] backend: Backend) {
    let mut club = Club::start(backend);
    let room = verified_room(&club, ALICE, "V9-00", (0, 9));
    let events = ["V9-00", "x", "Discord"].map(|place| event(&club, BOB, At::Place(place), (1, 2)));
    let former = "V9−00\u{200b}";
    club.stop_all();
    let conn = &mut club.connect();
    let of_event = events::id.eq(DbUuid(events[1].parse().unwrap()));
    let key = "v9−00\u{200b}";
    diesel::insert_into(places::table).values(places::key.eq(key)).execute(conn).unwrap();
    let own_room: DbUuid = events::table.filter(of_event).select(events::room_id).first(conn).unwrap();
    diesel::update(events::table.filter(of_event))
        .set((events::place.eq(former), events::place_key.eq(key)))
        .execute(conn)
        .unwrap();
    diesel::update(rooms::table.find(own_room))
        .set((rooms::place.eq(former), rooms::place_key.eq(key)))
        .execute(conn)
        .unwrap();
    conn.batch_execute("DELETE FROM __diesel_schema_migrations WHERE version = '20261125020000'").unwrap();

    let mut first = Process::beside(&club, &[]);
    first.signal("TERM");
    assert!(first.wait().success());
    let log = first.log().join("\n");
    assert!(log.contains("1 conflicts at places"), "{log}");
    assert!(log.contains(&events[0]) && log.contains(&events[1]) && !log.contains(&events[2]), "{log}");
    let keys = |conn: &mut AnyConnection| {
        let places: Vec<String> = places::table.order(places::key).select(places::key).load(conn).unwrap();
        let events: Vec<String> = events::table.order(events::place_key).select(events::place_key).load(conn).unwrap();
        let rooms: Vec<String> = rooms::table.order(rooms::place_key).select(rooms::place_key).load(conn).unwrap();
        (places, events, rooms)
    };
    let (places, of_events, of_rooms) = keys(conn);
    assert_eq!(places, ["discord", "v9-00"]);
    assert_eq!(of_events, ["discord", "v9-00", "v9-00"]);
    assert_eq!(of_rooms, ["discord", "v9-00", "v9-00", "v9-00"]);

    let mut second = Process::beside(&club, &[]);
    second.signal("TERM");
    assert!(second.wait().success());
    assert!(!second.log().join("\n").contains("conflict"), "logged once");
    club.start_another();
    for event in &events {
        assert_eq!(club.by(BOB).get(&format!("/api/events/{event}")).expect(200).json()["eventId"], json!(event));
    }
    club.by(BOB).get(&format!("/api/rooms/{room}")).expect(200);
    declare(&club, CAROL, At::Place("V9-00"), (1, 2)).refused(409, "room-conflict");
}

#[rstest]
fn files_of_spreadsheets_in_japan_are_imported(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let text = format!("{HEADER}\r\n講習会,2030/4/4,2030-04-04,9:00,10:00:00,講義室1\r\n,,,,,\r\n");
    let send =
        |bytes: Vec<u8>| club.by(ALICE).header("content-type", "text/csv").send_bytes("POST", "/api/rooms/all", bytes);
    let made = send(encoding_rs::SHIFT_JIS.encode(&text).0.into_owned()).expect(201).json();
    assert_eq!(each(&made, "place"), ["講義室1"]);
    assert_eq!(each(&made, "timeStart"), ["2030-04-04T09:00:00+09:00"]);
    let utf_16 = format!("\u{feff}{}", text.replace(',', "\t")).encode_utf16().flat_map(u16::to_be_bytes).collect();
    assert_eq!(send(utf_16).expect(201).json(), made);
    let quote = format!("{HEADER},Note\n{ROW},\"projector\n{ROW},\n{ROW},\n").replace("2030/04/04", "2031/4/4");
    assert_eq!(rows(&send(quote.into_bytes()).refused(400, "bad-import")), [(2, "bad-quotes".to_owned())]);
    let latin = send(b"Subject\xe9".to_vec()).refused(400, "bad-import");
    assert_eq!(rows(&latin), [(0, "unknown-encoding".to_owned())]);
}

#[rstest]
fn the_list_takes_rooms_whose_period_overlaps_the_span(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let late = room(&club, BOB, "b", (5, 6));
    let second = room(&club, BOB, "b", (1, 4));
    let first = verified_room(&club, BOB, "a", (1, 2));
    let long = room(&club, BOB, "long", (-100, 100));
    let ids = |query: &str| each(&club.by(CAROL).get(&format!("/api/rooms{query}")).expect(200).json(), "roomId");
    let at = |hours| hours_from_now(&club, hours);
    assert_eq!(ids(""), [&*long, &*first, &*second, &*late], "by timeStart, place, id");
    assert_eq!(ids("?onlyVerified=true"), [&*first]);
    let (two, four, five) = (at(2), at(4), at(5));
    assert_eq!(ids(&format!("?dateBegin={two}&dateEnd={five}")), [&*long, &*second], "touching is not overlapping");
    assert_eq!(ids(&format!("?dateBegin={four}")), [&*long, &*late]);
    assert_eq!(ids(&format!("?dateEnd={two}")), [&*long, &*first, &*second]);
    assert_eq!(
        ids(&format!("?dateBegin={five}&dateEnd={five}")),
        [&*long, &*late],
        "an instant, here the first of a room"
    );
    assert_eq!(ids(&format!("?dateBegin={four}&dateEnd={four}")), [&*long], "the first instant after a room");
    let refused = |query: &str| club.by(CAROL).get(&format!("/api/rooms{query}")).expect(400).pointers();
    assert_eq!(refused(&format!("?dateBegin={five}&dateEnd={two}")), ["dateEnd"]);
    assert_eq!(
        refused("?dateBegin=yesterday&excludeEventID=1&onlyVerified=yes"),
        ["dateBegin", "excludeEventID", "onlyVerified"]
    );
    club.anonymous().get("/api/rooms").expect(401);
}

#[rstest]
fn free_and_shared_times_exclude_events(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let room = verified_room(&club, BOB, "S516", (0, 10));
    let exclusive = event(&club, BOB, At::Room(&room), (2, 3));
    declare_shared(&club, BOB, At::Room(&room), (5, 7)).expect(201);
    declare_shared(&club, BOB, At::Room(&room), (6, 8)).expect(201);
    let path = format!("/api/rooms/{room}");
    let shown = club.by(CAROL).get(&path).expect(200).json();
    assert_eq!(hours(&club, &shown["freeTimes"]), [(0, 2), (3, 5), (8, 10)]);
    assert_eq!(hours(&club, &shown["sharedTimes"]), [(0, 2), (3, 10)]);
    let listed = club.by(CAROL).get("/api/rooms").expect(200).json();
    assert_eq!(listed[0], shown);
    let without = club.by(CAROL).get(&format!("{path}?excludeEventID={exclusive}")).expect(200).json();
    assert_eq!(hours(&club, &without["freeTimes"]), [(0, 5), (8, 10)]);
    assert_eq!(club.by(CAROL).get(&format!("/api/rooms?excludeEventID={exclusive}")).json()[0], without);
    // Events in the verified room exclude an unverified room of the place, and vice versa.
    let other = self::room(&club, CAROL, "ｓ516", (1, 4));
    let shown = club.by(CAROL).get(&format!("/api/rooms/{other}")).expect(200).json();
    assert_eq!(hours(&club, &shown["freeTimes"]), [(1, 2), (3, 4)]);
}

#[rstest]
fn unknown_rooms_are_404(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let nowhere = format!("/api/rooms/{}", id("nothing"));
    club.by(ALICE).get(&nowhere).refused(404, "not-found");
    club.by(ALICE).delete(&nowhere).refused(404, "not-found");
    club.by(ALICE).get(&format!("{nowhere}/events")).refused(404, "not-found");
    club.by(ALICE).post(&format!("{nowhere}/verified"), json!({})).refused(404, "not-found");
    club.by(ALICE).delete(&format!("{nowhere}/verified")).refused(404, "not-found");
    assert_eq!(
        club.by(ALICE).get("/api/rooms/00000000-0000-0000-0000-000000000000").expect(400).pointers(),
        ["roomID"]
    );
}

#[rstest]
fn a_room_with_events_to_come_is_deleted_only_with_force(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let room = verified_room(&club, BOB, "S516", (-5, 10));
    let past = event(&club, BOB, At::Room(&room), (-4, -3));
    let later = event(&club, CAROL, At::Room(&room), (4, 5));
    let sooner = event(&club, CAROL, At::Room(&room), (2, 3));
    let path = format!("/api/rooms/{room}");
    club.by(CAROL).delete(&path).refused(403, "forbidden");
    let refused = club.by(BOB).delete(&path).refused(409, "events-to-come");
    assert_eq!(refused["events"], json!([sooner, later]));
    let before = club.by(BOB).get(&path).json();
    assert_eq!(club.by(BOB).delete(&format!("{path}?force=true")).expect(200).json(), before);
    club.by(BOB).get(&path).refused(404, "not-found");
    club.by(BOB).delete(&path).refused(404, "not-found");
    club.by(BOB).get(&format!("/api/events/{later}")).refused(404, "not-found");
    assert_eq!(club.by(BOB).get(&format!("/api/events/{past}")).expect(200).json()["room"]["roomId"], room);
    let activity = club.by(BOB).get("/api/activity/events").expect(200).json();
    let deleted: Vec<_> = activity.as_array().unwrap().iter().filter(|e| e["deletedAt"].is_string()).collect();
    assert_eq!(deleted.len(), 2);
    assert_eq!(club.by(BOB).get("/api/rooms").json(), json!([]));
    // A privileged user need not be an administrator.
    let other = self::room(&club, BOB, "S517", (1, 2));
    club.by(ALICE).delete(&format!("/api/rooms/{other}")).expect(200);
}

#[rstest]
fn only_privileged_users_verify(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let room = room(&club, BOB, "S516", (1, 4));
    let path = format!("/api/rooms/{room}/verified");
    club.by(BOB).post(&path, json!({})).refused(403, "forbidden");
    club.by(BOB).delete(&path).refused(403, "forbidden");
    for _ in 0..2 {
        club.by(ALICE).send("POST", &path, None).expect(204);
        assert_eq!(club.by(BOB).get(&format!("/api/rooms/{room}")).json()["verified"], true);
    }
    for _ in 0..2 {
        club.by(ALICE).delete(&path).expect(204);
        assert_eq!(club.by(BOB).get(&format!("/api/rooms/{room}")).json()["verified"], false);
    }
}

#[rstest]
fn verified_rooms_on_one_place_never_overlap(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let first = verified_room(&club, BOB, "S516", (1, 4));
    verified_room(&club, BOB, "s516", (4, 6));
    verified_room(&club, BOB, "S517", (1, 4));
    let second = room(&club, BOB, "Ｓ５１６", (3, 4));
    let refused = club.by(ALICE).post(&format!("/api/rooms/{second}/verified"), json!({}));
    assert_eq!(refused.refused(409, "room-overlap")["rooms"], json!([first]));
    club.by(ALICE).delete(&format!("/api/rooms/{first}/verified")).expect(204);
    club.by(ALICE).post(&format!("/api/rooms/{second}/verified"), json!({})).expect(204);
}

#[rstest]
fn verifying_is_refused_if_events_would_conflict(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let taken = event(&club, BOB, At::Place("S516"), (2, 3));
    let room = room(&club, BOB, "S516", (1, 4));
    let mine = event(&club, BOB, At::Room(&room), (2, 4));
    let refused = club.by(ALICE).post(&format!("/api/rooms/{room}/verified"), json!({}));
    let problem = refused.refused(409, "room-conflict");
    assert_eq!(each(&problem["conflicts"], "eventId"), [taken]);
    assert_eq!(hours(&club, &problem["freeTimes"]), [(1, 2)], "its own event counts, too");
    club.by(BOB).delete(&format!("/api/events/{mine}")).expect(204);
    club.by(ALICE).post(&format!("/api/rooms/{room}/verified"), json!({})).expect(204);
}

#[rstest]
fn verifying_is_refused_if_events_in_other_rooms_would_conflict(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let room = room(&club, BOB, "S516", (1, 4));
    let one = event(&club, BOB, At::Place("S516"), (0, 3));
    let other = event(&club, CAROL, At::Place("s516"), (2, 6));
    let shares = declare_shared(&club, BOB, At::Place("S516"), (3, 4)).expect(201).json();
    // Another event overlaps this one, but not during the room's period.
    event(&club, CAROL, At::Place("S516"), (4, 8));
    let verify = || club.by(ALICE).post(&format!("/api/rooms/{room}/verified"), json!({}));
    let problem = verify().refused(409, "room-conflict");
    assert_eq!(each(&problem["conflicts"], "eventId"), [&*one, &*other, shares["eventId"].as_str().unwrap()]);
    assert_eq!(hours(&club, &problem["freeTimes"]), []);
    club.by(CAROL)
        .put(&format!("/api/events/{other}"), event_body(&club, CAROL, At::Place("S516"), (4, 6)))
        .expect(200);
    verify().expect(204);
    club.by(BOB).put(&format!("/api/events/{one}"), event_body(&club, BOB, At::Place("S516"), (0, 2))).expect(200);
}

#[rstest]
fn an_import_is_refused_if_events_would_conflict(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let at = |place: &str, from: &str, to: &str| {
        let times =
            json!({"timeStart": format!("2030-04-04T{from}+09:00"), "timeEnd": format!("2030-04-04T{to}+09:00")});
        let body = merge([event_body(&club, BOB, At::Place(place), (1, 2)), times]);
        text(&club.by(BOB).post("/api/events", body).expect(201).json()["eventId"])
    };
    let taken = [at("S516", "17:00:00", "19:00:00"), at("s516", "18:30:00", "20:00:00")];
    at("S516", "12:00:00", "13:00:00");
    at("S516", "12:00:00", "13:00:00");
    at("S517", "18:00:00", "19:00:00");
    let table = format!("{HEADER}\nx,2030/04/04,2030/04/04,18:00,21:00,S517\n{ROW}");
    for query in ["?dryRun=true", ""] {
        let problem = import(&club, ALICE, query, &table).refused(409, "room-conflict");
        assert_eq!(each(&problem["conflicts"], "eventId"), taken);
        assert_eq!(each(&problem["freeTimes"], "timeStart"), ["2030-04-04T20:00:00+09:00"]);
        assert_eq!(rows(&problem), [(3, "events-conflict".to_owned())]);
    }
    let verified = club.by(BOB).get("/api/rooms?onlyVerified=true").json();
    assert_eq!(verified, json!([]), "all rows or none");
    club.by(BOB).delete(&format!("/api/events/{}", taken[1])).expect(204);
    import(&club, ALICE, "", &table).expect(201);
}

#[rstest]
fn an_instant_room_disappears_with_the_last_event_that_uses_it(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let shared = json!({"sharedRoom": true});
    let put = |event: &str, at: At<'_>| {
        let body = merge([event_body(&club, BOB, at, (2, 3)), shared.clone()]);
        club.by(BOB).put(&format!("/api/events/{event}"), body).expect(200);
    };
    let gone_group = group(&club, BOB, "gone", &[BOB]);
    for (round, leave) in ["delete", "move", "group", "room"].into_iter().enumerate() {
        let owner = declare_shared(&club, BOB, At::Place("Discord"), (1, 4)).expect(201).json();
        let room = text(&owner["room"]["roomId"]);
        let guests: Vec<_> = ["first", "last"]
            .iter()
            .map(|name| {
                let last = json!({"name": name, "groupId": if leave == "group" { &gone_group } else { EVERYONE }});
                let body = merge([event_body(&club, BOB, At::Room(&room), (2, 3)), shared.clone(), last]);
                text(&club.by(BOB).post("/api/events", body).expect(201).json()["eventId"])
            })
            .collect();
        let owner = text(&owner["eventId"]);
        if round % 2 == 0 {
            put(&owner, At::Place("Zoom"));
        } else {
            club.by(BOB).delete(&format!("/api/events/{owner}")).expect(204);
        }
        let status = || club.by(BOB).get(&format!("/api/rooms/{room}")).status;
        let other = self::room(&club, BOB, "Discord", (0, 9));
        if leave != "group" {
            put(&guests[0], At::Place("Zoom"));
            assert_eq!(status(), 200, "{leave}: one event still uses it");
        }
        match leave {
            "delete" => drop(club.by(BOB).delete(&format!("/api/events/{}", guests[1])).expect(204)),
            "move" => put(&guests[1], At::Place("Zoom")),
            "room" => put(&guests[1], At::Room(&other)),
            _ => drop(club.by(BOB).delete(&format!("/api/groups/{gone_group}?force=true")).expect(204)),
        }
        assert_eq!(status(), 404, "{leave}");
        // A room that a user made stays.
        assert_eq!(club.by(BOB).get(&format!("/api/rooms/{other}")).status, 200);
    }
    // A verified room does not belong to an event.
    let owner = declare_shared(&club, BOB, At::Place("S516"), (1, 4)).expect(201).json();
    let room = text(&owner["room"]["roomId"]);
    club.by(ALICE).post(&format!("/api/rooms/{room}/verified"), json!({})).expect(204);
    club.by(ALICE).delete(&format!("/api/rooms/{room}/verified")).expect(204);
    club.by(BOB).delete(&format!("/api/events/{}", text(&owner["eventId"]))).expect(204);
    club.by(BOB).get(&format!("/api/rooms/{room}")).expect(200);
}

#[rstest]
fn a_verified_instant_room_no_longer_belongs_to_its_event(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let event = event(&club, BOB, At::Place("S516"), (2, 3));
    let path = format!("/api/events/{event}");
    let room = text(&club.by(BOB).get(&path).json()["room"]["roomId"]);
    club.by(ALICE).post(&format!("/api/rooms/{room}/verified"), json!({})).expect(204);
    club.by(BOB).delete(&path).expect(204);
    assert_eq!(club.by(BOB).get(&format!("/api/rooms/{room}")).expect(200).json()["verified"], true);
}

#[rstest]
fn an_import_makes_verified_rooms_of_all_rows(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let table = "\u{feff}Location,End time,Start time,End date,Start date,Subject,More\r\n\
            S516,21:00,18:00,2030/04/04,2030/04/04,club,x\r\n\r\n\"S517, left\",09:00,23:30,2030/04/05,2030/04/04,,\r\n";
    let checked = import(&club, ALICE, "?dryRun=true", table).expect(200).json();
    assert_eq!(checked.as_array().unwrap().len(), 2);
    assert_eq!(club.by(BOB).get("/api/rooms").json(), json!([]), "nothing is made by a dry run");
    let made = import(&club, ALICE, "", table).expect(201).json();
    assert_eq!(each(&made, "place"), ["S516", "S517, left"]);
    assert_eq!(each(&made, "timeStart"), ["2030-04-04T18:00:00+09:00", "2030-04-04T23:30:00+09:00"]);
    assert!(made.as_array().unwrap().iter().all(|room| room["verified"] == true));
    assert_eq!(made[0]["admins"], json!([id(ALICE)]));
    assert_eq!(club.by(BOB).get("/api/rooms").json(), made);
    // A second import with a duplicate row returns the same rooms.
    let again = import(&club, ALICE, "", &format!("{HEADER}\n{ROW}\n{ROW}\nx,2030/05/01,2030/05/01,1.00,02:00,S516"));
    assert_eq!(again.expect(400).json()["violations"][0]["row"], 4);
    let again = format!("{HEADER}\n{ROW}\nclub,2030/05/01,2030/05/01,01:00,02:00,S516\n{ROW}\n");
    let again = import(&club, ALICE, "", &again).expect(201).json();
    assert_eq!((&again[0], &again[2]), (&made[0], &made[0]));
    assert_eq!(club.by(BOB).get("/api/rooms").json().as_array().unwrap().len(), 3);
}

#[rstest]
fn a_bad_row_imports_nothing_and_all_bad_rows_are_listed(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let table = format!("{HEADER}\n{ROW}\nclub,2030/04,2030/04/04,18:00,25:00,\n");
    let problem = import(&club, ALICE, "", &table).refused(400, "bad-import");
    let found: Vec<_> = problem["violations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|v| (v["row"].as_u64().unwrap(), text(&v["column"]), text(&v["code"])))
        .collect();
    let expected = [(3, "Start date", "bad-date"), (3, "End time", "bad-time"), (3, "Location", "blank")];
    assert_eq!(found, expected.map(|(row, column, code)| (row, column.to_owned(), code.to_owned())));
    let inside = format!("{HEADER}\n{ROW}\nclub,2030/04/04,2030/04/04,20:00,22:00,s516\n");
    let problem = import(&club, ALICE, "", &inside).refused(400, "bad-import");
    assert_eq!(problem["violations"][0]["code"], "overlaps-row");
    assert_eq!(club.by(BOB).get("/api/rooms").json(), json!([]));
    let many = format!("{HEADER}\n{}", format!("{ROW}\n").repeat(1001));
    import(&club, ALICE, "", &many).refused(400, "bad-import");
    import(&club, ALICE, "", "").refused(400, "bad-import");
}

#[rstest]
fn an_import_must_not_overlap_verified_rooms(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let first = import(&club, ALICE, "", &format!("{HEADER}\n{ROW}")).expect(201).json();
    let overlapping = format!("{HEADER}\nx,2030/04/04,2030/04/04,20:00,22:00,s516");
    let problem = import(&club, ALICE, "", &overlapping).refused(409, "room-overlap");
    assert_eq!(problem["rooms"], json!(each(&first, "roomId")));
    assert_eq!(rows(&problem), [(2, "overlaps-room".to_owned())]);
    let minutes = (0..150).map(|n| {
        format!("x,2030/4/4,2030/4/4,{}:{:02},{}:{:02},S516\n", 18 + n / 60, n % 60, 18 + (n + 1) / 60, (n + 1) % 60)
    });
    let problem =
        import(&club, ALICE, "", &format!("{HEADER}\n{}", minutes.collect::<String>())).refused(409, "room-overlap");
    assert_eq!((rows(&problem).len(), &problem["moreViolations"]), (100, &json!(50)));
    import(&club, ALICE, "?dryRun=true", &overlapping).refused(409, "room-overlap");
    import(&club, BOB, "", &format!("{HEADER}\n{ROW}")).refused(403, "forbidden");
    club.by(ALICE).post("/api/rooms/all", json!([])).refused(415, "unsupported-media-type");
    let large = format!("{HEADER}\n{}", " ".repeat(2 << 20));
    import(&club, ALICE, "", &large).refused(413, "payload-too-large");
}

#[rstest]
fn ended_rooms_can_still_be_listed_and_deleted(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let room = room(&club, BOB, "S516", (1, 2));
    event(&club, BOB, At::Room(&room), (1, 2));
    club.clock.advance(TimeDelta::hours(3));
    club.by(BOB).delete(&format!("/api/rooms/{room}")).expect(200);
    let body = merge([event_body(&club, BOB, At::Room(&room), (-2, -1)), span(&club, -2, -1)]);
    assert_eq!(club.by(BOB).post("/api/events", body).expect(400).pointers(), ["/roomId"]);
    declare(&club, BOB, At::Place("S516"), (1, 2)).expect(201);
}

#[rstest]
fn queries_use_indexes(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let room = verified_room(&club, ALICE, "S516", (0, 9));
    // Lists have more than one row.
    event(&club, BOB, At::Room(&verified_room(&club, ALICE, "S517", (0, 9))), (1, 2));
    event(&club, BOB, At::Room(&room), (1, 2));
    let room = DbUuid(room.parse().unwrap());
    let at = |hours| DbTimestamp(hours_from_now(&club, hours));
    let period = |place_key| RoomPeriod { room, place_key, starts_at: at(0), ends_at: at(9) };
    let booking = Booking { room: period("s516"), starts_at: at(1), ends_at: at(2), shared: false, except: None };
    plans::check(&club, |conn| {
        refuse_conflicts(conn, &booking, UTC).unwrap_err();
    });
    plans::check(&club, |conn| {
        refuse_conflicts_of_verified(conn, &[period("s516")], UTC).unwrap();
    });
    plans::check(&club, |conn| {
        refuse_conflicts_of_verified(conn, &[period("s516"), period("s517")], UTC).unwrap();
    });
    for (from, to) in [(Some(at(-10)), Some(at(100))), (Some(at(-10)), None), (None, Some(at(100)))] {
        let selection = queries::Selection { from, to, ..queries::Selection::default() };
        plans::check(&club, |conn| {
            queries::load(conn, &selection, None).unwrap();
        });
    }
    plans::check(&club, |conn| {
        queries::get(conn, room, None).unwrap();
    });
}

#[rstest]
fn pages_are_not_sorted_out_of_whole_lists(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let now = DbTimestamp(club.clock.now());
    for (from, to) in [(None, None), (Some(now), None), (None, Some(now)), (Some(now), Some(now))] {
        let selection = queries::Selection { from, to, ..queries::Selection::default() };
        let longest = PageBounds { after: None, rows: 1001 };
        for page in plans::pages((now, "S516".to_owned(), id(BOB))).into_iter().chain([longest]) {
            plans::check_page(&club, |conn| {
                queries::load_page(conn, &selection, None, &page).unwrap();
            });
        }
    }
}

/// A club on PostgreSQL with one room a day for thirteen years, at these places in turn, with four events in each.
fn club_with_a_room_for_each_of_5000_days(places: u32) -> (Club, PgConnection) {
    let club = Club::start_with(Backend::Postgres, &[]);
    let room = verified_room(&club, ALICE, "S516", (0, 9));
    event(&club, BOB, At::Room(&room), (1, 2));
    let AnyConnection::Postgresql(mut conn) = club.connect() else { panic!("no PostgreSQL") };
    let copies = format!(
        "INSERT INTO places (key) SELECT place FROM generate_series(1, {places} - 1) AS place;
        WITH copies AS (
            INSERT INTO rooms SELECT (jsonb_populate_record(room, jsonb_build_object(
                'id', gen_random_uuid(), 'starts_at', starts_at + day * interval '1 day',
                'ends_at', ends_at + day * interval '1 day', 'reach_from', reach_from + day * interval '1 day',
                'place_key', CASE WHEN day % {places} = 0 THEN place_key ELSE (day % {places})::text END
            ))).* FROM rooms room, generate_series(1, 5000) day RETURNING id, starts_at, place_key
        )
        INSERT INTO events SELECT (jsonb_populate_record(event, jsonb_build_object(
            'id', gen_random_uuid(), 'room_id', copies.id, 'starts_at', copies.starts_at + hour * interval '1 hour',
            'ends_at', copies.starts_at + (hour + 1) * interval '1 hour', 'place_key', copies.place_key
        ))).* FROM events event, generate_series(1, 4) hour, copies"
    );
    conn.batch_execute(&copies).unwrap();
    conn.batch_execute("ANALYZE rooms, events").unwrap();
    (club, conn)
}

/// PostgreSQL keeps the plans of the searches for what overlaps a span. It plans a statement for the values of each of
/// the first five executions, and later only if such plans promise to be better, as for a span with less than a 200th of
/// all rows.
/// Takes seconds: the database gets thousands of rooms.
#[test]
fn postgres_keeps_plans() {
    #[derive(QueryableByName)]
    struct Statement {
        #[diesel(sql_type = Text)]
        text: String,
    }
    let (club, mut conn) = club_with_a_room_for_each_of_5000_days(50);
    let room: queries::Row =
        rooms::table.order(rooms::starts_at).select(queries::Row::as_select()).first(&mut conn).unwrap();
    let span = queries::Selection {
        from: Some(room.starts_at),
        to: Some(DbTimestamp(room.starts_at.plus(TimeDelta::days(60)))),
        ..queries::Selection::default()
    };
    let mut conn = club.connect();
    for _ in 0..6 {
        assert_eq!(queries::get(&mut conn, room.id, None).unwrap().row.id, room.id);
        assert_eq!(queries::load(&mut conn, &span, None).unwrap().len(), 60);
    }
    let planned = "SELECT statement AS text FROM pg_prepared_statements WHERE generic_plans = 0 AND custom_plans > 0";
    let planned: Vec<Statement> = sql_query(planned).load(&mut conn).unwrap();
    let planned: Vec<_> = planned.into_iter().map(|statement| statement.text).collect();
    assert!(planned.is_empty(), "planned for each execution: {planned:#?}");
}

/// SQLite has no statistics here, so it has one plan for any number of rows.
/// Takes seconds: the database gets thousands of rooms.
#[test]
fn postgres_scans_no_table_for_some_of_many_rooms() {
    #[derive(QueryableByName)]
    struct Ids {
        #[diesel(sql_type = Text)]
        value: String,
    }
    #[derive(QueryableByName)]
    struct Times {
        #[diesel(sql_type = Text)]
        first: String,
        #[diesel(sql_type = Text)]
        last: String,
    }
    let (club, mut conn) = club_with_a_room_for_each_of_5000_days(1);
    for count in [1, 16, 64, 1000] {
        let ids: Ids = sql_query(format!(
            "SELECT array_agg(id)::text AS value FROM (SELECT id FROM rooms ORDER BY starts_at LIMIT {count}) AS room"
        ))
        .get_result(&mut conn)
        .unwrap();
        let uids: Vec<_> =
            ids.value.trim_matches(['{', '}']).split(',').map(|id| DbUuid(id.parse().unwrap())).collect();
        let sent = plans::statements(&club, |conn| {
            queries::load_listed(conn, &uids).unwrap();
        });
        let (list, one) = (format!("'{}'", ids.value), format!("'{}'", uids[0]));
        let times: Times = sql_query(format!(
            "SELECT min(starts_at)::text AS first, max(ends_at)::text AS last FROM rooms WHERE id = ANY('{}')",
            ids.value
        ))
        .get_result(&mut conn)
        .unwrap();
        let (start, end) = (format!("'{}'::timestamptz", times.first), format!("'{}'", times.last));
        let (short, long) = (format!("{start} - interval '24 hours', {end}, {start}"), format!("{end}, {start}"));
        for sql in &sent {
            let ids = if sql.contains(" = ANY(") { &list } else { &one };
            let values = match sql {
                sql if sql.contains(" UNION ALL ") => format!("'s516', {short}, 's516', {long}"),
                sql if sql.contains("\"is_long\"") => format!("{short}, {long}"),
                // The administrators of each room are one value, which Diesel selects with a limit of 1.
                sql if sql.contains("LIMIT $3") => format!("1, {ids}, 1000"),
                _ => ids.clone(),
            };
            for mode in ["force_custom_plan", "force_generic_plan"] {
                conn.batch_execute(&format!("SET plan_cache_mode = {mode}; PREPARE explained AS {sql}")).unwrap();
                let plan = plans::run_explain(&mut conn, &format!("EXPLAIN EXECUTE explained({values})"));
                conn.batch_execute("DEALLOCATE explained").unwrap();
                // A scan is allowed if a thousand of the five thousand rooms are selected.
                let is_allowed = |step: &String| count == 1000 && step.starts_with("Seq Scan on rooms  (");
                let is_bad = |step: &String| plans::reads_everything(step) && !is_allowed(step);
                assert!(!plan.iter().any(is_bad), "{count}, {mode}: {sql}\n{}", plan.join("\n"));
            }
        }
        // Nothing but the room itself uses the place of a single room, so the verified rooms do not matter.
        assert_eq!(sent.len(), if count == 1 { 2 } else { 3 }, "{sent:?}");
    }
}

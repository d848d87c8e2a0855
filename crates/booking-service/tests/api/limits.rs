//! Limits: the first and last times, the longest lists, and malicious bodies.

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;

use booking_service::schema::{events, groups, users};
use common::time::Timestamp;
use diesel::prelude::*;
use serde_json::{Value, json};
use service_kit::{
    database::types::{DbTimestamp, DbUuid},
    with_connection,
};
use uuid::Uuid;

use crate::{
    builders::{At, EVERYONE, declare, each, event, event_body, group, merge, room_body, text, verified_room},
    harness::{ALICE, Answer, BOB, CAROL, Club, id},
};

/// Inserts `count` users and returns their ids.
fn add_users(club: &Club, count: usize) -> Vec<DbUuid> {
    let (conn, now) = (&mut club.connect(), DbTimestamp(club.clock.now()));
    let ids: Vec<_> = (0..count).map(|_| DbUuid::new()).collect();
    let rows: Vec<_> = ids
        .iter()
        .map(|id| {
            (
                users::id.eq(*id),
                users::name.eq(id.to_string()),
                users::display_name.eq(""),
                users::icon.eq(""),
                users::state.eq(1_i16),
                users::privileged.eq(false),
                users::created_at.eq(now),
                users::updated_at.eq(now),
            )
        })
        .collect();
    for rows in rows.chunks(1000) {
        with_connection!(conn, c => diesel::insert_into(users::table).values(rows).execute(c)).unwrap();
    }
    ids
}

fn send(club: &Club, method: &str, path: &str, body: &str) -> Answer {
    let client = club.by(BOB).header("content-type", "application/json");
    client.send_bytes(method, path, body.as_bytes().to_vec())
}

fn times(start: &str, end: &str) -> Value {
    json!({"timeStart": start, "timeEnd": end})
}

#[rstest]
fn the_first_and_the_last_times_are_like_any_other(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for (start, end) in [
        ("0001-01-02T00:00:00Z", "0001-01-02T01:00:00Z"),
        ("9999-12-30T22:59:59.999999Z", "9999-12-30T23:59:59.999999Z"),
    ] {
        let period = merge([room_body(&club, BOB, "S516", (0, 1)), times(start, end)]);
        let room = club.by(BOB).post("/api/rooms", period).expect(201).json();
        let shown = |time: &Value| text(time).parse::<Timestamp>().unwrap();
        assert_eq!(shown(&room["timeStart"]), start.parse().unwrap(), "{room}");
        assert_eq!(shown(&room["timeEnd"]), end.parse().unwrap(), "{room}");
        let room = text(&room["roomId"]);
        let body = merge([event_body(&club, BOB, At::Room(&room), (0, 1)), times(start, end)]);
        let made = text(&club.by(BOB).post("/api/events", body.clone()).expect(201).json()["eventId"]);
        club.by(BOB).post("/api/events", body).refused(409, "room-conflict");
        let room = club.by(BOB).get(&format!("/api/rooms/{room}")).json();
        assert_eq!((&room["freeTimes"], &room["sharedTimes"]), (&json!([]), &json!([])));
        let during = club.by(BOB).get(&format!("/api/events?dateBegin={start}&dateEnd={end}")).json();
        assert_eq!(each(&during, "eventId"), [made]);
    }
    for (start, end) in [
        ("0000-12-31T23:59:59Z", "2030-01-01T00:00:00Z"),
        ("2030-01-01T00:00:00Z", "10000-01-01T00:00:00Z"),
        ("2030-01-01T00:00:00+24:00", "2030-01-01T00:00:00+99:99"),
    ] {
        let body = merge([room_body(&club, BOB, "S516", (0, 1)), times(start, end)]);
        assert!(!club.by(BOB).post("/api/rooms", body).expect(400).pointers().is_empty());
    }
    // The longest possible period.
    let ages = times("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z");
    let room = merge([room_body(&club, BOB, "Hall", (0, 1)), ages.clone()]);
    let room = text(&club.by(BOB).post("/api/rooms", room).expect(201).json()["roomId"]);
    event(&club, BOB, At::Room(&room), (1, 2));
    let body = merge([event_body(&club, BOB, At::Room(&room), (0, 1)), ages]);
    club.by(BOB).post("/api/events", body).refused(409, "room-conflict");
    assert_eq!(club.by(BOB).get(&format!("/api/rooms/{room}")).json()["freeTimes"].as_array().unwrap().len(), 2);
}

#[rstest]
fn times_that_are_equal_after_truncation_are_no_span(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let equal = times("2030-01-01T00:00:00.0000001Z", "2030-01-01T00:00:00.0000009Z");
    let one = times("2030-01-01T00:00:00.0000009Z", "2030-01-01T00:00:00.0000010Z");
    let body = |times: &Value| merge([event_body(&club, BOB, At::Place("x"), (0, 1)), times.clone()]);
    assert_eq!(club.by(BOB).post("/api/events", body(&equal)).expect(400).pointers(), ["/timeEnd"]);
    let made = club.by(BOB).post("/api/events", body(&one)).expect(201).json();
    assert_eq!(made["timeEnd"], "2030-01-01T09:00:00.000001+09:00");
}

#[rstest]
fn long_rooms_and_events_are_found_in_their_middle(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let room = verified_room(&club, ALICE, "S516", (0, 24 * 30));
    let long = event(&club, BOB, At::Room(&room), (10, 24 * 9));
    let problem = declare(&club, BOB, At::Room(&room), (24 * 5, 24 * 5 + 1)).refused(409, "room-conflict");
    assert_eq!(each(&problem["conflicts"], "eventId"), [long]);
    declare(&club, BOB, At::Place("s516"), (24 * 5, 24 * 5 + 1)).refused(409, "room-conflict");
    declare(&club, BOB, At::Place("s516"), (24 * 9, 24 * 9 + 1)).expect(201);
    assert_eq!(club.by(BOB).get(&format!("/api/rooms/{room}")).json()["freeTimes"].as_array().unwrap().len(), 2);
}

/// Takes seconds: the lists have 10,000 people.
#[rstest]
fn ten_thousand_people_fit_in_a_list_and_no_more(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let people = add_users(&club, 10_000);
    let body = merge([room_body(&club, BOB, "S516", (1, 2)), json!({ "admins": people })]);
    let room = club.by(BOB).post("/api/rooms", body).expect(201).json();
    assert_eq!(room["admins"].as_array().unwrap().len(), 10_000);
    let group = json!({"name": "all", "description": "", "open": false, "members": people, "admins": people});
    let group = club.by(BOB).post("/api/groups", group).expect(201).json();
    let change = json!({"groupId": group["groupId"], "admins": people});
    let body = merge([event_body(&club, BOB, At::Place("x"), (1, 2)), change]);
    let made = club.by(BOB).post("/api/events", body.clone()).expect(201).json();
    assert_eq!(made["attendees"].as_array().unwrap().len(), 10_000);
    let path = format!("/api/events/{}", text(&made["eventId"]));
    let changed = club.by(ALICE).put(&path, merge([body, json!({"groupId": EVERYONE})])).expect(200).json();
    assert_eq!(changed["attendees"].as_array().unwrap().len(), 10_004);
    let more: Vec<_> = (0..10_001).map(|_| DbUuid::new()).collect();
    let body = merge([room_body(&club, BOB, "S516", (1, 2)), json!({ "admins": more })]);
    assert_eq!(club.by(BOB).post("/api/rooms", body).expect(400).pointers(), ["/admins"]);
}

/// The number of SQL statements sent by the service.
fn statements(club: &Club) -> u64 {
    let metrics = club.anonymous().get("/metrics").expect(200).text();
    metrics.lines().find_map(|line| line.strip_prefix("db_statements_total ")).unwrap().parse().unwrap()
}

#[rstest]
fn a_thousand_rows_are_imported_at_once(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let header = "Subject,Start date,End date,Start time,End time,Location";
    let row = |n: usize| format!("\nx,2030/01/{:02},2030/01/{:02},18:00,21:00,Room {n}", n % 31 + 1, n % 31 + 1);
    let table = (0..1000).fold(header.to_owned(), |table, n| table + &row(n));
    let import = || {
        let client = club.by(ALICE).header("content-type", "text/csv");
        client.send_bytes("POST", "/api/rooms/all", table.clone().into_bytes()).expect(201).json()
    };
    let before = statements(&club);
    let made = import();
    assert_eq!(made.as_array().unwrap().len(), 1000);
    assert_eq!(import(), made);
    let number = statements(&club) - before;
    assert!(number < 100, "{number} statements");
}

#[rstest]
fn filters_of_every_shape_are_quick(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    event(&club, BOB, At::Place("x"), (1, 2));
    let compare = |n: usize| {
        let (attribute, operator) = (["user", "tag", "group", "event"][n % 4], ["==", "!="][n / 4 % 2]);
        format!("{attribute}{operator}{}", id(BOB))
    };
    let word = |n: usize| ["&&", "||"][n % 2];
    // Both have the most comparisons; the first also has the deepest nesting.
    let nested = (0..31).fold(format!("({})", compare(31)), |inner, n| format!("{}{}({inner})", compare(n), word(n)));
    let flat = (1..32).fold(compare(0), |left, n| format!("{left}{}{}", word(n), compare(n)));
    for q in [nested, flat] {
        let q: String = url::form_urlencoded::byte_serialize(q.as_bytes()).collect();
        // One that takes longer than `--database-timeout` is refused.
        club.by(BOB).get(&format!("/api/events?q={q}")).expect(200);
    }
}

#[rstest]
fn strange_bodies_are_never_a_500(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let body = event_body(&club, BOB, At::Place("x"), (1, 2)).to_string();
    let with = |member: &str| format!("{},{member}}}", &body[..body.len() - 1]);
    for (strange, code) in [
        (with(r#""name":"\ud800""#), "malformed-json"),
        (with(r#""more":"#.to_owned().as_str()) + &"[".repeat(100_000), "malformed-json"),
        (format!("{}{}", "[".repeat(200), "]".repeat(200)), "malformed-json"),
        (with(r#""sharedRoom":"true""#), "invalid-body"),
        (with(r#""timeStart":1700000000"#), "invalid-body"),
        (with(r#""tags":[{"name":"x","locked":1e400}]"#), "malformed-json"),
        (with(r#""tags":{"0":{"name":"x"}}"#), "invalid-body"),
        (with(r#""description":null"#), "invalid-body"),
        (with(r#""name":"\u0000""#), "invalid-body"),
        ("[]".to_owned(), "invalid-body"),
        ("null".to_owned(), "invalid-body"),
        ("\u{feff}{}".to_owned(), "malformed-json"),
        (String::new(), "malformed-json"),
    ] {
        send(&club, "POST", "/api/events", &strange).refused(400, code);
    }
    let invalid = [body.as_bytes(), b"\xff"].concat();
    let client = club.by(BOB).header("content-type", "application/json");
    client.send_bytes("POST", "/api/events", invalid).refused(400, "malformed-json");
    // Of duplicate members the last one counts, as in browsers.
    let made = send(&club, "POST", "/api/events", &with(r#""name":"last""#)).expect(201).json();
    assert_eq!(made["name"], "last");
    send(&club, "POST", "/api/events", &with(r#""name":"\ud83d\ude00""#)).expect(201);
}

#[rstest]
fn at_most_100_violations_are_listed(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let zeros = vec!["0"; 400_000].join(",");
    let body = event_body(&club, BOB, At::Place("x"), (1, 2)).to_string();
    for list in ["admins", "tags"] {
        let sent = format!("{},\"{list}\":[{zeros}]}}", &body[..body.len() - 1]);
        let refused = send(&club, "POST", "/api/events", &sent).expect(400);
        assert!(refused.body.len() < 10_000, "{} bytes", refused.body.len());
        assert_eq!(refused.pointers(), [format!("/{list}")]);
    }
    let zeros = vec![0; 10_000];
    let refused = send(&club, "POST", "/api/rooms", &json!({ "admins": zeros }).to_string()).expect(400);
    // The first hundred of 10,003 violations.
    assert_eq!(refused.pointers().len(), 100);
    assert_eq!(refused.json()["moreViolations"], 9_903);
    assert!(refused.json()["detail"].as_str().unwrap().len() < 2_000);
}

/// An import may have left what today's rules refuse.
#[rstest]
fn what_an_object_has_already_may_break_a_rule(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (name, place) = ("n".repeat(40), "p".repeat(40));
    let event = event(&club, BOB, At::Place("x"), (1, 2));
    let row = events::table.find(event.parse::<Uuid>().map(DbUuid).unwrap());
    let set = (events::name.eq(&name), events::place.eq(&place), events::description.eq("\u{7}"));
    diesel::update(row).set(set).execute(&mut club.connect()).unwrap();
    let path = format!("/api/events/{event}");
    let body = |more: Value| {
        let stored = json!({"name": name, "description": "\u{7}", "place": place});
        merge([event_body(&club, BOB, At::Place("x"), (1, 2)), stored, more])
    };
    let changed = club.by(BOB).put(&path, body(json!({"open": true}))).expect(200).json();
    assert_eq!((&changed["open"], &changed["name"], &changed["place"]), (&json!(true), &json!(name), &json!(place)));
    let moved = club.by(BOB).put(&path, body(json!({"place": "elsewhere"}))).expect(200).json();
    assert_eq!((&moved["name"], &moved["place"]), (&json!(name), &json!("elsewhere")));
    // Another value is checked, and what is new in every way.
    let other = "o".repeat(40);
    assert_eq!(club.by(BOB).put(&path, body(json!({"name": other, "place": "x"}))).expect(400).pointers(), ["/name"]);
    let all = club.by(BOB).put(&path, body(json!({"name": other, "place": "x", "sharedRoom": 5}))).expect(400);
    assert_eq!(all.pointers().len(), 3);
    assert_eq!(club.by(BOB).post("/api/events", body(json!({}))).expect(400).pointers().len(), 3);
    // Nobody else learns what the event has.
    club.by(CAROL).put(&path, body(json!({"name": other, "place": "x"}))).refused(403, "forbidden");

    let group = group(&club, BOB, "g", &[BOB]);
    let row = groups::table.find(group.parse::<Uuid>().map(DbUuid).unwrap());
    diesel::update(row).set(groups::name.eq(&name)).execute(&mut club.connect()).unwrap();
    let path = format!("/api/groups/{group}");
    let body = |name: &str| json!({"name": name, "description": "new", "open": true, "admins": [id(BOB)]});
    let changed = club.by(BOB).put(&path, body(&name)).expect(200).json();
    assert_eq!((&changed["name"], &changed["description"]), (&json!(name), &json!("new")));
    assert_eq!(club.by(BOB).put(&path, body(&other)).expect(400).pointers(), ["/name"]);
}

#[rstest]
fn a_hundred_tags_fit_on_an_event_and_no_more(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let body = |count: usize| {
        let tags: Vec<_> = (0..count).map(|n| json!({"name": format!("tag {n}")})).collect();
        merge([event_body(&club, BOB, At::Place("x"), (1, 2)), json!({ "tags": tags })])
    };
    let made = club.by(BOB).post("/api/events", body(100)).expect(201).json();
    assert_eq!(made["tags"].as_array().unwrap().len(), 100);
    let tags = format!("/api/events/{}/tags", made["eventId"].as_str().unwrap());
    club.by(BOB).post(&tags, json!({"name": "one more"})).refused(409, "too-many-tags");
    assert_eq!(club.by(BOB).post("/api/events", body(101)).expect(400).pointers(), ["/tags"]);
}

#[rstest]
fn any_tag_name_works_in_a_path(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let event = event(&club, BOB, At::Place("x"), (1, 2));
    let path = format!("/api/events/{event}/tags");
    for (name, encoded) in [
        ("a/b", "a%2Fb"),
        ("a+b", "a+b"),
        ("a+c", "a%2Bc"),
        ("50%", "50%25"),
        ("%2F", "%252F"),
        ("a b", "a%20b"),
        ("?#[]", "%3F%23%5B%5D"),
        ("🦀", "%F0%9F%A6%80"),
        ("..", "%2E%2E"),
        ("\n", "%0A"),
        ("\u{fffd}", "%EF%BF%BD"),
    ] {
        if name != "\n" {
            club.by(BOB).post(&path, json!({ "name": name })).expect(204);
            club.by(BOB).delete(&format!("{path}/{encoded}")).expect(204);
        }
        club.by(BOB).delete(&format!("{path}/{encoded}")).refused(404, "not-found");
    }
    // Both forms of the letter find the tag.
    club.by(BOB).post(&path, json!({"name": "e\u{301}"})).expect(204);
    club.by(BOB).delete(&format!("{path}/%C3%A9")).expect(204);
    for bad in ["%00", "a%00", "%1F", "%7F"] {
        let refused = club.by(BOB).delete(&format!("{path}/{bad}")).expect(400);
        assert_eq!(refused.pointers(), ["tagName"], "{bad}");
    }
    club.by(BOB).delete(&format!("{path}/%FF")).refused(404, "not-found");
    club.by(BOB).delete(&format!("{path}/{}", "x".repeat(60_000))).refused(404, "not-found");
}

#[rstest]
fn all_conflicts_and_free_times_are_listed(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let room = verified_room(&club, ALICE, "S516", (0, 220));
    for n in 0..105 {
        event(&club, BOB, At::Room(&room), (n * 2, n * 2 + 1));
    }
    let free = club.by(BOB).get(&format!("/api/rooms/{room}")).json()["freeTimes"].clone();
    for at in [At::Room(&room), At::Place("s516")] {
        let problem = declare(&club, BOB, at, (0, 220)).refused(409, "room-conflict");
        assert_eq!(problem["conflicts"].as_array().unwrap().len(), 105);
        assert_eq!(problem["freeTimes"], free);
    }
}

#[rstest]
fn unusual_characters_in_places_work(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for place in ["\u{fdfa}", "¨", "a\u{301}\u{323}"] {
        let long: String = std::iter::repeat_n(place, 32 / place.chars().count()).collect();
        for place in [place, &*long] {
            let room = verified_room(&club, BOB, place, (1, 2));
            event(&club, BOB, At::Room(&room), (1, 2));
            declare(&club, BOB, At::Place(place), (1, 2)).refused(409, "room-conflict");
        }
    }
    for blank in ["\u{3000}", "\u{2003}\u{a0}", "\t", "\u{85}", "\u{ad}", "\u{3164}", "\u{200b}"] {
        assert_eq!(declare(&club, BOB, At::Place(blank), (1, 2)).expect(400).pointers(), ["/place"]);
    }
}

#[rstest]
fn two_groups_may_have_the_same_name(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (one, two) = (group(&club, BOB, "same", &[]), group(&club, BOB, "same", &[]));
    let mut ids = [one, two];
    ids.sort();
    let listed = each(&club.by(BOB).get("/api/groups").json(), "groupId");
    assert_eq!(listed[..2], ids, "by name, then by id");
}

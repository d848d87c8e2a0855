//! Series of events (contract, additions, "Series of events").

use crate::harness::Backend::{self, Postgres, Sqlite};
use std::sync::mpsc;

use booking_service::{
    events::{
        queries::{Order, load_page},
        selection::{Criterion, Selection},
    },
    schema::{event_series, group_members, users},
    series::{RequestEventSeries, creation, queries},
};
use chrono::TimeDelta;
use chrono_tz::Tz;
use diesel::{Connection, connection::InstrumentationEvent, prelude::*};
use rstest::rstest;
use serde_json::{Value, json};
use service_kit::{
    database::{
        AnyConnection, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    history::{Author, By},
};

use crate::{
    builders::{EVERYONE, each, group, merge, text},
    double_booking::double_bookings,
    harness::{ALICE, Answer, BOB, CAROL, Club, DAVE, id},
    ical::{all, feed, feed_path},
    plans,
};

/// The body of a series of the everyone group on Tuesdays from 1 January 2030 at 18:00 in Japan.
pub fn series_body(by: &str, place: &str, rrule: &str) -> Value {
    let event = json!({
        "name": "Rust evening", "description": "", "sharedRoom": false, "groupId": EVERYONE, "admins": [id(by)],
        "place": place, "timeStart": "2030-01-01T18:00:00+09:00", "timeEnd": "2030-01-01T20:00:00+09:00",
    });
    json!({"event": event, "rrule": rrule})
}

fn with_event(body: Value, more: Value) -> Value {
    let event = merge([body["event"].clone(), more]);
    merge([body, json!({ "event": event })])
}

fn post(club: &Club, by: &str, body: Value) -> Answer {
    club.by(by).post("/api/event-series", body)
}

/// Creates a series and returns its path and its answer.
pub fn series(club: &Club, by: &str, place: &str, rrule: &str) -> (String, Value) {
    let made = post(club, by, series_body(by, place, rrule)).expect(201);
    (made.header("location").unwrap().to_owned(), made.json())
}

fn starts(series: &Value) -> Vec<String> {
    each(&series["events"], "timeStart")
}

fn path_of(event: &Value) -> String {
    format!("/api/events/{}", text(&event["eventId"]))
}

/// Verifies a room at a place on a day from 17:00 to 21:00 in Japan, and returns its id.
pub fn verified_on(club: &Club, place: &str, day: &str) -> String {
    let body = json!({
        "place": place, "timeStart": format!("{day}T17:00:00+09:00"), "timeEnd": format!("{day}T21:00:00+09:00"),
        "admins": [id(ALICE)],
    });
    let room = text(&club.by(ALICE).post("/api/rooms", body).expect(201).json()["roomId"]);
    club.by(ALICE).post(&format!("/api/rooms/{room}/verified"), json!({})).expect(204);
    room
}

/// Books a place on a day at 19:00 in Japan, and returns the event.
pub fn book_on(club: &Club, place: &str, day: &str) -> String {
    let body = json!({"timeStart": format!("{day}T19:00:00+09:00"), "timeEnd": format!("{day}T20:00:00+09:00")});
    let body = with_event(series_body(CAROL, place, ""), body)["event"].clone();
    text(&club.by(CAROL).post("/api/events", body).expect(201).json()["eventId"])
}

#[rstest]
fn a_series_is_expanded_into_ordinary_events(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mine = group(&club, BOB, "mine", &[BOB, CAROL]);
    let more = json!({"groupId": mine, "tags": [{"name": "rust"}]});
    let body = merge([
        with_event(series_body(BOB, "S516", "FREQ=WEEKLY;COUNT=4"), more),
        json!({"exdates": ["2030-01-15", "2031-01-01"]}),
    ]);
    let made = post(&club, BOB, body.clone()).expect(201);
    let path = made.header("location").unwrap().to_owned();
    let series = made.json();
    assert_eq!(path, format!("/api/event-series/{}", text(&series["seriesId"])));
    assert_eq!(
        starts(&series),
        ["2030-01-01T18:00:00+09:00", "2030-01-08T18:00:00+09:00", "2030-01-22T18:00:00+09:00"]
    );
    assert_eq!((&series["rrule"], &series["timeZone"]), (&json!("FREQ=WEEKLY;COUNT=4"), &json!("Asia/Tokyo")));
    assert_eq!((&series["skipped"], &series["createdBy"]), (&json!([]), &json!(id(BOB))));
    assert_eq!(club.by(DAVE).get(&path).expect(200).json(), series);
    for (n, event) in series["events"].as_array().unwrap().iter().enumerate() {
        assert_eq!((&event["seriesId"], &event["occurrence"]), (&series["seriesId"], &json!(n + 1)));
        assert_eq!(event["attendees"].as_array().unwrap().len(), 2);
        let detail = club.by(DAVE).get(&path_of(event)).expect(200).json();
        assert_eq!((&detail["seriesId"], &detail["occurrence"]), (&series["seriesId"], &json!(n + 1)));
        assert_eq!((&detail["tags"][0]["name"], &detail["admins"]), (&json!("rust"), &json!([id(BOB)])));
        assert_eq!(detail["room"]["timeStart"], event["timeStart"], "a room of its own");
    }
    // Other events have neither field.
    book_on(&club, "S517", "2030-01-02");
    let listed = club.by(DAVE).get("/api/events").expect(200).json();
    let with = listed.as_array().unwrap().iter().filter(|event| event.get("seriesId").is_some()).count();
    assert_eq!((with, listed.as_array().unwrap().len()), (3, 4));
    assert!(listed.as_array().unwrap().iter().any(|event| event.get("occurrence").is_none()));
    let filtered = |q: String| club.by(DAVE).get(&format!("/api/events?q={q}")).expect(200).json();
    assert_eq!(filtered(format!("series%3D%3D{}", text(&series["seriesId"]))), series["events"]);
    assert_eq!(filtered(format!("series!%3D{}", text(&series["seriesId"]))).as_array().unwrap().len(), 1);
    // In the feed each is an entry of its own.
    let feed = feed(&club, &feed_path(&club, BOB));
    assert_eq!(all(&feed, "UID").len(), 3 + 1, "also the other one, of the everyone group");
    assert_eq!(all(&feed, "RELATED-TO"), vec![text(&series["seriesId"]); 3]);
    assert_eq!(all(&feed, "RRULE"), Vec::<String>::new());
    club.by(DAVE).get(&format!("/api/event-series/{}", id("nothing"))).refused(404, "not-found");
}

#[rstest]
fn conflicts_are_all_named_before_anything_is_stored(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for day in ["2030-01-08", "2030-01-15", "2030-01-22"] {
        verified_on(&club, "S516", day);
    }
    let taken = ["2030-01-08", "2030-01-22"].map(|day| book_on(&club, "s516", day));
    let body = series_body(BOB, "S516", "FREQ=WEEKLY;COUNT=5");
    let count = || {
        let rows: i64 = event_series::table.count().get_result(&mut club.connect()).unwrap();
        (rows, club.by(DAVE).get("/api/events").json().as_array().unwrap().len())
    };
    for path in ["/api/event-series", "/api/event-series?dryRun=true"] {
        let problem = club.by(BOB).post(path, body.clone()).refused(409, "series-conflict");
        assert_eq!(each(&problem["dates"], "timeStart"), ["2030-01-08T18:00:00+09:00", "2030-01-22T18:00:00+09:00"]);
        for (date, event) in problem["dates"].as_array().unwrap().iter().zip(&taken) {
            assert_eq!(date["code"], "room-conflict");
            assert_eq!(each(&date["conflicts"], "eventId"), std::slice::from_ref(event));
        }
        assert_eq!(count(), (0, 2));
    }
    let skip = merge([body, json!({"onConflict": "skip"})]);
    let tried = club.by(BOB).post("/api/event-series?dryRun=true", skip.clone()).expect(200).json();
    assert_eq!(count(), (0, 2));
    let made = post(&club, BOB, skip).expect(201);
    let (path, made) = (made.header("location").unwrap().to_owned(), made.json());
    assert_eq!((starts(&tried), &tried["skipped"]), (starts(&made), &made["skipped"]));
    assert_eq!(starts(&made).len(), 3);
    assert_eq!(each(&made["skipped"][1]["conflicts"], "eventId"), taken[1..]);
    let shown = club.by(BOB).get(&path).expect(200).json();
    assert_eq!(each(&shown["skipped"], "timeStart"), ["2030-01-08T18:00:00+09:00", "2030-01-22T18:00:00+09:00"]);
    assert!(shown["skipped"][0].get("conflicts").is_none());
    let numbers = |series: &Value| -> Vec<_> {
        series["events"].as_array().unwrap().iter().map(|event| event["occurrence"].as_i64().unwrap()).collect()
    };
    assert_eq!(numbers(&shown), [1, 3, 5]);
    // A skipped date is tried again.
    let dates = format!("{path}/occurrences");
    let date = |day: &str, from: &str, to: &str| json!({"timeStart": format!("{day}T{from}:00+09:00"), "timeEnd": format!("{day}T{to}:00+09:00")});
    let problem = club.by(BOB).post(&dates, date("2030-01-08", "18:00", "20:00")).refused(409, "series-conflict");
    assert_eq!(problem["dates"].as_array().unwrap().len(), 1);
    club.by(CAROL).post(&dates, date("2030-01-08", "18:00", "19:00")).refused(403, "forbidden");
    let tried = format!("{dates}?dryRun=true");
    club.by(BOB).post(&tried, date("2030-01-08", "18:00", "19:00")).expect(200);
    let added = club.by(BOB).post(&dates, date("2030-01-08", "18:00", "19:00")).expect(201);
    assert_eq!(added.json()["occurrence"], 2);
    assert_eq!(added.json()["room"]["verified"], true);
    assert_eq!(added.header("location"), Some(&*path_of(&added.json())));
    club.by(CAROL).delete(&format!("/api/events/{}", taken[1])).expect(204);
    club.by(ALICE).post(&dates, date("2030-01-22", "18:00", "20:00")).expect(201);
    // Another date gets the next number.
    assert_eq!(club.by(BOB).post(&dates, date("2030-01-11", "10:00", "12:00")).expect(201).json()["occurrence"], 6);
    let shown = club.by(BOB).get(&path).expect(200).json();
    assert_eq!((numbers(&shown), &shown["skipped"]), (vec![1, 2, 6, 3, 4, 5], &json!([])));
    club.by(BOB).post(&dates, date("2030-01-11", "12:00", "12:00")).refused(400, "invalid-body");
    assert_eq!(double_bookings(&club), []);
    // Nothing is booked if all dates would be skipped.
    let none = merge([series_body(BOB, "S516", "FREQ=WEEKLY;COUNT=1"), json!({"onConflict": "skip"})]);
    verified_on(&club, "S516", "2030-01-01");
    post(&club, BOB, none).refused(409, "series-conflict");
}

#[rstest]
fn each_date_is_in_the_verified_room_that_contains_it(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let rooms = ["2030-01-01", "2030-01-15"].map(|day| verified_on(&club, "ｓ516", day));
    let (_, made) = series(&club, BOB, "S516", "FREQ=WEEKLY;COUNT=3");
    let events = made["events"].as_array().unwrap();
    assert_eq!([&events[0]["roomId"], &events[2]["roomId"]], [&json!(rooms[0]), &json!(rooms[1])]);
    assert_eq!([&events[0]["place"], &events[1]["place"]], ["ｓ516", "S516"], "that of the room");
    // One room for all dates.
    let room = json!({
        "place": "Hall", "timeStart": "2030-01-01T00:00:00+09:00", "timeEnd": "2030-01-10T00:00:00+09:00",
        "admins": [id(ALICE)],
    });
    let room = text(&club.by(ALICE).post("/api/rooms", room).expect(201).json()["roomId"]);
    let mut body = with_event(series_body(BOB, "", "FREQ=WEEKLY;COUNT=3"), json!({ "roomId": room }));
    body["event"].as_object_mut().unwrap().remove("place");
    let problem = post(&club, BOB, body.clone()).refused(409, "series-conflict");
    assert_eq!(each(&problem["dates"], "code"), ["outside-room-window"]);
    let made = post(&club, BOB, merge([body.clone(), json!({"onConflict": "skip"})])).expect(201).json();
    assert_eq!(each(&made["events"], "roomId"), vec![room; 2]);
    assert_eq!(each(&made["skipped"], "code"), ["outside-room-window"]);
    // The same room is taken now.
    let problem = post(&club, BOB, body.clone()).refused(409, "series-conflict");
    assert_eq!(each(&problem["dates"], "code"), ["room-conflict", "room-conflict", "outside-room-window"]);
    let problem = post(&club, BOB, with_event(body, json!({"roomId": id("nothing")}))).refused(400, "invalid-body");
    assert_eq!(problem["violations"][0]["pointer"], "/event/roomId");
}

#[rstest]
fn times_keep_their_wall_clock(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start_with(backend, &["--time-zone", "Europe/Berlin"]);
    let at = |day: &str, from: &str, to: &str| json!({"timeStart": format!("{day}T{from}+01:00"), "timeEnd": format!("{day}T{to}+01:00")});
    let body = series_body(BOB, "S516", "FREQ=WEEKLY;UNTIL=20300407");
    let evening =
        post(&club, BOB, with_event(body.clone(), at("2030-03-24", "18:00:00", "20:00:00"))).expect(201).json();
    let expected = ["2030-03-24T18:00:00+01:00", "2030-03-31T18:00:00+02:00", "2030-04-07T18:00:00+02:00"];
    assert_eq!(starts(&evening), expected);
    let night = with_event(body, at("2030-03-24", "02:30:00", "04:00:00"));
    let problem = post(&club, BOB, night.clone()).refused(409, "series-conflict");
    assert_eq!(each(&problem["dates"], "code"), ["nonexistent-time"]);
    assert_eq!(each(&problem["dates"], "timeStart"), ["2030-03-31T03:00:00+02:00"]);
    let made = post(&club, BOB, merge([night, json!({"onConflict": "skip"})])).expect(201);
    assert_eq!(starts(&made.json()), ["2030-03-24T02:30:00+01:00", "2030-04-07T02:30:00+02:00"]);
    // The day may be booked at another time.
    let date = json!({"timeStart": "2030-03-31T05:00:00+02:00", "timeEnd": "2030-03-31T06:00:00+02:00"});
    let path = made.header("location").unwrap();
    assert_eq!(club.by(BOB).post(&format!("{path}/occurrences"), date).expect(201).json()["occurrence"], 2);
    assert_eq!(club.by(BOB).get(path).json()["skipped"], json!([]));
}

#[rstest]
fn what_is_no_series_is_refused(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let cases = [
        ("FREQ=HOURLY;COUNT=2", "/rrule", "invalid"),
        ("FREQ=DAILY", "/rrule", "range"),
        ("FREQ=DAILY;COUNT=101", "/rrule", "range"),
        ("FREQ=DAILY;COUNT=1000000000", "/rrule", "range"),
        ("FREQ=MONTHLY;COUNT=26", "/rrule", "range"),
        ("FREQ=WEEKLY;BYDAY=WE;COUNT=2", "/rrule", "range"),
    ];
    let violation = |body: Value| {
        let problem = post(&club, BOB, body).refused(400, "invalid-body");
        let first = &problem["violations"][0];
        (text(&first["pointer"]), text(&first["code"]))
    };
    for (rrule, pointer, code) in cases {
        assert_eq!(violation(series_body(BOB, "S516", rrule)), (pointer.to_owned(), code.to_owned()), "{rrule}");
    }
    let body = series_body(BOB, "S516", "FREQ=WEEKLY;COUNT=2");
    for (more, pointer) in [
        (json!({"groupId": id("nothing")}), "/event/groupId"),
        (json!({"admins": [id("nothing")]}), "/event/admins/0"),
        (json!({"timeEnd": "2030-01-01T18:00:00+09:00"}), "/event/timeEnd"),
        (json!({"timeEnd": "2030-01-08T19:00:00+09:00"}), "/rrule"),
        (json!({"name": ""}), "/event/name"),
    ] {
        assert_eq!(violation(with_event(body.clone(), more)).0, pointer);
    }
    assert_eq!(violation(merge([body.clone(), json!({"exdates": ["2030-01-01", "2030-01-08"]})])).0, "/exdates");
    assert_eq!(violation(merge([body.clone(), json!({"exdates": ["1 January"]})])).0, "/exdates/0");
    assert_eq!(violation(merge([body, json!({"onConflict": "ask"})])).0, "/onConflict");
}

#[rstest]
fn the_events_of_a_series_count_for_the_daily_limit(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start_with(backend, &["--daily-limit", "7"]);
    let (path, _) = series(&club, BOB, "S516", "FREQ=WEEKLY;COUNT=5");
    post(&club, BOB, series_body(BOB, "S516", "FREQ=WEEKLY;COUNT=3")).refused(429, "daily-limit");
    let until = json!({"until": "2030-02-19"});
    club.by(BOB).patch(&path, until).refused(429, "daily-limit");
    club.by(BOB).patch(&path, json!({"until": "2030-02-12"})).expect(200);
    post(&club, BOB, series_body(BOB, "S516", "FREQ=WEEKLY;COUNT=1")).refused(429, "daily-limit");
}

#[rstest]
fn a_series_has_a_row_in_the_history(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let made = club
        .by(BOB)
        .header("x-request-id", "make")
        .post("/api/event-series", series_body(BOB, "S516", "FREQ=WEEKLY;COUNT=3"))
        .expect(201);
    let (path, made) = (made.header("location").unwrap().to_owned(), made.json());
    let rows = |request: &str| -> Vec<(String, String, Value)> {
        let all = club.by(ALICE).get("/api/audit").expect(200).json();
        let of_request = all.as_array().unwrap().iter().filter(|row| row["requestId"] == request).cloned();
        of_request.map(|row| (text(&row["objectType"]), text(&row["action"]), row["changes"].clone())).collect()
    };
    let kinds = |request: &str| -> Vec<String> {
        let mut kinds: Vec<_> = rows(request).into_iter().map(|(kind, action, _)| format!("{kind} {action}")).collect();
        kinds.sort();
        kinds
    };
    let of_series = |request: &str| rows(request).into_iter().find(|(kind, ..)| kind == "series").unwrap().2;
    assert_eq!(kinds("make"), ["event created", "event created", "event created", "series created"]);
    let created = of_series("make");
    assert_eq!(created["rrule"], json!([null, "FREQ=WEEKLY;COUNT=3"]));
    assert_eq!(created["events"]["added"], json!(each(&made["events"], "eventId")));
    assert_eq!(created["startTime"], json!([null, "18:00"]));
    club.by(BOB).header("x-request-id", "change").patch(&path, json!({"name": "x", "endTime": "19:30"})).expect(200);
    assert_eq!(kinds("change"), ["event changed", "event changed", "event changed", "series changed"]);
    assert_eq!(of_series("change"), json!({"name": ["Rust evening", "x"], "endTime": ["20:00", "19:30"]}));
    club.by(BOB).header("x-request-id", "same").patch(&path, json!({"name": "x"})).expect(200);
    assert_eq!(kinds("same"), Vec::<String>::new());
    let date = json!({"timeStart": "2030-02-01T18:00:00+09:00", "timeEnd": "2030-02-01T19:00:00+09:00"});
    club.by(BOB).header("x-request-id", "add").post(&format!("{path}/occurrences"), date).expect(201);
    assert_eq!(kinds("add"), ["event created", "series changed"]);
    club.by(BOB).header("x-request-id", "delete").delete(&format!("{path}?from=2030-01-09T00:00:00Z")).expect(204);
    assert_eq!(kinds("delete"), ["event deleted", "event deleted", "series deleted"]);
    assert_eq!(of_series("delete")["events"]["removed"].as_array().unwrap().len(), 2);
}

/// Inserts active members, and returns their ids.
fn members(club: &Club, number: usize) -> Vec<DbUuid> {
    let now = DbTimestamp(club.clock.now());
    let conn = &mut club.connect();
    let member = |n| {
        let name = format!("member{n}");
        let row = (
            (users::id.eq(id(&name)), users::name.eq(&name), users::display_name.eq(&name), users::icon.eq("")),
            (users::state.eq(1_i16), users::privileged.eq(false), users::created_at.eq(now), users::updated_at.eq(now)),
        );
        diesel::insert_into(users::table).values(row).execute(conn).unwrap();
        id(&name)
    };
    (0..number).map(member).collect()
}

/// The statements that create a series.
fn statements(club: &Club, body: &Value) -> Vec<String> {
    let new: RequestEventSeries = deserr::deserialize::<_, _, common::problem::Violations>(body.clone()).unwrap();
    let new = new.into_new();
    let now = DbTimestamp(club.clock.now());
    let by = Author { actor: Some(id(BOB)), ..Author::new(By::Command, now) };
    let (send, seen) = mpsc::channel();
    let mut conn = club.connect();
    conn.set_instrumentation(move |event: InstrumentationEvent<'_>| {
        if let InstrumentationEvent::StartQuery { query, .. } = event {
            send.send(query.to_string().split(" -- binds").next().unwrap().to_owned()).unwrap();
        }
    });
    conn.transaction(|conn| {
        let (made, _) = creation::create(conn, &new, &by, Tz::Asia__Tokyo, now).unwrap();
        assert_eq!(queries::get(conn, made).unwrap().events[0].attendees.len(), 51);
        diesel::QueryResult::Ok(())
    })
    .unwrap();
    drop(conn);
    seen.iter().collect()
}

#[rstest]
fn a_long_series_takes_as_many_statements_as_a_short_one(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mine = group(&club, BOB, "mine", &[BOB]);
    let rows: Vec<_> = members(&club, 50)
        .into_iter()
        .map(|user| (group_members::group_id.eq(DbUuid(mine.parse().unwrap())), group_members::user_id.eq(user)))
        .collect();
    for row in rows {
        diesel::insert_into(group_members::table).values(row).execute(&mut club.connect()).unwrap();
    }
    verified_on(&club, "S516", "2030-01-01");
    for (number, place) in [(2, "S516"), (3, "S516")] {
        book_on(&club, place, &format!("2030-01-0{number}"));
    }
    let body = |place: &str, count: usize| {
        let more = json!({"groupId": mine, "tags": [{"name": "rust"}]});
        with_event(series_body(BOB, place, &format!("FREQ=WEEKLY;COUNT={count}")), more)
    };
    statements(&club, &body("S515", 2));
    let (short, long) = (statements(&club, &body("S516", 2)), statements(&club, &body("S517", 100)));
    let verbs = |statements: &[String]| -> Vec<String> {
        statements.iter().map(|sql| sql.split_whitespace().take(3).collect::<Vec<_>>().join(" ")).collect()
    };
    assert!(long.len() <= short.len() + 1 && long.len() < 30, "{} {:#?}", short.len(), verbs(&long));
    post(&club, BOB, body("S518", 100)).expect(201);
}

#[rstest]
fn queries_use_indexes(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (_, made) = series(&club, BOB, "S516", "FREQ=WEEKLY;COUNT=3");
    let made = DbUuid(text(&made["seriesId"]).parse().unwrap());
    plans::check(&club, |conn: &mut AnyConnection| {
        queries::get(conn, made).unwrap();
    });
    plans::check(&club, |conn: &mut AnyConnection| {
        let selection = Selection::new(Criterion::OfSeries(made));
        load_page(conn, &selection, Order::Start, &PageBounds::all()).unwrap();
    });
    let body = series_body(BOB, "S516", "FREQ=WEEKLY;COUNT=3");
    let new: RequestEventSeries = deserr::deserialize::<_, _, common::problem::Violations>(body).unwrap();
    let (new, now) = (new.into_new(), DbTimestamp(club.clock.now().plus(TimeDelta::zero())));
    plans::check(&club, |conn: &mut AnyConnection| {
        creation::create(conn, &new, &Author::new(By::Command, now), Tz::Asia__Tokyo, now).unwrap();
    });
}

//! Changes of series: of all occurrences, of later ones, and of single ones.

use crate::harness::Backend::{self, Postgres, Sqlite};
use std::{collections::BTreeSet, sync::Barrier, thread};

use diesel::connection::SimpleConnection;
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    builders::{At, each, event, event_body, group, merge, text, verified_room},
    double_booking::double_bookings,
    harness::{ALICE, BOB, CAROL, Club, DAVE, hours_from_now, id},
    series::{series, series_body},
};

fn show(club: &Club, path: &str) -> Value {
    club.by(DAVE).get(path).expect(200).json()
}

fn names(club: &Club, path: &str) -> Vec<String> {
    each(&show(club, path)["events"], "name")
}

fn event_path(series: &Value, n: usize) -> String {
    format!("/api/events/{}", text(&series["events"][n]["eventId"]))
}

/// The body of a `PUT` with the values of an event of a series.
fn put_body(event: &Value, more: Value) -> Value {
    let fields = ["name", "description", "sharedRoom", "timeStart", "timeEnd", "place", "groupId", "admins"];
    let body = fields.map(|field| json!({ field: event[field] }));
    merge([merge(body), more])
}

#[rstest]
fn a_change_of_one_event_marks_it_as_changed_by_itself(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (path, made) = series(&club, BOB, "S516", "FREQ=WEEKLY;COUNT=5");
    let events = &made["events"];
    // A move, a tag, an answer, and the same values again.
    let moved = json!({"timeStart": "2030-01-02T18:00:00+09:00", "timeEnd": "2030-01-02T20:00:00+09:00"});
    club.by(BOB).put(&event_path(&made, 0), put_body(&events[0], moved)).expect(200);
    club.by(CAROL).post(&format!("{}/tags", event_path(&made, 1)), json!({"name": "rust"})).expect(204);
    let attend = json!({"schedule": "attendance"});
    club.by(CAROL).put(&format!("{}/attendees/me", event_path(&made, 2)), attend).expect(204);
    club.by(BOB).put(&event_path(&made, 2), put_body(&events[2], json!({}))).expect(200);
    club.by(BOB).delete(&event_path(&made, 3)).expect(204);
    club.by(BOB).post(&format!("{}/restore", event_path(&made, 3)), json!({})).expect(200);
    let changed = club.by(BOB).patch(&path, json!({"name": "x"})).expect(200).json();
    assert_eq!(each(&changed["events"], "name"), ["Rust evening", "x", "x", "x", "x"], "a tag is no change");
    assert_eq!(changed, show(&club, &path));
    club.by(BOB).patch(&format!("{path}?includeChanged=true"), json!({"name": "y"})).expect(200);
    assert_eq!(names(&club, &path), vec!["y"; 5]);
    // It stays marked, and the series remembers the answer.
    club.by(BOB).patch(&path, json!({"name": "z"})).expect(200);
    assert_eq!(names(&club, &path), ["y", "z", "z", "z", "z"]);
    assert_eq!(show(&club, &path)["events"][0]["timeStart"], "2030-01-02T18:00:00+09:00");
    let detail = show(&club, &event_path(&made, 2));
    let answer = detail["attendees"].as_array().unwrap().iter().find(|answer| answer["userId"] == json!(id(CAROL)));
    assert_eq!(answer.unwrap()["schedule"], "attendance");
    club.by(BOB)
        .post(&format!("{}/revert", event_path(&made, 4)), json!({"to": first_change(&club, &made)}))
        .expect(200);
    club.by(BOB).patch(&path, json!({"name": "w"})).expect(200);
    assert_eq!(names(&club, &path), ["y", "w", "w", "w", "Rust evening"]);
}

#[rstest]
fn only_changes_of_a_date_itself_detach_it(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mine = group(&club, BOB, "mine", &[CAROL]);
    let (path, made) = series(&club, BOB, "S516", "FREQ=DAILY;COUNT=12");
    let changes = [
        json!({"name": "other"}),
        json!({"description": "other"}),
        json!({"timeEnd": "2030-01-03T21:00:00+09:00"}),
        json!({"place": "other"}),
        json!({"groupId": mine}),
        json!({"sharedRoom": true}),
        json!({"open": true}),
        json!({"admins": [id(CAROL), id(BOB)]}),
    ];
    let (own, changes) = (
        changes.len(),
        changes.into_iter().chain([
            json!({"tags": [{"name": "rust"}]}),
            json!({"tags": [{"name": "rust", "locked": true}]}),
            json!({}),
            json!({"place": null, "roomId": made["events"][11]["roomId"]}),
        ]),
    );
    for (n, change) in changes.enumerate() {
        club.by(BOB).put(&event_path(&made, n), put_body(&made["events"][n], change)).expect(200);
    }
    club.by(CAROL).post(&format!("{}/tags", event_path(&made, 11)), json!({"name": "stranger"})).expect(204);
    club.by(CAROL).delete(&format!("{}/tags/stranger", event_path(&made, 11))).expect(204);
    let moved = club.by(BOB).patch(&path, json!({"startTime": "17:00"})).expect(200).json();
    let hours: Vec<_> = each(&moved["events"], "timeStart").iter().map(|at| at[11..13].to_owned()).collect();
    assert_eq!(hours[..own], vec!["18"; own]);
    assert_eq!(hours[own..], vec!["17"; 12 - own]);
}

#[rstest]
fn a_series_has_administrators_of_its_own(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (path, made) = series(&club, BOB, "S516", "FREQ=WEEKLY;COUNT=4");
    assert_eq!(made["admins"], json!([id(BOB)]));
    // Whoever administers the first date alone has no right to the series.
    let both = json!({"admins": [id(BOB), id(DAVE)]});
    club.by(BOB).put(&event_path(&made, 0), put_body(&made["events"][0], both)).expect(200);
    club.by(DAVE).patch(&path, json!({"name": "y"})).refused(403, "forbidden");
    club.by(BOB).delete(&event_path(&made, 1)).expect(204);
    club.by(DAVE).delete(&path).refused(403, "forbidden");
    // It is handed over, though the first date stays as it is.
    let handed = json!({"from": "2030-01-10T00:00:00+09:00", "admins": [id(CAROL)]});
    let handed = club.by(BOB).patch(&path, handed).expect(200).json();
    assert_eq!(handed["admins"], json!([id(CAROL)]));
    assert_eq!(handed["events"][1]["admins"], json!([id(CAROL)]));
    assert_ne!(handed["updatedAt"], made["updatedAt"]);
    club.by(BOB).patch(&path, json!({"name": "y"})).refused(403, "forbidden");
    club.by(BOB)
        .post(
            &format!("{path}/occurrences"),
            json!({
                "timeStart": "2030-03-05T18:00:00+09:00", "timeEnd": "2030-03-05T19:00:00+09:00",
            }),
        )
        .refused(403, "forbidden");
    club.by(CAROL).patch(&path, json!({"name": "y"})).expect(200);
    // New dates have the administrators of the series, and it keeps them without any date.
    let last = put_body(&handed["events"][2], json!({"admins": [id(DAVE)]}));
    club.by(CAROL).put(&event_path(&handed, 2), last).expect(200);
    let longer = club.by(CAROL).patch(&path, json!({"until": "2030-01-29"})).expect(200).json();
    assert_eq!(longer["events"][3]["admins"], json!([id(CAROL)]));
    club.by(CAROL).delete(&path).expect(204);
    club.by(CAROL).delete(&path).expect(204);
    club.by(BOB).delete(&path).refused(403, "forbidden");
    let changes = club.by(ALICE).get("/api/audit").expect(200).json();
    let row = changes
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["changes"].get("admins").is_some() && row["objectType"] == "series");
    assert_eq!(row.unwrap()["changes"]["admins"], json!({"added": [id(CAROL)], "removed": [id(BOB)]}));
}

#[rstest]
fn older_series_get_the_administrators_of_their_first_date(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (path, made) = series(&club, BOB, "S516", "FREQ=WEEKLY;COUNT=3");
    let (other, of_other) = series(&club, BOB, "S517", "FREQ=WEEKLY;COUNT=1");
    for (n, user) in [(0, DAVE), (1, CAROL)] {
        let body = put_body(&made["events"][n], json!({"admins": [id(user)]}));
        club.by(BOB).put(&event_path(&made, n), body).expect(200);
    }
    club.by(DAVE).delete(&event_path(&made, 0)).expect(204);
    club.by(BOB).delete(&event_path(&of_other, 0)).expect(204);
    let conn = &mut club.connect();
    conn.batch_execute(if club.is_postgres() {
        concat!(
            include_str!("../../migrations/postgres/2026-11-26-110000_series_admins/down.sql"),
            include_str!("../../migrations/postgres/2026-11-26-110000_series_admins/up.sql")
        )
    } else {
        concat!(
            include_str!("../../migrations/sqlite/2026-11-26-110000_series_admins/down.sql"),
            include_str!("../../migrations/sqlite/2026-11-26-110000_series_admins/up.sql")
        )
    })
    .unwrap();
    assert_eq!(show(&club, &path)["admins"], json!([id(CAROL)]));
    assert_eq!(show(&club, &other)["admins"], json!([id(BOB)]));
}

/// The first change of the last event.
fn first_change(club: &Club, made: &Value) -> Value {
    let rows = club.by(BOB).get(&format!("{}/history", event_path(made, 4))).expect(200).json();
    rows.as_array().unwrap().last().unwrap()["historyId"].clone()
}

#[rstest]
fn a_change_of_the_series_changes_all_fields(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mine = group(&club, BOB, "mine", &[CAROL]);
    let (path, made) = series(&club, BOB, "S516", "FREQ=WEEKLY;COUNT=3");
    let change = json!({
        "from": "2030-01-08T09:00:00Z", "name": "x", "description": "d", "place": "S517", "sharedRoom": true, "open": true,
        "groupId": mine, "admins": [id(CAROL), id(BOB)], "tags": [{"name": "rust", "locked": true}],
        "startTime": "9:30", "endTime": "21:00",
    });
    let tried = club.by(BOB).patch(&format!("{path}?dryRun=true"), change.clone()).expect(200).json();
    assert_eq!(show(&club, &path), made);
    let changed = club.by(BOB).patch(&path, change.clone()).expect(200).json();
    assert_eq!(each(&tried["events"], "timeStart"), each(&changed["events"], "timeStart"));
    assert_eq!(changed["events"][0], made["events"][0], "before `from`");
    for (n, day) in [(1, "08"), (2, "15")] {
        let event = &changed["events"][n];
        let time = |clock: &str| json!(format!("2030-01-{day}T{clock}:00+09:00"));
        assert_eq!((&event["timeStart"], &event["timeEnd"]), (&time("09:30"), &time("21:00")));
        assert_eq!(
            (&event["name"], &event["description"], &event["place"]),
            (&json!("x"), &json!("d"), &json!("S517"))
        );
        assert_eq!(
            (&event["sharedRoom"], &event["open"], &event["groupId"]),
            (&json!(true), &json!(true), &json!(mine))
        );
        assert_eq!(event["tags"][0]["locked"], true);
        assert_eq!(event["attendees"], json!([id(CAROL)]));
        let admins: BTreeSet<_> = event["admins"].as_array().unwrap().iter().map(text).collect();
        assert_eq!(admins, BTreeSet::from([id(BOB).to_string(), id(CAROL).to_string()]));
        let room = &show(&club, &event_path(&changed, n))["room"];
        assert_eq!(
            (&room["roomId"], &room["timeEnd"]),
            (&made["events"][n]["roomId"], &event["timeEnd"]),
            "moves along"
        );
    }
    // The series has the new administrators, too.
    assert_eq!(changed["admins"], changed["events"][2]["admins"]);
    club.by(BOB).delete(&event_path(&made, 0)).expect(204);
    club.by(CAROL).patch(&path, json!({"name": "y"})).expect(200);
    club.by(ALICE).patch(&path, json!({"name": "z"})).expect(200);
    club.by(DAVE).patch(&path, json!({"name": "y"})).refused(403, "forbidden");
    club.by(DAVE).delete(&path).refused(403, "forbidden");
    // Nothing new changes nothing.
    let before = show(&club, &path);
    let same = merge([change, json!({"name": "z"})]);
    assert_eq!(club.by(BOB).patch(&path, same).expect(200).json(), before);
    for (body, pointer) in [
        (json!({"startTime": "22:00"}), "/endTime"),
        (json!({"startTime": "24:00"}), "/startTime"),
        (json!({"groupId": id("nothing")}), "/groupId"),
        (json!({"admins": [id("nothing")]}), "/admins/0"),
        (json!({"until": "2029-12-31"}), "/until"),
        (json!({"until": "2033-01-01"}), "/until"),
    ] {
        let problem = club.by(BOB).patch(&path, body.clone()).refused(400, "invalid-body");
        assert_eq!(problem["violations"][0]["pointer"], pointer, "{body}");
    }
    club.by(BOB).header("if-match", "\"stale\"").patch(&path, json!({"name": "a"})).expect(412);
    assert_eq!(show(&club, &path), before);
}

#[rstest]
fn all_occurrences_move_or_none(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let monday = hours_from_now(&club, 24);
    let room = verified_room(&club, ALICE, "S516", (24, 24 * 40));
    let at = |hours: i64| monday.plus(chrono::TimeDelta::hours(hours)).to_string();
    let times = json!({"timeStart": at(0), "timeEnd": at(20), "roomId": room});
    let mut body = series_body(BOB, "S516", "FREQ=DAILY;COUNT=6");
    body["event"].as_object_mut().unwrap().remove("place");
    let body = json!({"event": merge([body["event"].clone(), times]), "rrule": body["rrule"]});
    let made = club.by(BOB).post("/api/event-series", body).expect(201);
    let (path, made) = (made.header("location").unwrap().to_owned(), made.json());
    // Each takes time that another one has now.
    let local = |clock: &str| {
        let first = text(&made["events"][0][clock]);
        first[11..16].to_owned()
    };
    let (start, end) = (local("timeStart"), local("timeEnd"));
    let later =
        |clock: &str, hours: u32| format!("{:02}:{}", (clock[..2].parse::<u32>().unwrap() + hours) % 24, &clock[3..]);
    if start < later(&start, 2) && end < later(&end, 2) {
        let moved = json!({"startTime": later(&start, 2), "endTime": later(&end, 2)});
        let moved = club.by(BOB).patch(&path, moved).expect(200).json();
        assert_eq!(each(&moved["events"], "roomId"), vec![room.clone(); 6]);
        club.by(BOB).patch(&path, json!({"startTime": start, "endTime": end})).expect(200);
    }
    assert_eq!(double_bookings(&club), []);
    // Another event prevents all.
    let other = event(&club, CAROL, At::Place("S515"), (24 * 3, 24 * 3 + 1));
    verified_room(&club, ALICE, "S515", (24, 24 * 40));
    let before = show(&club, &path);
    let problem = club.by(BOB).patch(&path, json!({"place": "S515"})).refused(409, "series-conflict");
    assert_eq!(problem["dates"].as_array().unwrap().len(), 1);
    assert_eq!(each(&problem["dates"][0]["conflicts"], "eventId"), std::slice::from_ref(&other));
    assert_eq!(show(&club, &path), before);
    club.by(CAROL).delete(&format!("/api/events/{other}")).expect(204);
    let moved = club.by(BOB).patch(&path, json!({"place": "s515"})).expect(200).json();
    assert_eq!(each(&moved["events"], "place"), vec!["S515"; 6], "in the verified room");
    assert_eq!(double_bookings(&club), []);
}

#[rstest]
fn the_end_of_the_rule_moves(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (path, _) = series(&club, BOB, "S516", "FREQ=WEEKLY;COUNT=4");
    let starts = |series: &Value| -> Vec<String> {
        each(&series["events"], "timeStart").iter().map(|start| start[..16].to_owned()).collect()
    };
    club.by(BOB).patch(&path, json!({"name": "x", "startTime": "17:00"})).expect(200);
    let shorter = club.by(BOB).patch(&path, json!({"until": "2030-01-08"})).expect(200).json();
    assert_eq!(starts(&shorter), ["2030-01-01T17:00", "2030-01-08T17:00"]);
    assert_eq!(shorter["rrule"], "FREQ=WEEKLY;UNTIL=20300108");
    let longer = club.by(BOB).patch(&path, json!({"until": "2030-01-28", "name": "y"})).expect(200).json();
    assert_eq!(starts(&longer), ["2030-01-01T17:00", "2030-01-08T17:00", "2030-01-15T17:00", "2030-01-22T17:00"]);
    assert_eq!(each(&longer["events"], "name"), vec!["y"; 4]);
    let numbers: Vec<_> =
        longer["events"].as_array().unwrap().iter().map(|event| event["occurrence"].clone()).collect();
    assert_eq!(numbers, [1, 2, 5, 6], "numbers are never given again");
    // A date that cannot be booked.
    verified_room_on(&club, "2030-01-29");
    let body = merge([
        series_body(CAROL, "S516", "")["event"].clone(),
        json!({
            "timeStart": "2030-01-29T18:00:00+09:00", "timeEnd": "2030-01-29T19:00:00+09:00"
        }),
    ]);
    club.by(CAROL).post("/api/events", body).expect(201);
    let problem = club.by(BOB).patch(&path, json!({"until": "2030-02-05"})).refused(409, "series-conflict");
    assert_eq!(each(&problem["dates"], "timeStart"), ["2030-01-29T17:00:00+09:00"]);
    assert_eq!(starts(&show(&club, &path)).len(), 4);
}

fn verified_room_on(club: &Club, day: &str) {
    let body = json!({
        "place": "S516", "timeStart": format!("{day}T00:00:00+09:00"), "timeEnd": format!("{day}T23:00:00+09:00"),
        "admins": [id(ALICE)],
    });
    let room = text(&club.by(ALICE).post("/api/rooms", body).expect(201).json()["roomId"]);
    club.by(ALICE).post(&format!("/api/rooms/{room}/verified"), json!({})).expect(204);
}

#[rstest]
fn past_occurrences_stay(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let start = |days: i64| hours_from_now(&club, days * 24 - 1).to_string();
    let body = event_body(&club, BOB, At::Place("S516"), (-49, -48));
    let body = json!({"event": body, "rrule": "FREQ=DAILY;COUNT=6"});
    let made = club.by(BOB).post("/api/event-series", body).expect(201);
    let (path, made) = (made.header("location").unwrap().to_owned(), made.json());
    club.by(BOB).patch(&path, json!({"name": "x"})).expect(200);
    assert_eq!(names(&club, &path), ["Rust evening", "Rust evening", "Rust evening", "x", "x", "x"]);
    let from = start(2).replace('+', "%2B");
    club.by(BOB).delete(&format!("{path}?from={from}")).expect(204);
    assert_eq!(names(&club, &path).len(), 4);
    club.by(BOB).delete(&path).expect(204);
    club.by(BOB).delete(&path).expect(204);
    assert_eq!(names(&club, &path).len(), 3);
    // Each comes back by itself.
    club.by(BOB).post(&format!("{}/restore", event_path(&made, 4)), json!({})).expect(200);
    assert_eq!(names(&club, &path).len(), 4);
}

#[rstest]
fn one_answer_for_all_later_occurrences(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mine = group(&club, BOB, "mine", &[CAROL]);
    let body = series_body(BOB, "S516", "FREQ=WEEKLY;COUNT=4");
    let event = merge([body["event"].clone(), json!({"groupId": mine})]);
    let made =
        club.by(BOB).post("/api/event-series", json!({"event": event, "rrule": body["rrule"]})).expect(201).json();
    let answer = |by: &str, n: usize| {
        let path = format!("{}/attendees/me?series=true", event_path(&made, n));
        club.by(by).put(&path, json!({"schedule": "attendance"}))
    };
    answer(CAROL, 1).expect(204);
    let schedules = |by: &str| -> Vec<Option<String>> {
        let events = made["events"].as_array().unwrap().iter();
        let of_event = |event: &Value| {
            let detail = show(&club, &format!("/api/events/{}", text(&event["eventId"])));
            let answers = detail["attendees"].as_array().unwrap().clone();
            answers.iter().find(|answer| answer["userId"] == json!(id(by))).map(|answer| text(&answer["schedule"]))
        };
        events.map(of_event).collect()
    };
    let some = |words: [&str; 4]| words.map(|word| (!word.is_empty()).then(|| word.to_owned())).to_vec();
    assert_eq!(schedules(CAROL), some(["pending", "attendance", "attendance", "attendance"]));
    answer(DAVE, 1).refused(403, "forbidden");
    // Only those that the caller may answer.
    for n in [1, 3] {
        club.by(BOB).put(&event_path(&made, n), put_body(&made["events"][n], json!({"open": true}))).expect(200);
    }
    answer(DAVE, 1).expect(204);
    assert_eq!(schedules(DAVE), some(["", "attendance", "", "attendance"]));
    // An event that is in no series.
    let single = crate::builders::event(&club, BOB, At::Place("x"), (1, 2));
    let path = format!("/api/events/{single}/attendees/me?series=true");
    club.by(CAROL).put(&path, json!({"schedule": "absent"})).expect(204);
}

#[rstest]
fn concurrent_changes_of_a_series_and_its_events_exclude_each_other(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for round in 0..6 {
        let (path, made) = series(&club, BOB, &format!("S{round}"), "FREQ=WEEKLY;COUNT=5");
        let barrier = Barrier::new(4);
        thread::scope(|scope| {
            let (club, path, made, barrier) = (&club, &path, &made, &barrier);
            for n in 0..4 {
                scope.spawn(move || {
                    barrier.wait();
                    let answer = match n {
                        0 => club.by(BOB).patch(path, json!({"name": "series"})),
                        1 => club.by(BOB).patch(path, json!({"until": "2030-02-19"})),
                        2 => {
                            let body = put_body(&made["events"][2], json!({"description": "alone"}));
                            club.by(BOB).put(&event_path(made, 2), body)
                        }
                        _ => club.by(BOB).post(&format!("{}/tags", event_path(made, 3)), json!({"name": "alone"})),
                    };
                    assert!([200, 204].contains(&answer.status), "{}", answer.text());
                });
            }
        });
        let shown = show(&club, &path);
        let events = shown["events"].as_array().unwrap();
        assert_eq!(events.len(), 8);
        // Each row of the history says what one request changed.
        let rows = club.by(BOB).get(&format!("{}/history", event_path(&made, 2))).expect(200).json();
        for row in rows.as_array().unwrap().iter().filter(|row| row["action"] == "changed") {
            let fields: Vec<_> = row["changes"].as_object().unwrap().keys().map(String::as_str).collect();
            assert!(
                ["description", "name"].iter().any(|field| fields == [*field]) || fields == ["description", "name"]
            );
            if fields == ["description", "name"] {
                assert_eq!(row["changes"]["name"], json!(["series", "Rust evening"]), "a PUT of the earlier values");
            }
        }
        assert_eq!(events[2]["description"], "alone");
        assert_eq!(double_bookings(&club), []);
    }
}

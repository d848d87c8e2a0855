//! Other ends of series, dates that overlap, and what the history says about series.

use crate::harness::Backend::{self, Postgres, Sqlite};
use std::collections::BTreeMap;

use proptest::{
    prelude::{Just, Strategy, any, prop},
    prop_oneof,
    test_runner::{Config, TestRunner},
};
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    builders::{each, merge, text},
    harness::{ALICE, BOB, Club, DAVE, id},
    series::{series, series_body},
};

fn show(club: &Club, path: &str) -> Value {
    club.by(DAVE).get(path).expect(200).json()
}

fn event_path(series: &Value, n: usize) -> String {
    format!("/api/events/{}", text(&series["events"][n]["eventId"]))
}

fn days(series: &Value) -> Vec<String> {
    each(&series["events"], "timeStart").iter().map(|start| start[5..10].to_owned()).collect()
}

fn rename(club: &Club, event: &Value, name: &str) {
    let fields = ["description", "sharedRoom", "timeStart", "timeEnd", "place", "groupId", "admins"];
    let body = merge(fields.map(|field| json!({ field: event[field] })));
    let path = format!("/api/events/{}", text(&event["eventId"]));
    club.by(BOB).put(&path, merge([body, json!({ "name": name })])).expect(200);
}

fn date(day: &str, from: &str, to: &str) -> Value {
    json!({"timeStart": format!("{day}T{from}:00+09:00"), "timeEnd": format!("{day}T{to}:00+09:00")})
}

#[rstest]
fn an_earlier_end_deletes_all_later_dates(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (path, made) = series(&club, BOB, "S516", "FREQ=WEEKLY;COUNT=6");
    rename(&club, &made["events"][4], "alone");
    let until = |day: &str| club.by(BOB).patch(&path, json!({ "until": day }));
    let shorter = until("2030-01-15").expect(200);
    assert_eq!(
        (days(&shorter.json()), &shorter.json()["deleted"]),
        (vec!["01-01".to_owned(), "01-08".into(), "01-15".into()], &json!(3))
    );
    // The entity tag is that of the series.
    let tag = shorter.header("etag").unwrap().to_owned();
    let longer = club.by(BOB).header("if-match", &tag).patch(&path, json!({"until": "2030-02-05"})).expect(200).json();
    assert_eq!(days(&longer), ["01-01", "01-08", "01-15", "01-22", "01-29", "02-05"]);
    assert_eq!(longer["deleted"], 0);
    assert!(show(&club, &path).get("deleted").is_none());
    for (from, day) in [("2030-01-20T00:00:00+09:00", "2030-01-19"), ("2029-01-01T00:00:00+09:00", "2029-12-31")] {
        let problem = club.by(BOB).patch(&path, json!({"from": from, "until": day})).refused(400, "invalid-body");
        assert_eq!(problem["violations"][0]["pointer"], "/until", "{day}");
    }
    assert_eq!(show(&club, &path)["events"], longer["events"]);
}

#[rstest]
fn a_later_end_brings_nothing_back_that_was_deleted(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (path, made) = series(&club, BOB, "S516", "FREQ=WEEKLY;COUNT=6");
    let until = |day: &str| days(&club.by(BOB).patch(&path, json!({ "until": day })).expect(200).json());
    club.by(BOB).delete(&event_path(&made, 3)).expect(204);
    assert_eq!(until("2030-01-08"), ["01-01", "01-08"]);
    // A date comes back by itself and goes again, another one stays.
    for n in [4, 5] {
        club.by(BOB).post(&format!("{}/restore", event_path(&made, n)), json!({})).expect(200);
    }
    club.by(BOB).delete(&event_path(&made, 4)).expect(204);
    // One that the rule does not have yet.
    let dates = format!("{path}/occurrences");
    let added = club.by(BOB).post(&dates, date("2030-02-12", "18:00", "20:00")).expect(201).json();
    club.by(BOB).delete(&format!("/api/events/{}", text(&added["eventId"]))).expect(204);
    club.by(BOB).post(&dates, date("2030-02-19", "18:00", "20:00")).expect(201);
    assert_eq!(until("2030-02-26"), ["01-01", "01-08", "01-15", "02-05", "02-19", "02-26"]);
    assert_eq!(until("2030-01-08"), ["01-01", "01-08"]);
    assert_eq!(until("2030-02-26"), ["01-01", "01-08", "01-15", "02-05", "02-19", "02-26"]);
}

#[rstest]
fn dates_of_a_series_do_not_overlap(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let body = series_body(BOB, "S516", "FREQ=DAILY;COUNT=2");
    let event = merge([body["event"].clone(), json!({"sharedRoom": true})]);
    let made = club.by(BOB).post("/api/event-series", json!({"event": event, "rrule": body["rrule"]})).expect(201);
    let path = made.header("location").unwrap().to_owned();
    let dates = format!("{path}/occurrences");
    let refused = |answer: crate::harness::Answer, pointer: &str| {
        let problem = answer.refused(400, "invalid-body");
        assert_eq!(problem["violations"][0]["pointer"], pointer);
    };
    refused(club.by(BOB).post(&dates, date("2030-01-02", "19:00", "21:00")), "/timeStart");
    club.by(BOB).post(&dates, date("2030-01-02", "21:00", "22:00")).expect(201);
    let patch = |body: Value| club.by(BOB).patch(&path, body);
    refused(patch(json!({"endTime": "21:30"})), "/endTime");
    refused(patch(json!({"startTime": "19:30", "from": "2030-01-02T20:30:00+09:00"})), "/startTime");
    // What overlaps already does not prevent other changes.
    let moved =
        merge([event, json!({"timeStart": "2030-01-02T18:30:00+09:00", "timeEnd": "2030-01-02T21:30:00+09:00"})]);
    club.by(BOB).put(&event_path(&made.json(), 0), moved).expect(200);
    patch(json!({"name": "x", "description": "y"})).expect(200);
    // A later end would make 4 January at 18:00.
    club.by(BOB).post(&dates, date("2030-01-04", "19:00", "21:00")).expect(201);
    club.by(BOB).post(&dates, date("2030-01-05", "18:00", "20:00")).expect(201);
    refused(patch(json!({"until": "2030-01-05"})), "/until");
}

#[rstest]
fn a_first_date_in_a_repeated_hour_stays_there(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start_with(backend, &["--time-zone", "Europe/Berlin"]);
    let body = series_body(BOB, "S516", "FREQ=WEEKLY;COUNT=2");
    for (place, from, to) in [
        ("S516", "2030-10-27T02:30:00+01:00", "2030-10-27T03:30:00+01:00"),
        ("S517", "2030-10-27T01:30:00+02:00", "2030-10-27T02:30:00+01:00"),
    ] {
        let event = merge([body["event"].clone(), json!({"place": place, "timeStart": from, "timeEnd": to})]);
        let made = club.by(BOB).post("/api/event-series", json!({"event": event, "rrule": body["rrule"]})).expect(201);
        let first = &made.json()["events"][0];
        assert_eq!((&first["timeStart"], &first["timeEnd"]), (&json!(from), &json!(to)));
        if place == "S516" {
            // The end is the first one after the start.
            let shorter = club.by(BOB).patch(made.header("location").unwrap(), json!({"endTime": "02:45"})).expect(200);
            assert_eq!(shorter.json()["events"][0]["timeEnd"], "2030-10-27T02:45:00+01:00");
        }
    }
}

#[rstest]
fn the_history_of_a_series_says_what_was_asked_for(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (path, made) = series(&club, BOB, "S516", "FREQ=WEEKLY;COUNT=4");
    let changes = |body: Value| {
        club.by(BOB).patch(&path, body).expect(200);
        let rows = club.by(ALICE).get("/api/audit").expect(200).json();
        rows.as_array().unwrap().iter().find(|row| row["objectType"] == "series").unwrap()["changes"].clone()
    };
    let later = json!({"name": "x", "from": "2030-01-10T00:00:00+09:00"});
    assert_eq!(changes(later), json!({"name": ["Rust evening", "x"]}));
    // The last event has another name now.
    let removed = json!([made["events"][2]["eventId"], made["events"][3]["eventId"]]);
    let expected = json!({
        "rrule": ["FREQ=WEEKLY;COUNT=4", "FREQ=WEEKLY;UNTIL=20300108"], "events": {"added": [], "removed": removed},
        "name": ["x", "Rust evening"],
    });
    assert_eq!(changes(json!({"until": "2030-01-08"})), expected);
    rename(&club, &show(&club, &path)["events"][1], "alone");
    assert_eq!(changes(json!({"description": "d", "name": "y"}))["name"], json!(["Rust evening", "y"]));
    assert_eq!(
        changes(json!({"admins": [id(BOB), id(DAVE)]})),
        json!({"admins": {"added": [id(DAVE)], "removed": []}})
    );
}

/// Something that is done to a series or to one of its events.
#[derive(Debug, Clone)]
enum Step {
    /// The rule ends so many weeks after the first date.
    Until(u64),
    /// A date so many days after the first one, at this hour.
    Add(u64, u32),
    /// The deletion of a date, and of all from it on.
    Delete(usize),
    DeleteFrom(usize),
    /// The restoration of the event that was deleted last.
    Restore,
    /// Another name of one date, and of all, with or without those that were changed by themselves.
    Rename(usize, String),
    RenameAll(String, bool),
    /// Another start of all.
    StartAt(u32),
}

fn step() -> impl Strategy<Value = Step> {
    let name = || prop::sample::select(vec!["a".to_owned(), "b".to_owned()]);
    prop_oneof![
        3 => (0..9_u64).prop_map(Step::Until),
        3 => (0..60_u64, 9..22_u32).prop_map(|(day, hour)| Step::Add(day, hour)),
        3 => any::<usize>().prop_map(Step::Delete),
        1 => any::<usize>().prop_map(Step::DeleteFrom),
        3 => Just(Step::Restore),
        2 => (any::<usize>(), name()).prop_map(|(n, name)| Step::Rename(n, name)),
        2 => (name(), any::<bool>()).prop_map(|(name, is_all)| Step::RenameAll(name, is_all)),
        2 => (9..19_u32).prop_map(Step::StartAt),
    ]
}

/// Does this. It may be refused.
fn take(club: &Club, path: &str, step: &Step, deleted: &mut Vec<String>) {
    let day = |days: u64| chrono::NaiveDate::from_ymd_opt(2030, 1, 1).unwrap() + chrono::Days::new(days);
    let shown = show(club, path);
    let events = shown["events"].as_array().unwrap();
    let nth = |n: usize| n.checked_rem(events.len()).map(|n| &events[n]);
    let path_of = |event: &Value| format!("/api/events/{}", text(&event["eventId"]));
    let status = match step {
        Step::Until(weeks) => club.by(BOB).patch(path, json!({"until": day(weeks * 7).to_string()})).status,
        Step::Add(days, hour) => {
            let body = date(&day(*days).to_string(), &format!("{hour:02}:00"), &format!("{}:00", hour + 1));
            club.by(BOB).post(&format!("{path}/occurrences"), body).status
        }
        Step::Delete(n) => nth(*n).map_or(404, |event| club.by(BOB).delete(&path_of(event)).status),
        Step::DeleteFrom(n) => nth(*n).map_or(404, |event| {
            let from = text(&event["timeStart"]).replace('+', "%2B");
            club.by(BOB).delete(&format!("{path}?from={from}")).status
        }),
        Step::Restore => deleted.pop().map_or(404, |path| {
            let answer = club.by(BOB).post(&format!("{path}/restore"), json!({}));
            answer.status
        }),
        Step::Rename(n, name) => nth(*n).map_or(404, |event| {
            rename(club, event, name);
            200
        }),
        Step::RenameAll(name, is_all) => {
            club.by(BOB).patch(&format!("{path}?includeChanged={is_all}"), json!({ "name": name })).status
        }
        Step::StartAt(hour) => club.by(BOB).patch(path, json!({"startTime": format!("{hour:02}:00")})).status,
    };
    assert!([200, 201, 204, 400, 404, 409].contains(&status), "{step:?}: {status}");
    let left = each(&show(club, path)["events"], "eventId");
    let gone = events.iter().filter(|event| !left.contains(&text(&event["eventId"])));
    deleted.extend(gone.map(path_of));
}

/// Checks that each row has what the rows before left as its old values.
fn check_chain(rows: &[Value]) {
    let mut state: BTreeMap<String, Value> = BTreeMap::from([("deleted".to_owned(), json!(false))]);
    for row in rows {
        for (field, change) in row["changes"].as_object().unwrap() {
            let state = state.entry(field.clone()).or_default();
            if let [old, new] = change.as_array().map_or(&[][..], Vec::as_slice) {
                assert_eq!(state, old, "{field} in {row} of {rows:#?}");
                *state = new.clone();
                continue;
            }
            let mut list = state.as_array().cloned().unwrap_or_default();
            for element in change["removed"].as_array().unwrap() {
                let index = list.iter().position(|other| other == element);
                list.remove(index.unwrap_or_else(|| panic!("{field} has no {element} before {row} of {rows:#?}")));
            }
            for element in change["added"].as_array().unwrap() {
                assert!(!list.contains(element), "{field} has {element} before {row} of {rows:#?}");
                list.push(element.clone());
            }
            *state = json!(list);
        }
    }
}

#[rstest]
fn the_rows_of_the_history_are_a_chain(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let chain_of = |object: &str| {
        let mut rows = club.by(ALICE).get(&format!("/api/audit?object={object}")).expect(200).json();
        let rows = rows.as_array_mut().unwrap();
        rows.reverse();
        check_chain(rows);
        rows.clone()
    };
    let mut runner = TestRunner::new(Config { cases: 8, failure_persistence: None, ..Config::default() });
    let added = Step::Add(58, 21);
    let fixed = [vec![added.clone(), Step::StartAt(10)], vec![Step::Until(1), Step::Restore, Step::Until(1)]];
    let run = |steps: &[Step], place: &str| {
        let (path, made) = series(&club, BOB, place, "FREQ=WEEKLY;COUNT=4");
        let mut deleted = Vec::new();
        for step in steps {
            take(&club, &path, step, &mut deleted);
        }
        let rows = chain_of(&text(&made["seriesId"]));
        let ids = rows.iter().flat_map(|row| row["changes"]["events"]["added"].as_array().cloned().unwrap_or_default());
        for event in ids.collect::<Vec<_>>() {
            chain_of(&text(&event));
        }
        club.by(BOB).delete(&path);
    };
    for (n, steps) in fixed.iter().enumerate() {
        run(steps, &format!("fixed {n}"));
    }
    let all = prop::collection::vec(step(), 4..14);
    runner
        .run(&all, |steps| {
            run(&steps, &uuid::Uuid::new_v4().simple().to_string());
            Ok(())
        })
        .unwrap();
}

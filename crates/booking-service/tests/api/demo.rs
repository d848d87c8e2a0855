//! `--demo`: fills an empty database once.

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;
use std::{collections::BTreeSet, sync::mpsc, time::Duration};

use actix_web::rt::System;
use booking_service::{
    demo::fill,
    schema::{draft_events as polls, events, groups, rooms},
    server,
};
use chrono::{DateTime, FixedOffset, TimeDelta};
use common::time::Clock;
use diesel::{connection::SimpleConnection, prelude::*};
use serde_json::{Value, json};
use service_kit::{
    config::CHECKOUT,
    database::{
        AnyConnection, Url,
        types::{DbTimestamp, DbUuid},
    },
};

use crate::{
    builders::each,
    double_booking::double_bookings,
    harness::{ALICE, BOB, Club, postgres_schema},
    process::{Process, until},
};

fn demo(backend: Backend) -> Club {
    Club::start_with(backend, &["--demo"])
}

fn list(club: &Club, path: &str) -> Vec<Value> {
    club.by(BOB).get(path).expect(200).json().as_array().unwrap().clone()
}

fn time(value: &Value) -> DateTime<FixedOffset> {
    value.as_str().unwrap().parse().unwrap()
}

/// The items of a list without random ids and times of creation, sorted.
fn without_ids(items: &[Value]) -> Vec<String> {
    let line = |item: &Value| {
        let mut item = item.as_object().unwrap().clone();
        item.retain(|name, _| {
            !["roomId", "eventId", "groupId", "seriesId", "createdAt", "updatedAt"].contains(&name.as_str())
        });
        for tag in item.get_mut("tags").into_iter().filter_map(Value::as_array_mut).flatten() {
            tag.as_object_mut().unwrap().remove("tagId");
        }
        json!(item).to_string()
    };
    let mut lines: Vec<_> = items.iter().map(line).collect();
    lines.sort();
    lines
}

fn everything(club: &Club) -> Vec<String> {
    let paths = ["/api/users?include-suspended=true", "/api/groups", "/api/rooms", "/api/events"];
    paths.iter().flat_map(|path| without_ids(&list(club, path))).collect()
}

#[rstest]
fn an_empty_database_is_filled(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start_with(backend, &["--demo"]);
    assert_eq!(list(&club, "/api/users?include-suspended=true").len(), 60);
    let (rooms, events) = (list(&club, "/api/rooms?onlyVerified=true"), list(&club, "/api/events"));
    assert_eq!(list(&club, "/api/groups").len(), 12);
    assert!((310..=375).contains(&events.len()), "{} events", events.len());
    assert!(rooms.len() > 250, "{} rooms", rooms.len());
    assert!(list(&club, "/api/rooms").iter().any(|room| room["verified"] == false));
    assert!(list(&club, "/api/tags").len() > 5);
    assert_eq!(club.by(ALICE).get("/api/users/me").json()["privileged"], true);
    assert_eq!(club.by(BOB).get("/api/users/me").json()["privileged"], false);

    assert_eq!(double_bookings(&club), []);
    // Everything was created before its start and before now, and starts within 58 days.
    let now = club.clock.now().utc();
    for item in rooms.iter().chain(&events) {
        assert!(time(&item["createdAt"]) < time(&item["timeStart"]) && time(&item["createdAt"]) < now, "{item}");
        assert!((time(&item["timeStart"]) - now.fixed_offset()).abs() < TimeDelta::days(58), "{item}");
    }
    // Past and future events have the same variety.
    let groups: BTreeSet<_> = events.iter().map(|event| event["groupId"].to_string()).collect();
    assert_eq!(groups.len(), 12);
    for is_past in [true, false] {
        let half: Vec<_> = events.iter().filter(|event| (time(&event["timeStart"]) < now) == is_past).collect();
        let has = |what: &str, is: &dyn Fn(&Value) -> bool| assert!(half.iter().any(|event| is(event)), "{what}");
        has("shared", &|event| event["sharedRoom"] == true);
        has("open", &|event| event["open"] == true);
        has("online", &|event| event["place"] == "Discord");
        has("tags", &|event| event["tags"].as_array().unwrap().len() > 1);
        has("admins", &|event| event["admins"].as_array().unwrap().len() > 1);
    }
    // The attendees are all active members, with each of the three answers.
    let meeting = events.iter().find(|event| event["name"] == "Lightning talks #1").unwrap();
    let meeting = club.by(BOB).get(&format!("/api/events/{}", meeting["eventId"].as_str().unwrap())).json();
    assert_eq!(meeting["attendees"].as_array().unwrap().len(), 57);
    let answers: BTreeSet<_> = each(&meeting["attendees"], "schedule").into_iter().collect();
    assert_eq!(answers.into_iter().collect::<Vec<_>>(), ["absent", "attendance", "pending"]);
    assert!(!list(&club, "/api/activity/events").is_empty());
    assert!(!list(&club, "/api/users/me/events?relation=attendees").is_empty());
}

#[rstest]
fn the_club_has_six_polls_in_every_state(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = demo(backend);
    let polls = polls::table.order(polls::deadline).select(polls::id).load::<DbUuid>(&mut club.connect()).unwrap();
    let polls: Vec<_> =
        polls.iter().map(|id| club.by(BOB).get(&format!("/api/draft-events/{id}")).expect(200).json()).collect();
    let states: Vec<_> =
        polls.iter().map(|poll| (poll["status"].as_str().unwrap(), poll["respondedCount"] == 0)).collect();
    let expected =
        [("closed", true), ("confirmed", false), ("closed", false), ("open", false), ("open", true), ("open", false)];
    assert_eq!(states, expected);
    assert_eq!(polls.iter().filter(|poll| poll["open"] == true).count(), 1);
    let event = club.by(BOB).get(&format!("/api/events/{}", polls[1]["eventId"].as_str().unwrap())).expect(200).json();
    let answers: BTreeSet<_> = each(&event["attendees"], "schedule").into_iter().collect();
    assert!(answers.contains("attendance"), "{answers:?}");
    assert!(!list(&club, "/api/users/me/draft-events").is_empty());
}

/// Takes seconds: both databases are filled by the functions of the operations.
#[test]
fn both_databases_show_the_same_club_on_the_same_day() {
    let today = || Clock::default().now().utc().with_timezone(&chrono_tz::Asia::Tokyo).date_naive();
    let of_one_day = || {
        let start_date = today();
        let [sqlite, postgres] = [demo(Backend::Sqlite), demo(Backend::Postgres)];
        (today() == start_date).then_some([sqlite, postgres])
    };
    // Midnight is between them once a day.
    let [sqlite, postgres] = of_one_day().or_else(of_one_day).unwrap();
    assert_eq!(everything(&sqlite), everything(&postgres));
}

#[rstest]
fn a_second_start_changes_nothing(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start_with(backend, &["--demo"]);
    let mut club = club;
    let before = list(&club, "/api/events");
    let rooms = list(&club, "/api/rooms");
    club.start_another();
    assert_eq!(list(&club, "/api/events"), before);
    assert_eq!(list(&club, "/api/rooms"), rooms);
    assert_eq!(list(&club, "/api/groups").len(), 12);

    // A database whose rows are all deleted stays empty.
    let deletion = events::deleted_at.eq(Some(DbTimestamp(club.clock.now())));
    diesel::update(events::table).set(deletion).execute(&mut club.connect()).unwrap();
    let deletion = rooms::deleted_at.eq(Some(DbTimestamp(club.clock.now())));
    diesel::update(rooms::table).set(deletion).execute(&mut club.connect()).unwrap();
    club.start_another();
    assert!(list(&club, "/api/events").is_empty() && list(&club, "/api/rooms").is_empty());
}

#[rstest]
fn a_database_in_use_is_left_alone(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut club = club;
    crate::builders::room(&club, BOB, "S516", (0, 3));
    club.config.demo = true;
    club.start_another();
    assert_eq!(list(&club, "/api/rooms").len(), 1);
    assert_eq!(list(&club, "/api/events").len(), 0);
    assert_eq!(club.by(BOB).get("/api/users/me").json()["privileged"], false);
}

fn groups_made_here(conn: &mut AnyConnection) -> i64 {
    groups::table.filter(groups::kind.eq(0)).count().get_result(conn).unwrap()
}

#[rstest]
fn concurrent_fills_fill_once(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let settings = booking_service::club::Club::new(&club.config).unwrap();
    let fill = || {
        System::new().block_on(async {
            let db = server::open(&club.config).await.unwrap();
            // A fill that waits too long for another one fails and changes nothing.
            let _ = fill(&db.for_start(), &settings, club.clock.now()).await;
        });
    };
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(fill);
        }
    });
    assert_eq!(groups_made_here(&mut club.connect()), 3);
    // One fill makes that many on any day.
    assert!((270..=375).contains(&list(&club, "/api/events").len()));
    assert_eq!(double_bookings(&club), []);
    // The demo makes no member of a real directory privileged.
    assert_eq!(club.by(BOB).get("/api/users/me").json()["privileged"], false);
}

/// No request waits for the work of a start, so it has no time limit of a request.
#[test]
fn a_slow_database_is_filled_as_well() {
    let mut club = Club::start(Backend::Postgres);
    club.stop_all();
    club.config.demo = true;
    club.config.database.checkout = CHECKOUT;
    let (mut other, mut conn) = (club.connect(), club.connect());
    other.batch_execute("BEGIN; LOCK TABLE rooms IN SHARE MODE").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let waits = "SELECT 1 / count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database \
                         WHERE datname = current_database() AND NOT granted AND relation = 'rooms'::regclass";
            until("the start waits", || conn.batch_execute(waits).is_ok());
            // Longer than a request waits for a lock.
            let (_keep, never) = mpsc::channel::<()>();
            let _ = never.recv_timeout(Duration::from_secs(4));
            other.batch_execute("COMMIT").unwrap();
        });
        club.start_another();
    });
    assert_eq!(groups_made_here(&mut club.connect()), 3);
}

#[test]
fn replicas_that_start_together_fill_once() {
    let url = postgres_schema();
    let arguments = ["--demo", "--database-url", &url];
    let mut replicas: Vec<_> = (0..3).map(|_| Process::spawn(&arguments)).collect();
    replicas.iter_mut().for_each(Process::until_it_listens);
    let made = replicas.iter().flat_map(Process::log).filter(|line| line.contains("demo: created")).count();
    assert_eq!(made, 1);
    assert_eq!(groups_made_here(&mut url.parse::<Url>().unwrap().connect().unwrap()), 3);
}

//! `updatedSince` on the lists of events: the changes that a client with a copy needs.

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;
use std::collections::BTreeSet;

use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::{
    builders::{At, EVERYONE, each, event, event_body, group, merge, text, verified_room},
    harness::{ALICE, BOB, CAROL, Club, hours_from_now, id},
    pages::{walk, with},
};

/// Every list of events except the activity list.
const LISTS: [&str; 5] = [
    "/api/events",
    "/api/rooms/{room}/events",
    "/api/groups/{group}/events",
    "/api/users/me/events",
    "/api/users/{user}/events",
];

/// Returns a time after all earlier changes and before all later ones.
fn mark(club: &Club) -> String {
    club.clock.advance(TimeDelta::minutes(1));
    let now = club.clock.now().to_string();
    club.clock.advance(TimeDelta::minutes(1));
    now
}

fn rows(club: &Club, path: &str) -> Value {
    club.by(BOB).get(path).expect(200).json()
}

fn ids(rows: &Value) -> BTreeSet<String> {
    each(rows, "eventId").into_iter().collect()
}

fn set<const N: usize>(ids: [&str; N]) -> BTreeSet<String> {
    ids.map(str::to_owned).into()
}

#[rstest]
fn created_changed_and_deleted_events_are_listed(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let [changed, tagged, deleted, _left_alone] =
        [1, 2, 3, 4].map(|hour| event(&club, BOB, At::Place("x"), (hour, hour + 1)));
    let since = mark(&club);
    let path = format!("/api/events?updatedSince={since}");
    assert_eq!(rows(&club, &path), json!([]));
    let body = merge([event_body(&club, BOB, At::Place("x"), (1, 2)), json!({"name": "other"})]);
    club.by(BOB).put(&format!("/api/events/{changed}"), body).expect(200);
    assert_eq!(ids(&rows(&club, &path)), set([&changed]));
    club.by(CAROL).post(&format!("/api/events/{tagged}/tags"), json!({"name": "rust"})).expect(204);
    assert_eq!(ids(&rows(&club, &path)), set([&changed, &tagged]));
    club.by(BOB).delete(&format!("/api/events/{deleted}")).expect(204);
    let made = event(&club, BOB, At::Place("x"), (5, 6));
    let now = rows(&club, &path);
    // The order is that of every list of events.
    assert_eq!(each(&now, "eventId"), [&changed, &tagged, &deleted, &made].map(String::clone));
    let is_deleted = |row: &Value| row.get("deletedAt").is_some();
    assert_eq!(now.as_array().unwrap().iter().map(is_deleted).collect::<Vec<_>>(), [false, false, true, false]);
    assert_eq!(now[1]["tags"][0]["name"], "rust");
    // Adding a tag again is no change; removing one is.
    let since = mark(&club);
    let path = format!("/api/events?updatedSince={since}");
    club.by(CAROL).post(&format!("/api/events/{tagged}/tags"), json!({"name": "rust"})).expect(204);
    assert_eq!(rows(&club, &path), json!([]));
    club.by(CAROL).delete(&format!("/api/events/{tagged}/tags/rust")).expect(204);
    assert_eq!(ids(&rows(&club, &path)), set([&tagged]));
    // Without the parameter, deleted events are not listed.
    assert!(!ids(&rows(&club, "/api/events")).contains(&deleted));
}

#[rstest]
fn the_activity_list_still_goes_back_7_days(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let long_ago = event(&club, BOB, At::Place("x"), (1, 2));
    club.clock.advance(TimeDelta::days(8));
    let week_ago = event(&club, BOB, At::Place("x"), (1, 2));
    let since = mark(&club);
    let new = event(&club, BOB, At::Place("x"), (1, 2));
    let path = "/api/activity/events";
    assert_eq!(ids(&rows(&club, path)), set([&week_ago, &new]));
    assert_eq!(ids(&rows(&club, &format!("{path}?updatedSince={since}"))), set([&new]));
    let all = rows(&club, &format!("{path}?updatedSince=2000-01-01T00:00:00Z"));
    assert!(ids(&all) == set([&week_ago, &new]) && !ids(&all).contains(&long_ago));
    club.by(BOB).get(&format!("{path}?updatedSince=x")).refused(400, "invalid-parameter");
}

#[rstest]
fn the_time_itself_is_exclusive(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let made = club.by(BOB).post("/api/events", event_body(&club, BOB, At::Place("x"), (1, 2))).expect(201).json();
    let at = text(&made["updatedAt"]).replace('+', "%2B");
    assert_eq!(rows(&club, &format!("/api/events?updatedSince={at}")), json!([]));
    let before = hours_from_now(&club, -1);
    let path = format!("/api/events?updatedSince={before}");
    assert_eq!(ids(&rows(&club, &path)), set([made["eventId"].as_str().unwrap()]));
    // The list has a tag like any other.
    let known = club.by(BOB).get(&path).header("etag").unwrap().to_owned();
    club.by(BOB).header("if-none-match", &known).get(&path).expect(304);
    for list in LISTS {
        let path = list.replace("{user}", &id(BOB).to_string()).replace("{group}", EVERYONE);
        let room = verified_room(&club, ALICE, "S516", (0, 1));
        let path = path.replace("{room}", &room);
        for bad in ["x", "2026-01-01", "2026-01-01T00:00:00"] {
            let refused = club.by(BOB).get(&format!("{path}?updatedSince={bad}")).expect(400);
            assert_eq!(refused.pointers(), ["updatedSince"], "{path}");
        }
        club.by(ALICE).delete(&format!("/api/rooms/{room}")).expect(200);
    }
}

#[rstest]
fn other_changes_are_not_listed(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let group = group(&club, BOB, "g", &[BOB, CAROL]);
    let room = verified_room(&club, ALICE, "S516", (0, 9));
    let body = merge([event_body(&club, BOB, At::Room(&room), (1, 2)), json!({"groupId": group})]);
    let event = text(&club.by(BOB).post("/api/events", body).expect(201).json()["eventId"]);
    let path = format!("/api/events?updatedSince={}", mark(&club));
    let answer = json!({"schedule": "attendance"});
    club.by(CAROL).put(&format!("/api/events/{event}/attendees/me"), answer).expect(204);
    let renamed = json!({"name": "h", "description": "", "open": true, "admins": [id(BOB)], "members": [id(BOB)]});
    club.by(BOB).put(&format!("/api/groups/{group}"), renamed).expect(200);
    club.by(ALICE).delete(&format!("/api/rooms/{room}/verified")).expect(204);
    club.by(BOB).put("/api/users/me/ical", json!({})).expect(200);
    assert_eq!(rows(&club, &path), json!([]));
    // The whole list still contains the event.
    assert_eq!(ids(&rows(&club, "/api/events")), set([&event]));
}

#[rstest]
fn every_list_of_events_has_the_parameter(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let group = group(&club, BOB, "g", &[BOB]);
    let room = verified_room(&club, ALICE, "S516", (0, 9));
    let body = |hours| merge([event_body(&club, BOB, At::Room(&room), hours), json!({"groupId": group})]);
    let make = |hours| text(&club.by(BOB).post("/api/events", body(hours)).expect(201).json()["eventId"]);
    let (deleted, moved, _same) = (make((1, 2)), make((2, 3)), make((3, 4)));
    let since = mark(&club);
    club.by(BOB).delete(&format!("/api/events/{deleted}")).expect(204);
    let elsewhere = event_body(&club, BOB, At::Place("y"), (2, 3));
    club.by(BOB).put(&format!("/api/events/{moved}"), elsewhere).expect(200);
    let user = id(BOB).to_string();
    for (list, also_moved) in LISTS.into_iter().zip([true, false, false, true, true]) {
        let path = list.replace("{user}", &user).replace("{group}", &group).replace("{room}", &room);
        let listed = ids(&rows(&club, &format!("{path}?updatedSince={since}")));
        // An event that has left a room or a group is now in another list.
        assert_eq!(listed, if also_moved { set([&deleted, &moved]) } else { set([&deleted]) }, "{path}");
    }
}

#[rstest]
fn the_parameter_combines_with_all_others(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let group = group(&club, CAROL, "g", &[BOB]);
    let since = mark(&club);
    let [early, late] = [1, 50].map(|hour| event(&club, BOB, At::Place("x"), (hour, hour + 1)));
    let body = merge([
        event_body(&club, CAROL, At::Place("y"), (2, 3)),
        json!({"groupId": group, "tags": [{"name": "rust", "locked": false}]}),
    ]);
    let of_group = text(&club.by(CAROL).post("/api/events", body).expect(201).json()["eventId"]);
    club.by(BOB).delete(&format!("/api/events/{early}")).expect(204);
    let listed = |path: &str| ids(&rows(&club, &with(path, &format!("updatedSince={since}"))));
    let noon = hours_from_now(&club, 10);
    assert_eq!(listed("/api/events"), set([&early, &late, &of_group]));
    assert_eq!(listed(&format!("/api/events?dateBegin={noon}")), set([&late]));
    assert_eq!(listed(&format!("/api/events?dateEnd={noon}")), set([&early, &of_group]));
    assert_eq!(listed(&format!("/api/events?q=group%3D%3D{group}")), set([&of_group]));
    assert_eq!(listed(&format!("/api/events?q=group%21%3D{group}")), set([&early, &late]));
    assert_eq!(listed("/api/users/me/events?relation=admins"), set([&early, &late]));
    let mine = format!("/api/users/me/events?relation=belongs-or-admins&dateEnd={noon}");
    assert_eq!(listed(&mine), set([&early, &of_group]));
    assert_eq!(listed(&format!("/api/users/{}/events?relation=admins", id(CAROL))), set([&of_group]));
    // In pages.
    let pages = walk(&club.by(BOB), &format!("/api/events?updatedSince={since}"), 1, || ());
    assert_eq!(each(&json!(pages), "eventId"), [early, of_group, late]);
}

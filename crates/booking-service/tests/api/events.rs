//! Events: declarations of use, answers, tags, lists.

use crate::harness::Backend::{self, Postgres, Sqlite};
use booking_service::events::{
    queries::{self, Order},
    selection::{Criterion, Deleted, Relation, Selection},
};
use chrono::TimeDelta;
use rstest::rstest;
use serde_json::{Value, json};
use service_kit::database::{
    PageBounds,
    types::{DbTimestamp, DbUuid},
};

use crate::{
    builders::{At, EVERYONE, declare, each, event, event_body, group, merge, room, span, text, verified_room},
    harness::{ALICE, BOB, CAROL, Club, DAVE, hours_from_now, id},
    plans,
};

fn answers(club: &Club, event: &str) -> Vec<(String, String)> {
    let detail = club.by(BOB).get(&format!("/api/events/{event}")).expect(200).json();
    let mut found: Vec<_> = detail["attendees"]
        .as_array()
        .unwrap()
        .iter()
        .map(|answer| (name_of(&answer["userId"]), text(&answer["schedule"])))
        .collect();
    found.sort();
    found
}

fn name_of(user: &Value) -> String {
    [ALICE, BOB, CAROL, DAVE].into_iter().find(|name| json!(id(name)) == *user).unwrap().to_owned()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
}

#[rstest]
fn naming_a_place_makes_an_unverified_room_of_the_events_span(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let group = group(&club, BOB, "rust", &[BOB, CAROL]);
    let body = merge([
        event_body(&club, BOB, At::Place("Discord"), (1, 3)),
        json!({
            "description": "日本語\n", "groupId": group, "open": true, "unknown": null,
            "tags": [{"name": "rust"}, {"name": "初心者", "locked": true}],
        }),
    ]);
    let answer = club.by(BOB).post("/api/events", body).expect(201);
    let made = answer.json();
    assert_eq!(club.by(CAROL).get(answer.header("location").unwrap()).expect(200).json(), made);
    assert_eq!((&made["place"], &made["groupName"]), (&json!("Discord"), &json!("rust")));
    assert_eq!((&made["createdBy"], &made["open"]), (&json!(id(BOB)), &json!(true)));
    assert_eq!(made["description"], "日本語\n");
    let room = &made["room"];
    assert_eq!(room["verified"], false);
    assert_eq!((&room["timeStart"], &room["timeEnd"]), (&made["timeStart"], &made["timeEnd"]));
    assert_eq!((&room["freeTimes"], &room["admins"]), (&json!([]), &made["admins"]));
    assert_eq!(each(&made["tags"], "name"), ["rust", "初心者"]);
    assert_eq!(made["tags"][1]["locked"], true);
    assert_eq!(answers(&club, made["eventId"].as_str().unwrap()), pairs(&[(BOB, "pending"), (CAROL, "pending")]));
    let listed = club.by(CAROL).get("/api/events").expect(200).json();
    assert_eq!(listed[0]["roomId"], room["roomId"]);
    assert_eq!(listed[0]["groupId"], json!(group));
    let mut invited = vec![id(BOB).to_string(), id(CAROL).to_string()];
    invited.sort();
    assert_eq!(listed[0]["attendees"], json!(invited));
}

#[rstest]
fn the_everyone_group_invites_all_active_members(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let event = event(&club, BOB, At::Place("Discord"), (1, 2));
    let all = pairs(&[(ALICE, "pending"), (BOB, "pending"), (CAROL, "pending"), (DAVE, "pending")]);
    assert_eq!(answers(&club, &event), all);
}

#[rstest]
fn a_room_is_used_inside_its_period(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let room = room(&club, ALICE, "S516", (1, 4));
    let made = declare(&club, BOB, At::Room(&room), (1, 4)).expect(201).json();
    assert_eq!(made["room"]["roomId"], room);
    assert_eq!(made["place"], "S516");
    declare(&club, BOB, At::Room(&room), (0, 2)).refused(400, "outside-room-window");
    declare(&club, BOB, At::Room(&room), (3, 5)).refused(400, "outside-room-window");
}

#[rstest]
fn a_bad_event_is_refused_with_every_violation(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let good = event_body(&club, BOB, At::Place("x"), (1, 2));
    let refused =
        |change: Value| club.by(BOB).post("/api/events", merge([good.clone(), change])).expect(400).pointers();
    assert_eq!(refused(json!({"roomId": id("x")})), ["/place"]);
    assert_eq!(refused(json!({"place": null})), ["/place"]);
    assert_eq!(refused(json!({"place": null, "roomId": id("x")})), ["/roomId"]);
    assert_eq!(refused(json!({"groupId": id("x")})), ["/groupId"]);
    let unknown = json!({"admins": [id(BOB), id(BOB), id("x")], "groupId": id("x"), "place": null, "roomId": id("x")});
    assert_eq!(refused(unknown), ["/admins/2", "/groupId", "/roomId"]);
    assert_eq!(refused(json!({"admins": []})), ["/admins"]);
    assert_eq!(refused(span(&club, 2, 2)), ["/timeEnd"]);
    assert_eq!(refused(json!({"tags": [{"name": "x"}, {"name": "x".repeat(17)}]})), ["/tags/1/name"]);
    assert_eq!(
        refused(json!({"name": "\u{0}", "sharedRoom": "no", "description": "x".repeat(10001)})),
        ["/description", "/name", "/sharedRoom"]
    );
    assert_eq!(refused(json!({"timeStart": "2026-04-01T09:00:00"})), ["/timeStart"]);
    assert_eq!(club.by(BOB).get("/api/events").json(), json!([]));
    let nothing = json!({});
    assert_eq!(
        club.by(BOB).post("/api/events", nothing).expect(400).pointers(),
        ["/admins", "/description", "/groupId", "/name", "/sharedRoom", "/timeEnd", "/timeStart"]
    );
    club.anonymous().post("/api/events", good.clone()).expect(401);
}

#[rstest]
fn seven_fractional_digits_and_any_offset_are_read(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let body = merge([
        event_body(&club, BOB, At::Place("x"), (1, 2)),
        json!({
            "timeStart": "2030-04-01T09:00:00.1234567+00:00", "timeEnd": "2030-04-01T05:00:00-05:00",
        }),
    ]);
    let made = club.by(BOB).post("/api/events", body).expect(201).json();
    assert_eq!(made["timeStart"], "2030-04-01T18:00:00.123456+09:00");
    assert_eq!(made["timeEnd"], "2030-04-01T19:00:00+09:00");
}

#[rstest]
fn only_its_administrators_and_privileged_users_change_an_event(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let event = event(&club, BOB, At::Place("x"), (1, 2));
    let path = format!("/api/events/{event}");
    let body = event_body(&club, BOB, At::Place("x"), (1, 2));
    club.by(CAROL).put(&path, body.clone()).refused(403, "forbidden");
    club.by(CAROL).delete(&path).refused(403, "forbidden");
    club.by(ALICE).put(&path, merge([body.clone(), json!({"admins": [id(CAROL)]})])).expect(200);
    club.by(BOB).put(&path, body.clone()).refused(403, "forbidden");
    club.by(CAROL).put(&path, body.clone()).expect(200);
    let nowhere = format!("/api/events/{}", id("nothing"));
    club.by(BOB).get(&nowhere).refused(404, "not-found");
    club.by(BOB).put(&nowhere, body).refused(404, "not-found");
    club.by(BOB).delete(&nowhere).refused(404, "not-found");
}

#[rstest]
fn a_change_keeps_the_creator_and_the_answers(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (first, second) = (group(&club, BOB, "a", &[BOB, CAROL]), group(&club, BOB, "b", &[CAROL, DAVE]));
    let body = |group: &str| merge([event_body(&club, BOB, At::Place("x"), (1, 2)), json!({"groupId": group})]);
    let made = club.by(BOB).post("/api/events", body(&first)).expect(201).json();
    let event = text(&made["eventId"]);
    let path = format!("/api/events/{event}");
    club.by(BOB).put(&format!("{path}/attendees/me"), json!({"schedule": "absent"})).expect(204);
    let changed = club.by(ALICE).put(&path, merge([body(&second), json!({"name": "new"})])).expect(200).json();
    assert_eq!(changed["name"], "new");
    assert_eq!((&changed["createdBy"], &changed["createdAt"]), (&made["createdBy"], &made["createdAt"]));
    let expected = [(BOB, "absent"), (CAROL, "pending"), (DAVE, "pending")];
    assert_eq!(answers(&club, &event), pairs(&expected));
    club.by(DAVE).put(&format!("{path}/attendees/me"), json!({"schedule": "attendance"})).expect(204);
    club.by(BOB).put(&path, body(&first)).expect(200);
    assert_eq!(answers(&club, &event), pairs(&[(BOB, "absent"), (CAROL, "pending"), (DAVE, "attendance")]));
}

#[rstest]
fn an_instant_room_moves_changes_and_goes_with_its_event(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let event = event(&club, BOB, At::Place("Discord"), (1, 2));
    let path = format!("/api/events/{event}");
    let room = text(&club.by(BOB).get(&path).json()["room"]["roomId"]);
    let body = merge([event_body(&club, BOB, At::Place("Zoom"), (3, 5)), json!({"admins": [id(BOB), id(CAROL)]})]);
    let moved = club.by(BOB).put(&path, body).expect(200).json();
    assert_eq!((&moved["room"]["roomId"], &moved["room"]["place"]), (&json!(room), &json!("Zoom")));
    assert_eq!(moved["room"]["timeStart"], moved["timeStart"]);
    assert_eq!(moved["room"]["admins"], moved["admins"]);
    // A request that names the room by its id still means the event's own room.
    let moved = club.by(BOB).put(&path, event_body(&club, BOB, At::Room(&room), (4, 5))).expect(200).json();
    assert_eq!(moved["room"]["timeStart"], moved["timeStart"]);
    assert_eq!(club.by(BOB).get("/api/rooms").json().as_array().unwrap().len(), 1);
    club.by(BOB).delete(&path).expect(204);
    club.by(BOB).get(&format!("/api/rooms/{room}")).refused(404, "not-found");
    club.by(BOB).get(&path).refused(404, "not-found");
    club.by(BOB).delete(&path).refused(404, "not-found");
    assert_eq!(club.by(BOB).get("/api/events").json(), json!([]));
}

#[rstest]
fn an_instant_room_that_another_event_uses_stays(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let owner = event(&club, BOB, At::Place("Discord"), (1, 4));
    let path = format!("/api/events/{owner}");
    let room = text(&club.by(BOB).get(&path).json()["room"]["roomId"]);
    let shared = |hours| merge([event_body(&club, BOB, At::Place("Discord"), hours), json!({"sharedRoom": true})]);
    club.by(BOB).put(&path, shared((1, 4))).expect(200);
    let guest = merge([event_body(&club, CAROL, At::Room(&room), (2, 3)), json!({"sharedRoom": true})]);
    let guest = text(&club.by(CAROL).post("/api/events", guest).expect(201).json()["eventId"]);
    // An exclusive event would conflict with the other event in the room.
    club.by(BOB).put(&path, event_body(&club, BOB, At::Place("Discord"), (1, 4))).refused(409, "room-conflict");
    let renamed = club.by(BOB).put(&path, merge([shared((1, 4)), json!({"name": "n"})])).expect(200).json();
    assert_eq!(renamed["room"]["roomId"], room);
    let moved = club.by(BOB).put(&path, shared((5, 6))).expect(200).json();
    assert_ne!(moved["room"]["roomId"], json!(room));
    assert_eq!(club.by(BOB).get(&format!("/api/events/{guest}")).json()["room"]["roomId"], room);
    club.by(BOB).delete(&path).expect(204);
    club.by(BOB).get(&format!("/api/rooms/{room}")).expect(200);
}

#[rstest]
fn from_an_instant_to_a_stock_room_and_back(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let stock = verified_room(&club, ALICE, "S516", (0, 9));
    let event = event(&club, BOB, At::Place("Discord"), (1, 2));
    let path = format!("/api/events/{event}");
    let own = text(&club.by(BOB).get(&path).json()["room"]["roomId"]);
    let there = club.by(BOB).put(&path, event_body(&club, BOB, At::Room(&stock), (3, 4))).expect(200).json();
    assert_eq!((&there["room"]["roomId"], &there["place"]), (&json!(stock), &json!("S516")));
    club.by(BOB).get(&format!("/api/rooms/{own}")).refused(404, "not-found");
    club.by(BOB).put(&path, event_body(&club, BOB, At::Room(&stock), (8, 10))).refused(400, "outside-room-window");
    let back = club.by(BOB).put(&path, event_body(&club, BOB, At::Place("Zoom"), (3, 4))).expect(200).json();
    assert_eq!(back["room"]["verified"], false);
    assert_eq!(club.by(BOB).get(&format!("/api/rooms/{stock}/events")).json(), json!([]));
    club.by(BOB).delete(&path).expect(204);
    club.by(BOB).get(&format!("/api/rooms/{stock}")).expect(200);
}

#[rstest]
fn lists_take_events_that_overlap_the_span(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let long = event(&club, BOB, At::Place("long"), (-100, 100));
    let early = event(&club, BOB, At::Place("a"), (1, 2));
    let late = event(&club, BOB, At::Place("b"), (3, 4));
    let (one, two, three) = (hours_from_now(&club, 1), hours_from_now(&club, 2), hours_from_now(&club, 3));
    let room = text(&club.by(BOB).get(&format!("/api/events/{early}")).json()["room"]["roomId"]);
    for base in [
        "/api/events?",
        "/api/users/me/events?",
        &format!("/api/users/{}/events?", id(BOB)),
        &format!("/api/groups/{EVERYONE}/events?"),
    ] {
        let ids = |query: String| each(&club.by(BOB).get(&format!("{base}{query}")).expect(200).json(), "eventId");
        assert_eq!(ids(String::new()), [&*long, &*early, &*late], "{base}");
        assert_eq!(ids(format!("dateBegin={two}")), [&*long, &*late]);
        assert_eq!(ids(format!("dateEnd={three}")), [&*long, &*early]);
        assert_eq!(ids(format!("dateBegin={one}&dateEnd={two}")), [&*long, &*early]);
        assert_eq!(ids(format!("dateBegin={two}&dateEnd={three}")), [&*long]);
        let wrong = club.by(BOB).get(&format!("{base}dateBegin={two}&dateEnd={one}"));
        assert_eq!(wrong.expect(400).pointers(), ["dateEnd"]);
        club.anonymous().get(base).expect(401);
    }
    let in_room = club.by(BOB).get(&format!("/api/rooms/{room}/events")).expect(200).json();
    assert_eq!(each(&in_room, "eventId"), [&*early]);
    let after = club.by(BOB).get(&format!("/api/rooms/{room}/events?dateBegin={two}")).expect(200).json();
    assert_eq!(after, json!([]));
    club.by(BOB).get(&format!("/api/groups/{}/events", id("x"))).refused(404, "not-found");
    club.by(BOB).get(&format!("/api/users/{}/events", id("x"))).refused(404, "not-found");
}

#[rstest]
fn a_users_events_by_relation(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let group = group(&club, CAROL, "rust", &[BOB]);
    let body = |place: &str, change: Value| {
        merge([event_body(&club, CAROL, At::Place(place), (1, 2)), json!({"groupId": group}), change])
    };
    let make = |place: &str, change: Value| {
        text(&club.by(CAROL).post("/api/events", body(place, change)).expect(201).json()["eventId"])
    };
    let belongs = make("a", json!({}));
    let everyone = make("b", json!({"groupId": EVERYONE, "timeStart": hours_from_now(&club, 0).to_string()}));
    let other = group_of_dave(&club);
    let administers = make("c", json!({"groupId": other, "admins": [id(BOB)]}));
    let attends = make("d", json!({"groupId": other, "open": true}));
    let declined = make("e", json!({"groupId": other, "open": true}));
    for (event, schedule) in [(&attends, "attendance"), (&declined, "absent")] {
        let path = format!("/api/events/{event}/attendees/me");
        club.by(BOB).put(&path, json!({ "schedule": schedule })).expect(204);
    }
    let sorted = |mut ids: Vec<String>| {
        ids.sort();
        ids
    };
    for base in ["/api/users/me/events".to_owned(), format!("/api/users/{}/events", id(BOB))] {
        let ids =
            |query: &str| sorted(each(&club.by(BOB).get(&format!("{base}{query}")).expect(200).json(), "eventId"));
        let expected = |ids: &[&String]| sorted(ids.iter().map(|id| (*id).clone()).collect());
        assert_eq!(ids(""), expected(&[&belongs, &everyone]));
        assert_eq!(ids("?relation=belongs"), expected(&[&belongs, &everyone]));
        assert_eq!(ids("?relation=admins"), expected(&[&administers]));
        assert_eq!(ids("?relation=belongs-or-admins"), expected(&[&belongs, &everyone, &administers]));
        assert_eq!(ids("?relation=attendees"), expected(&[&attends]));
        assert_eq!(club.by(BOB).get(&format!("{base}?relation=x")).expect(400).pointers(), ["relation"]);
    }
    // All active users are members of the everyone group.
    let suspended = club.by(BOB).get(&format!("/api/users/{}/events", id("susan"))).expect(200).json();
    assert_eq!(suspended, json!([]));
}

#[rstest]
fn answers_are_for_members_of_the_group_or_everybody_when_open(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let group = group(&club, BOB, "rust", &[BOB]);
    let body = merge([event_body(&club, BOB, At::Place("x"), (1, 2)), json!({"groupId": group})]);
    let event = text(&club.by(BOB).post("/api/events", body.clone()).expect(201).json()["eventId"]);
    let path = format!("/api/events/{event}/attendees/me");
    let answer = |schedule: &str| json!({ "schedule": schedule });
    club.by(CAROL).put(&path, answer("attendance")).refused(403, "forbidden");
    for schedule in ["attendance", "absent", "pending", "attendance"] {
        club.by(BOB).put(&path, answer(schedule)).expect(204);
        assert_eq!(answers(&club, &event), pairs(&[(BOB, schedule)]));
    }
    assert_eq!(club.by(BOB).put(&path, answer("maybe")).expect(400).pointers(), ["/schedule"]);
    club.by(BOB).put(&format!("/api/events/{event}"), merge([body, json!({"open": true})])).expect(200);
    club.by(CAROL).put(&path, answer("absent")).expect(204);
    assert_eq!(answers(&club, &event), pairs(&[(BOB, "attendance"), (CAROL, "absent")]));
    let nowhere = format!("/api/events/{}/attendees/me", id("x"));
    club.by(BOB).put(&nowhere, answer("absent")).refused(404, "not-found");
    // Nobody comes any more after its end.
    club.clock.advance(chrono::TimeDelta::hours(3));
    for by in [BOB, CAROL] {
        for schedule in ["attendance", "pending"] {
            club.by(by).put(&path, answer(schedule)).refused(403, "forbidden");
            club.by(by).put(&format!("{path}?series=true"), answer(schedule)).refused(403, "forbidden");
        }
        club.by(by).put(&path, answer("absent")).expect(204);
    }
    assert_eq!(answers(&club, &event), pairs(&[(BOB, "absent"), (CAROL, "absent")]));
}

#[rstest]
fn tags_are_added_and_removed(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let event = event(&club, BOB, At::Place("x"), (1, 2));
    let path = format!("/api/events/{event}/tags");
    let tags = || {
        let tags = club.by(DAVE).get(&format!("/api/events/{event}")).json()["tags"].clone();
        tags.as_array().unwrap().iter().map(|t| (text(&t["name"]), t["locked"] == true)).collect::<Vec<_>>()
    };
    club.by(CAROL).post(&path, json!({"name": "初心者 / 100%"})).expect(204);
    club.by(CAROL).post(&path, json!({"name": "初心者 / 100%"})).expect(204);
    club.by(CAROL).post(&path, json!({"name": "locked", "locked": true})).refused(403, "forbidden");
    club.by(BOB).post(&path, json!({"name": "locked", "locked": true})).expect(204);
    club.by(CAROL).post(&path, json!({"name": "locked"})).expect(204);
    assert_eq!(tags(), [("locked".to_owned(), true), ("初心者 / 100%".to_owned(), false)]);
    assert!(each(&club.by(DAVE).get("/api/tags").json(), "name").contains(&"locked".to_owned()));
    club.by(CAROL).delete(&format!("{path}/locked")).refused(403, "forbidden");
    let encoded = "%E5%88%9D%E5%BF%83%E8%80%85%20%2F%20100%25";
    club.by(CAROL).delete(&format!("{path}/{encoded}")).expect(204);
    club.by(CAROL).delete(&format!("{path}/{encoded}")).refused(404, "not-found");
    club.by(BOB).delete(&format!("{path}/locked")).expect(204);
    assert_eq!(tags(), []);
    // A privileged user has the same rights as an administrator.
    club.by(ALICE).post(&path, json!({"name": "locked", "locked": true})).expect(204);
    club.by(ALICE).delete(&format!("{path}/locked")).expect(204);
    assert_eq!(club.by(BOB).post(&path, json!({"name": ""})).expect(400).pointers(), ["/name"]);
    club.by(BOB).post(&format!("/api/events/{}/tags", id("x")), json!({"name": "x"})).refused(404, "not-found");
}

#[rstest]
fn several_new_tags_at_once_all_arrive(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let event = event(&club, BOB, At::Place("x"), (1, 2));
    let path = format!("/api/events/{event}/tags");
    std::thread::scope(|scope| {
        for n in 0..8 {
            let (club, path) = (&club, &path);
            scope.spawn(move || club.by(CAROL).post(path, json!({"name": format!("tag {}", n / 2)})).expect(204));
        }
    });
    let tags = club.by(BOB).get(&format!("/api/events/{event}")).json()["tags"].clone();
    assert_eq!(each(&tags, "name"), ["tag 0", "tag 1", "tag 2", "tag 3"]);
}

#[rstest]
fn the_activity_list_shows_a_week_of_changes_newest_first(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let old = event(&club, BOB, At::Place("old"), (300, 301));
    club.clock.advance(TimeDelta::days(6));
    let gone = event(&club, BOB, At::Place("gone"), (1, 2));
    club.clock.advance(TimeDelta::hours(1));
    let kept = event(&club, BOB, At::Place("kept"), (1, 2));
    club.clock.advance(TimeDelta::hours(1));
    club.by(BOB).delete(&format!("/api/events/{gone}")).expect(204);
    let activity = club.by(CAROL).get("/api/activity/events").expect(200).json();
    assert_eq!(each(&activity, "eventId"), [&*gone, &*kept, &*old]);
    assert!(activity[0]["deletedAt"].is_string());
    assert!(activity[1].get("deletedAt").is_none());
    club.clock.advance(TimeDelta::days(2));
    let activity = club.by(CAROL).get("/api/activity/events").expect(200).json();
    assert_eq!(each(&activity, "eventId"), [&*gone, &*kept]);
    club.anonymous().get("/api/activity/events").expect(401);
}

#[rstest]
fn a_list_takes_a_fixed_number_of_statements(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let paths = ["/api/events", "/api/rooms", "/api/users/me/events", "/api/activity/events", "/api/users"];
    let statements = || {
        let metrics = club.anonymous().get("/metrics").text();
        let line = metrics.lines().find(|line| line.starts_with("db_statements_total")).unwrap().to_owned();
        line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()
    };
    let count = |path: &str| {
        let before = statements();
        club.by(BOB).get(path).expect(200);
        statements() - before
    };
    let one = event(&club, BOB, At::Place("x"), (1, 2));
    let small: Vec<_> = paths.iter().map(|path| count(path)).collect();
    for n in 0..30 {
        event(&club, BOB, At::Place(&format!("x{n}")), (1, 2));
    }
    let large: Vec<_> = paths.iter().map(|path| count(path)).collect();
    assert_eq!(small, large, "{paths:?}");
    // BEGIN, COMMIT, the caller and the events. If they have tags, there is one more for the names.
    assert_eq!(small[0], 4);
    // BEGIN, COMMIT, the caller; the event with its room, group and answers; the members of the everyone group; what
    // uses the place; the tags.
    assert_eq!(count(&format!("/api/events/{one}")), 7);
}

#[rstest]
fn an_event_keeps_a_deleted_room_but_cannot_move_in_it(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let room = verified_room(&club, BOB, "S516", (-5, 10));
    let event = event(&club, BOB, At::Room(&room), (-4, -3));
    let path = format!("/api/events/{event}");
    club.by(BOB).delete(&format!("/api/rooms/{room}")).expect(200);
    let renamed = merge([event_body(&club, BOB, At::Room(&room), (-4, -3)), json!({"name": "new"})]);
    let renamed = club.by(BOB).put(&path, renamed).expect(200).json();
    assert_eq!((&renamed["name"], &renamed["room"]["roomId"]), (&json!("new"), &json!(room)));
    let later = club.by(BOB).put(&path, event_body(&club, BOB, At::Room(&room), (4, 5))).expect(400);
    assert_eq!(later.pointers(), ["/roomId"]);
    club.by(BOB).get(&format!("/api/rooms/{room}/events")).refused(404, "not-found");
    let elsewhere = club.by(BOB).put(&path, event_body(&club, BOB, At::Place("S516"), (4, 5))).expect(200).json();
    club.by(BOB).get(&format!("/api/rooms/{}", text(&elsewhere["room"]["roomId"]))).expect(200);
}

#[rstest]
fn a_deleted_instant_room_is_replaced_when_the_event_moves(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for again in ["place", "room"] {
        let event = event(&club, BOB, At::Place("Discord"), (-4, -3));
        let path = format!("/api/events/{event}");
        let room = text(&club.by(BOB).get(&path).json()["room"]["roomId"]);
        club.by(BOB).delete(&format!("/api/rooms/{room}")).expect(200);
        let at = if again == "place" { At::Place("Discord") } else { At::Room(&room) };
        let moved = club.by(BOB).put(&path, event_body(&club, BOB, at, (4, 5))).expect(200).json();
        assert_ne!(moved["room"]["roomId"], json!(room));
        let shown = club.by(BOB).get(&format!("/api/rooms/{}", text(&moved["room"]["roomId"]))).expect(200).json();
        assert_eq!(shown["timeStart"], moved["timeStart"]);
    }
}

#[rstest]
fn an_event_of_a_deleted_group_can_be_changed(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (gone, other) = (group(&club, BOB, "gone", &[BOB]), group(&club, BOB, "other", &[BOB]));
    let body = |group: &str| merge([event_body(&club, BOB, At::Place("x"), (-2, -1)), json!({"groupId": group})]);
    let event = text(&club.by(BOB).post("/api/events", body(&gone)).expect(201).json()["eventId"]);
    for group in [&gone, &other] {
        club.by(BOB).delete(&format!("/api/groups/{group}")).expect(204);
    }
    let path = format!("/api/events/{event}");
    let changed = club.by(BOB).put(&path, body(&gone)).expect(200).json();
    assert_eq!((&changed["group"]["groupId"], &changed["groupName"]), (&json!(gone), &json!("gone")));
    assert_eq!(club.by(BOB).put(&path, body(&other)).expect(400).pointers(), ["/groupId"]);
    assert_eq!(club.by(BOB).post("/api/events", body(&gone)).expect(400).pointers(), ["/groupId"]);
    assert_eq!(club.by(BOB).get("/api/events").json()[0]["groupId"], json!(gone));
}

/// A group with Dave as its only member.
fn group_of_dave(club: &Club) -> String {
    group(club, DAVE, "others", &[DAVE])
}

#[rstest]
fn queries_use_indexes(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let room = verified_room(&club, ALICE, "S516", (0, 9));
    // Lists have more than one row.
    event(&club, BOB, At::Room(&verified_room(&club, ALICE, "S517", (0, 9))), (1, 2));
    let event = DbUuid(event(&club, BOB, At::Room(&room), (1, 2)).parse().unwrap());
    let room = DbUuid(room.parse().unwrap());
    let group = DbUuid(EVERYONE.parse().unwrap());
    let at = |hours| DbTimestamp(hours_from_now(&club, hours));
    let week = (Some(at(-10)), Some(at(100)));
    let user = id(BOB);
    let of_user = |relation| Criterion::OfUser { user, relation, is_active: true, by_span: false };
    let selections = [
        Selection::new(Criterion::All).between(week),
        Selection::new(Criterion::All).between((week.0, None)),
        Selection::new(Criterion::All).between((None, week.1)),
        Selection::new(Criterion::All).since(Some(at(-10))),
        Selection::new(Criterion::All).since(Some(at(-10))).between(week),
        Selection::new(Criterion::InRoom(room)),
        Selection::new(Criterion::OfGroup(group)).between(week),
        Selection::new(of_user(Relation::Belongs)),
        Selection::new(of_user(Relation::Admins)),
        Selection::new(of_user(Relation::BelongsOrAdmins)),
        Selection::new(of_user(Relation::Attendees)),
        Selection { deleted: Deleted::All, ..Selection::new(Criterion::ChangedAfter(at(-10))) },
        Selection {
            deleted: Deleted::After(at(-700)),
            ..Selection::new(Criterion::ForFeed(user)).between((Some(at(-2160)), None))
        },
    ];
    for selection in selections {
        plans::check(&club, |conn| {
            queries::load_page(conn, &selection, Order::Start, &PageBounds::all()).unwrap();
        });
    }
    plans::check(&club, |conn| {
        queries::get(conn, event).unwrap();
    });
}

#[rstest]
fn pages_are_not_sorted_out_of_whole_lists(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let at = DbTimestamp(club.clock.now());
    let recent = Selection { deleted: Deleted::All, ..Selection::new(Criterion::ChangedAfter(at)) };
    let of_group = Criterion::OfGroup(DbUuid(EVERYONE.parse().unwrap()));
    let selections = [
        (Selection::new(Criterion::All), Order::Start),
        (Selection::new(Criterion::All).between((Some(at), None)), Order::Start),
        (Selection::new(Criterion::All).between((None, Some(at))), Order::Start),
        (Selection::new(Criterion::All).between((Some(at), Some(at))), Order::Start),
        (Selection::new(of_group), Order::Start),
        (recent, Order::Change),
    ];
    for (selection, order) in selections {
        let longest = PageBounds { after: None, rows: 1001 };
        for page in plans::pages((at, id(BOB))).into_iter().chain([longest]) {
            plans::check_page(&club, |conn| {
                queries::load_page(conn, &selection, order, &page).unwrap();
            });
        }
    }
}

/// SQLite has no statistics here, so it has one plan for any number of rows.
#[test]
fn sqlite_finds_the_events_of_a_feed_by_user_and_group_and_not_by_time() {
    let club = Club::start_with(Sqlite, &[]);
    let after = Some(DbTimestamp(club.clock.now()));
    let selection = Selection::new(Criterion::ForFeed(id(BOB))).between((after, None));
    let sent = plans::statements(&club, |conn| {
        queries::load_page(conn, &selection, Order::Start, &PageBounds::all()).unwrap();
    });
    let plan = plans::plan(&mut club.connect(), &sent[0]);
    let steps = |text: &str| plan.iter().filter(|step| step.contains(text)).count();
    assert_eq!(steps("events_by_group (group_id=? AND starts_at>?)"), 2, "{plan:#?}");
    assert_eq!(steps("events_long_by_group (group_id=? AND starts_at<?)"), 2, "the long ones: {plan:#?}");
    assert_eq!(steps("SEARCH events"), 5, "and the events with these ids: {plan:#?}");
}

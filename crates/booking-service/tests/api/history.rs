//! The history of objects (contract, "History").

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;

use diesel::prelude::*;
use serde_json::{Value, json};
use service_kit::{
    database::{AnyConnection, schema::history, types::DbTimestamp},
    removal::first_place,
};

use crate::{
    builders::{At, EVERYONE, event, event_body, group, merge, poll, room, text, verified_room},
    double_booking::{double_bookings, retry_while_busy, start_services},
    harness::{ALICE, BOB, CAROL, Club, DAVE, id},
    plans,
    sync::{start_with_file, with_members},
    tokens::make_token,
};

/// The history of an object, as a privileged user reads it.
pub fn of(club: &Club, path: &str) -> Vec<Value> {
    club.by(ALICE).get(&format!("{path}/history")).expect(200).json().as_array().unwrap().clone()
}

/// The newest row, without what differs in each run.
fn newest(club: &Club, path: &str) -> Value {
    let row = of(club, path).remove(0);
    json!([row["actor"], row["by"], row["action"], row["changes"]])
}

#[rstest]
fn an_event_has_a_row_for_each_change(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let body = event_body(&club, BOB, At::Place("S516"), (1, 2));
    let made = club.by(BOB).header("x-request-id", "first").post("/api/events", body.clone()).expect(201).json();
    let path = format!("/api/events/{}", text(&made["eventId"]));
    let rows = of(&club, &path);
    let [row] = rows.as_slice() else { panic!("{rows:?}") };
    assert_eq!(row["requestId"], "first");
    assert_eq!((&row["objectType"], &row["objectId"]), (&json!("event"), &made["eventId"]));
    let expected = json!({
        "name": [null, "Rust evening"], "description": [null, ""], "sharedRoom": [null, false], "open": [null, false],
        "timeStart": [null, made["timeStart"]], "timeEnd": [null, made["timeEnd"]], "place": [null, "S516"],
        "roomId": [null, made["room"]["roomId"]], "groupId": [null, EVERYONE],
        "admins": {"added": [id(BOB)], "removed": []},
    });
    assert_eq!(newest(&club, &path), json!([id(BOB), "session", "created", expected]));

    club.by(BOB).put(&path, body.clone()).expect(200);
    assert_eq!(of(&club, &path).len(), 1, "the same again");
    club.by(BOB).put(&format!("{path}?dryRun=true"), merge([body.clone(), json!({"name": "x"})])).expect(200);
    club.by(DAVE).put(&path, merge([body.clone(), json!({"name": "x"})])).refused(403, "forbidden");
    club.by(CAROL).put(&format!("{path}/attendees/me"), json!({"schedule": "attendance"})).expect(204);
    assert_eq!(of(&club, &path).len(), 1, "tried, refused and answered");

    let changed = merge([body, json!({"name": "Zig", "place": "S517", "admins": [id(BOB), id(CAROL)]})]);
    club.by(BOB).put(&path, changed).expect(200);
    let expected = json!({
        "name": ["Rust evening", "Zig"], "place": ["S516", "S517"], "admins": {"added": [id(CAROL)], "removed": []},
    });
    assert_eq!(newest(&club, &path), json!([id(BOB), "session", "changed", expected]));

    club.by(DAVE).post(&format!("{path}/tags"), json!({"name": "rust"})).expect(204);
    let row = newest(&club, &path);
    assert_eq!((&row[0], &row[3]["tags"]["added"][0]["name"]), (&json!(id(DAVE)), &json!("rust")));
    club.by(DAVE).post(&format!("{path}/tags"), json!({"name": "rust"})).expect(204);
    club.by(DAVE).delete(&format!("{path}/tags/rust")).expect(204);
    assert_eq!(newest(&club, &path)[3]["tags"]["removed"][0]["name"], "rust");

    let bot = club.anonymous().header("authorization", &format!("Bearer {}", make_token(&club, BOB, "write")));
    bot.delete(&path).expect(204);
    assert_eq!(newest(&club, &path), json!([id(BOB), "token", "deleted", {"deleted": [false, true]}]));
    assert!(of(&club, &path)[0]["tokenName"].is_string());
    assert_eq!(of(&club, &path).len(), 5);
    club.by(CAROL).get(&format!("{path}/history")).expect(200);
    club.by(DAVE).get(&format!("{path}/history")).refused(403, "forbidden");
}

#[rstest]
fn rooms_groups_polls_and_privileges_have_rows(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let path = format!("/api/rooms/{}", verified_room(&club, BOB, "S516", (1, 3)));
    assert_eq!(newest(&club, &path), json!([id(ALICE), "session", "verified", {"verified": [false, true]}]));
    club.by(ALICE).post(&format!("{path}/verified"), json!({})).expect(204);
    club.by(ALICE).delete(&format!("{path}/verified")).expect(204);
    assert_eq!(newest(&club, &path)[2], "unverified");
    assert_eq!(of(&club, &path).len(), 3);
    let created = &of(&club, &path)[2];
    let fields: Vec<_> = created["changes"].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["admins", "place", "timeEnd", "timeStart", "verified"]);

    let path = format!("/api/groups/{}", group(&club, BOB, "graphics", &[CAROL]));
    let body = json!({"name": "art", "description": "", "open": true, "members": [id(DAVE)], "admins": [id(BOB)]});
    club.by(BOB).put(&path, body).expect(200);
    let expected = json!({
        "name": ["graphics", "art"], "open": [false, true], "members": {"added": [id(DAVE)], "removed": [id(CAROL)]},
    });
    assert_eq!(newest(&club, &path), json!([id(BOB), "session", "changed", expected]));
    club.by(CAROL).put(&format!("{path}/members/me"), json!({})).expect(204);
    club.by(CAROL).put(&format!("{path}/members/me"), json!({})).expect(204);
    assert_eq!(newest(&club, &path)[3], json!({"members": {"added": [id(CAROL)], "removed": []}}));
    assert_eq!(of(&club, &path).len(), 3);

    let (path, slots) = poll(&club, BOB, json!({"tags": [{"name": "rust"}]}));
    let confirmation = json!({"slotId": slots[0], "place": "Discord", "groupId": EVERYONE});
    club.by(BOB).put(&path, json!({"description": "x", "invitees": [id(CAROL)]})).expect(200);
    let expected = json!({"description": ["", "x"], "invitees": {"added": [id(CAROL)], "removed": []}});
    assert_eq!(newest(&club, &path), json!([id(BOB), "session", "changed", expected]));
    let made = club.by(BOB).post(&format!("{path}/confirm"), confirmation).expect(201).json();
    let expected = json!({"eventId": [null, made["eventId"]]});
    assert_eq!(newest(&club, &path), json!([id(BOB), "session", "confirmed", expected]));
    assert_eq!(of(&club, &format!("/api/events/{}", text(&made["eventId"]))).len(), 1);
    club.by(BOB).delete(&path).expect(204);
    club.by(BOB).get(&path).refused(404, "not-found");
    assert_eq!(newest(&club, &path)[2], "deleted");
    assert_eq!(club.by(BOB).get(&format!("{path}/history")).expect(200).json().as_array().unwrap().len(), 4);

    let tags = rows_of(&club, "tag");
    assert_eq!(tags, [json!({"name": [null, "rust"]})]);
    let privilege = format!("/api/users/{}/privileged", id(BOB));
    club.by(ALICE).patch(&privilege, json!({"privileged": true})).expect(204);
    club.by(ALICE).patch(&privilege, json!({"privileged": true})).expect(204);
    assert_eq!(rows_of(&club, "user"), [json!({"privileged": [false, true]})]);
}

/// The changes of all objects of this type, in order.
fn rows_of(club: &Club, object_type: &str) -> Vec<Value> {
    let rows = history::table.filter(history::object_type.eq(object_type)).order(history::id);
    let rows: Vec<String> = rows.select(history::changes).load(&mut club.connect()).unwrap();
    rows.iter().map(|row| serde_json::from_str(row).unwrap()).collect()
}

#[rstest]
fn what_is_deleted_with_something_else_has_its_own_row(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let stock = room(&club, BOB, "S516", (1, 5));
    let inside = event(&club, CAROL, At::Room(&stock), (1, 2));
    club.by(BOB).delete(&format!("/api/rooms/{stock}?force=true")).expect(200);
    let group = group(&club, BOB, "graphics", &[]);
    let body = merge([event_body(&club, CAROL, At::Place("S517"), (1, 2)), json!({"groupId": group})]);
    let made = club.by(CAROL).post("/api/events", body).expect(201).json();
    club.by(BOB).delete(&format!("/api/groups/{group}?force=true")).expect(204);
    let (of_group, own_room) = (text(&made["eventId"]), text(&made["room"]["roomId"]));
    for path in
        [format!("rooms/{stock}"), format!("events/{inside}"), format!("groups/{group}"), format!("events/{of_group}")]
    {
        let path = format!("/api/{path}");
        assert_eq!(newest(&club, &path), json!([id(BOB), "session", "deleted", {"deleted": [false, true]}]), "{path}");
        assert_eq!(of(&club, &path).len(), 2, "{path}");
    }
    assert_eq!(of(&club, &format!("/api/rooms/{own_room}")), Vec::<Value>::new());
    let requests: Vec<Option<String>> = history::table
        .filter(history::action.eq("deleted"))
        .select(history::request_id)
        .distinct()
        .load(&mut club.connect())
        .unwrap();
    assert_eq!(requests.len(), 2, "one request for each of the two deletions: {requests:?}");
}

#[rstest]
fn a_directory_sync_has_a_row_of_numbers_for_each_group(#[values(Sqlite, Postgres)] backend: Backend) {
    let mut club = Club::start(backend);
    let staff = json!({"id": id("staff"), "name": "staff", "members": [BOB, CAROL], "admins": [ALICE]});
    let service = start_with_file(&mut club, &with_members(&[], &[staff]));
    let path = format!("/api/groups/{}", id("staff"));
    let expected = json!({
        "name": [null, "staff"], "description": [null, ""], "members": {"added": 2, "removed": 0},
        "admins": {"added": 1, "removed": 0},
    });
    assert_eq!(newest(&club, &path), json!([null, "directory", "created", expected]));
    club.by(ALICE).at(service).post("/api/users/sync", json!({})).expect(201);
    assert_eq!(of(&club, &path).len(), 1, "nothing has changed");
    club.by(BOB).get(&format!("{path}/history")).refused(403, "forbidden");
}

#[rstest]
fn a_refused_change_leaves_no_row(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let taken = verified_room(&club, BOB, "S516", (1, 5));
    event(&club, BOB, At::Room(&taken), (1, 3));
    let other = event(&club, BOB, At::Place("S517"), (1, 3));
    let rows = rows_of(&club, "event").len();
    let body = event_body(&club, BOB, At::Room(&taken), (2, 4));
    let again = club.by(BOB).header("idempotency-key", "k");
    again.post("/api/events", body.clone()).refused(409, "room-conflict");
    club.by(BOB).put(&format!("/api/events/{other}"), body).refused(409, "room-conflict");
    assert_eq!(rows_of(&club, "event").len(), rows);
    let key = || club.by(BOB).header("idempotency-key", "l");
    let body = event_body(&club, BOB, At::Place("Discord"), (2, 4));
    for _ in 0..2 {
        key().post("/api/events", body.clone()).expect(201);
    }
    assert_eq!(rows_of(&club, "event").len(), rows + 1, "answered again");
}

/// Concurrent changes of one object: each row has what its own change did.
#[rstest]
fn concurrent_changes_are_not_mixed_up(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let path = format!("/api/events/{}", event(&club, BOB, At::Place("S516"), (1, 2)));
    std::thread::scope(|scope| {
        for by in [BOB, CAROL, DAVE, ALICE] {
            let (club, path) = (&club, &path);
            scope.spawn(move || {
                for n in 0..5 {
                    let tag = json!({"name": format!("{by} {n}")});
                    club.by(by).post(&format!("{path}/tags"), tag).expect(204);
                }
            });
        }
    });
    let rows = of(&club, &path);
    assert_eq!(rows.len(), 21);
    for row in &rows[..20] {
        let added = row["changes"]["tags"]["added"].as_array().unwrap();
        let [tag] = added.as_slice() else { panic!("{row}") };
        let by = text(&tag["name"]).split(' ').next().unwrap().to_owned();
        assert_eq!(row["actor"], json!(id(&by)), "{row}");
    }
}

#[rstest]
fn a_deleted_event_comes_back_with_its_room(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let path = format!("/api/events/{}", event(&club, BOB, At::Place("S516"), (1, 2)));
    let before = club.by(BOB).get(&path).expect(200).json();
    club.by(BOB).post(&format!("{path}/restore"), json!({})).refused(409, "not-deleted");
    club.by(BOB).delete(&path).expect(204);
    club.by(DAVE).post(&format!("{path}/restore"), json!({})).refused(403, "forbidden");
    let restored = club.by(BOB).post(&format!("{path}/restore"), json!({})).expect(200).json();
    for field in ["name", "timeStart", "place", "admins", "attendees", "createdAt"] {
        assert_eq!(restored[field], before[field], "{field}");
    }
    assert_eq!(restored["room"]["roomId"], before["room"]["roomId"]);
    club.by(CAROL).get(&format!("/api/rooms/{}", text(&before["room"]["roomId"]))).expect(200);
    assert_eq!(newest(&club, &path), json!([id(BOB), "session", "restored", {"deleted": [true, false]}]));

    club.by(BOB).delete(&path).expect(204);
    let verified = verified_room(&club, CAROL, "S516", (0, 5));
    let other = event(&club, CAROL, At::Room(&verified), (1, 3));
    let refused = club.by(BOB).post(&format!("{path}/restore"), json!({}));
    assert_eq!(refused.json()["conflicts"][0]["eventId"], json!(other));
    refused.refused(409, "room-conflict");
    club.by(CAROL).delete(&format!("/api/events/{other}")).expect(204);
    club.clock.advance(chrono::TimeDelta::days(30));
    club.by(BOB).post(&format!("{path}/restore"), json!({})).refused(404, "not-found");
}

#[rstest]
fn a_room_comes_back_with_an_event_of_somebody_who_may_restore_it(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let stock = verified_room(&club, BOB, "S516", (1, 5));
    let mine = event(&club, CAROL, At::Room(&stock), (1, 2));
    club.by(BOB).delete(&format!("/api/rooms/{stock}?force=true")).expect(200);
    club.by(CAROL).post(&format!("/api/events/{mine}/restore"), json!({})).refused(409, "room-deleted");
    club.by(ALICE).post(&format!("/api/events/{mine}/restore"), json!({})).expect(200);
    assert_eq!(newest(&club, &format!("/api/rooms/{stock}"))[2], "restored");
    club.by(BOB).delete(&format!("/api/rooms/{stock}?force=true")).expect(200);
    let overlapping = verified_room(&club, DAVE, "S516", (2, 3));
    club.by(BOB).post(&format!("/api/rooms/{stock}/restore"), json!({})).refused(409, "room-overlap");
    club.by(DAVE).delete(&format!("/api/rooms/{overlapping}")).expect(200);
    club.by(BOB).post(&format!("/api/rooms/{stock}/restore"), json!({})).expect(200);
    club.by(CAROL).get(&format!("/api/events/{mine}")).refused(404, "not-found");
    club.by(CAROL).post(&format!("/api/events/{mine}/restore"), json!({})).expect(200);
}

#[rstest]
fn an_event_whose_group_is_deleted_comes_back_in_another(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (old, new) = (group(&club, BOB, "old", &[CAROL]), group(&club, BOB, "new", &[DAVE]));
    let body = merge([event_body(&club, CAROL, At::Place("S517"), (1, 2)), json!({"groupId": old})]);
    let mine = text(&club.by(CAROL).post("/api/events", body).expect(201).json()["eventId"]);
    let path = format!("/api/events/{mine}");
    club.by(BOB).delete(&format!("/api/groups/{old}?force=true")).expect(204);
    club.by(CAROL).post(&format!("{path}/restore"), json!({})).refused(409, "group-deleted");
    let refused = club.by(CAROL).post(&format!("{path}/restore?groupId={}", id("nothing")), json!({}));
    assert_eq!(refused.json()["violations"][0]["code"], "unknown-group");
    refused.expect(400);
    let restored = club.by(CAROL).post(&format!("{path}/restore?groupId={new}"), json!({})).expect(200).json();
    assert_eq!(restored["group"]["groupId"], json!(new));
    assert_eq!(crate::builders::each(&restored["attendees"], "userId"), [id(DAVE).to_string()]);
    assert_eq!(newest(&club, &path)[3], json!({"groupId": [old, new]}));
    // The group comes back first.
    club.by(BOB).delete(&format!("/api/groups/{new}?force=true")).expect(204);
    club.by(CAROL).post(&format!("{path}/restore"), json!({})).refused(409, "group-deleted");
    club.by(BOB).post(&format!("/api/groups/{new}/restore"), json!({})).expect(200);
    club.by(CAROL).post(&format!("{path}/restore"), json!({})).expect(200);
}

#[rstest]
fn groups_and_polls_come_back(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let path = format!("/api/groups/{}", group(&club, BOB, "graphics", &[CAROL]));
    let before = club.by(BOB).get(&path).expect(200).json();
    club.by(BOB).delete(&path).expect(204);
    club.by(CAROL).post(&format!("{path}/restore"), json!({})).refused(403, "forbidden");
    let restored = club.by(BOB).post(&format!("{path}/restore"), json!({})).expect(200).json();
    assert_eq!((&restored["members"], &restored["admins"]), (&before["members"], &before["admins"]));
    let (path, slots) = poll(&club, BOB, json!({"open": true}));
    crate::builders::answer_poll(&club, CAROL, &path, &[&slots[0]]).expect(201);
    club.by(BOB).delete(&path).expect(204);
    crate::builders::answer_poll(&club, DAVE, &path, &[&slots[0]]).refused(404, "not-found");
    let listed = club.by(BOB).get("/api/users/me/draft-events?relation=admins").expect(200).json();
    assert_eq!(listed, json!([]));
    let restored = club.by(BOB).post(&format!("{path}/restore"), json!({})).expect(200).json();
    assert_eq!(restored["respondedCount"], 1);
}

#[rstest]
fn who_has_left_the_group_is_not_invited_by_a_restoration(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let group = group(&club, BOB, "graphics", &[BOB, CAROL]);
    let body = merge([event_body(&club, BOB, At::Place("Discord"), (1, 2)), json!({"groupId": group})]);
    let path = format!("/api/events/{}", text(&club.by(BOB).post("/api/events", body).expect(201).json()["eventId"]));
    club.by(BOB).delete(&path).expect(204);
    let people = json!({"name": "graphics", "description": "", "open": false, "members": [id(BOB), id(DAVE)],
        "admins": [id(BOB)]});
    club.by(BOB).put(&format!("/api/groups/{group}"), people).expect(200);
    let restored = club.by(BOB).post(&format!("{path}/restore"), json!({})).expect(200).json();
    let mut invited = crate::builders::each(&restored["attendees"], "userId");
    let mut expected = [BOB, DAVE].map(|name| id(name).to_string());
    invited.sort_unstable();
    expected.sort_unstable();
    assert_eq!(invited, expected);
}

#[rstest]
fn an_event_becomes_what_it_was(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let stock = verified_room(&club, BOB, "S516", (1, 9));
    let body = merge([event_body(&club, BOB, At::Place("Discord"), (1, 2)), json!({"tags": [{"name": "rust"}]})]);
    let made = club.by(BOB).post("/api/events", body.clone()).expect(201).json();
    let path = format!("/api/events/{}", text(&made["eventId"]));
    let states = [
        json!({"place": "Zoom", "name": "Zig", "tags": []}),
        merge([
            event_body(&club, BOB, At::Room(&stock), (2, 3)),
            json!({"open": true, "tags": [{"name": "zig", "locked": true}]}),
        ]),
        json!({"place": "Discord", "admins": [id(BOB), id(CAROL)]}),
    ];
    for state in &states {
        let mut body = if state.get("roomId").is_some() { json!({}) } else { body.clone() };
        for (name, value) in state.as_object().unwrap() {
            body[name] = value.clone();
        }
        club.by(BOB).put(&path, body).expect(200);
    }
    let rows = of(&club, &path);
    let shown = |event: &Value| {
        let tags = crate::builders::each(&event["tags"], "name");
        json!([event["name"], event["place"], event["timeStart"], event["open"], event["admins"], tags])
    };
    let revert = |row: &Value| club.by(BOB).post(&format!("{path}/revert"), json!({"to": row["historyId"]}));
    let first = revert(&rows[3]).expect(200).json();
    assert_eq!(shown(&first), shown(&made));
    let in_stock = revert(&rows[1]).expect(200).json();
    assert_eq!((&in_stock["room"]["roomId"], &in_stock["open"]), (&json!(stock), &json!(true)));
    assert_eq!(newest(&club, &path)[2], "reverted");
    assert_eq!(revert(&rows[2]).expect(200).json()["place"], "Zoom");
    let number = of(&club, &path).len();
    revert(&rows[2]).expect(200);
    assert_eq!(of(&club, &path).len(), number, "it is so already");
    let taken = event(&club, CAROL, At::Room(&stock), (2, 3));
    let refused = revert(&rows[1]);
    assert_eq!(refused.json()["conflicts"][0]["eventId"], json!(taken));
    refused.refused(409, "room-conflict");
    let of_another = of(&club, &format!("/api/events/{taken}")).remove(0);
    assert_eq!(revert(&of_another).expect(400).json()["violations"][0]["code"], "unknown-change");
    club.by(DAVE).post(&format!("{path}/revert"), json!({"to": rows[0]["historyId"]})).refused(403, "forbidden");
    // Before its deletion, but not to it.
    club.by(BOB).delete(&path).expect(204);
    club.by(BOB).post(&format!("{path}/restore"), json!({})).expect(200);
    let rows = of(&club, &path);
    assert_eq!(revert(&rows[1]).expect(400).json()["violations"][0]["code"], "unknown-change");
    revert(&rows[0]).expect(200);
}

#[rstest]
fn an_event_without_history_can_become_what_it_was(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let change: [fn(&Club, &str, Value); 2] = [
        |club, path, body| {
            club.by(BOB).put(path, merge([body, json!({"name": "Zig"})])).expect(200);
        },
        |club, path, _| {
            club.by(BOB).post(&format!("{path}/tags"), json!({"name": "zig"})).expect(204);
        },
    ];
    for (n, change) in change.into_iter().enumerate() {
        let body = event_body(&club, BOB, At::Place(&format!("S{n}")), (1, 2));
        let made = club.by(BOB).post("/api/events", body.clone()).expect(201).json();
        let path = format!("/api/events/{}", text(&made["eventId"]));
        diesel::delete(history::table).execute(&mut club.connect()).unwrap();
        club.by(BOB).put(&path, body.clone()).expect(200);
        assert_eq!(of(&club, &path), Vec::<Value>::new(), "nothing has changed");
        change(&club, &path, body);
        let rows = of(&club, &path);
        assert_eq!(crate::builders::each(&json!(rows), "action"), ["changed", "created"]);
        assert_eq!((&rows[1]["by"], rows[1].get("actor")), (&json!("import"), None));
        assert_eq!(rows[1]["changes"]["name"], json!([null, "Rust evening"]));
        let reverted = club.by(BOB).post(&format!("{path}/revert"), json!({"to": rows[1]["historyId"]})).expect(200);
        let reverted = reverted.json();
        assert_eq!((&reverted["name"], &reverted["tags"]), (&made["name"], &made["tags"]));
        assert_eq!(of(&club, &path).len(), 3);
    }
}

/// Removes what was deleted until then as the background task does. Returns how many were removed, and how many were
/// looked at and stay.
fn remove_deleted_until(conn: &mut AnyConnection, oldest: DbTimestamp) -> (usize, usize) {
    let (mut removed, mut kept) = (0, 0);
    for removal in booking_service::deletion::REMOVALS {
        let mut after = first_place();
        while let Some((last, ids)) = removal.page(conn, oldest, after).unwrap() {
            assert!(last > after);
            kept += (removal.deleted)(conn, last.0, after, 1000).unwrap().len() - ids.len();
            after = last;
            let mut rest = ids.as_slice();
            while !rest.is_empty() {
                let done = removal.remove_some(conn, rest).unwrap();
                (removed, rest) = (removed + done, &rest[done..]);
            }
        }
    }
    (removed, kept)
}

#[rstest]
fn what_has_expired_is_removed(#[values(Sqlite, Postgres)] backend: Backend) {
    use service_kit::history::remove_before;
    let club = Club::start(backend);
    let path = format!("/api/events/{}", event(&club, BOB, At::Place("S516"), (1, 2)));
    let stock = room(&club, BOB, "S517", (1, 5));
    let group = group(&club, BOB, "graphics", &[]);
    let body = merge([event_body(&club, BOB, At::Room(&stock), (1, 2)), json!({"groupId": group})]);
    let past = text(&club.by(BOB).post("/api/events", body).expect(201).json()["eventId"]);
    let (poll, slots) = poll(&club, BOB, json!({}));
    let confirmation = json!({"slotId": slots[0], "place": "Discord", "groupId": EVERYONE});
    let confirmed = text(&club.by(BOB).post(&format!("{poll}/confirm"), confirmation).expect(201).json()["eventId"]);
    club.clock.advance(chrono::TimeDelta::hours(3));
    // Past events keep the deleted room and group.
    club.by(BOB).delete(&format!("/api/rooms/{stock}")).expect(200);
    club.by(BOB).delete(&format!("/api/groups/{group}")).expect(204);
    for path in [&path, &poll, &format!("/api/events/{confirmed}")] {
        club.by(BOB).delete(path).expect(204);
    }
    let conn = &mut club.connect();
    let at = |days: i64| DbTimestamp(club.clock.now().plus(chrono::TimeDelta::days(days)));
    assert_eq!(remove_deleted_until(conn, at(-1)), (0, 0));
    // The poll, two events with their rooms; a room and a group are looked at and stay.
    assert_eq!(remove_deleted_until(conn, at(1)), (5, 2));
    assert_eq!(remove_deleted_until(conn, at(1)), (0, 2));
    let shown = club.by(BOB).get(&format!("/api/events/{past}")).expect(200).json();
    assert_eq!((&shown["room"]["roomId"], &shown["groupName"]), (&json!(stock), &json!("graphics")));
    club.by(BOB).get(&format!("{path}/history")).refused(404, "not-found");
    let rows: i64 = history::table.count().get_result(conn).unwrap();
    assert_eq!(remove_before(conn, at(-1), 100).unwrap(), 0);
    assert_eq!(remove_before(conn, at(1), 2).unwrap(), 2);
    let left: i64 = history::table.count().get_result(conn).unwrap();
    assert_eq!(left, rows - 2);
}

#[rstest]
fn privileged_users_read_all_changes(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let made = event(&club, BOB, At::Place("S516"), (1, 2));
    group(&club, CAROL, "graphics", &[]);
    club.by(BOB).delete(&format!("/api/events/{made}")).expect(204);
    club.by(BOB).get("/api/audit").refused(403, "forbidden");
    let actions = |query: &str| {
        let rows = club.by(ALICE).get(&format!("/api/audit?{query}")).expect(200).json();
        rows.as_array()
            .unwrap()
            .iter()
            .map(|row| format!("{} {}", text(&row["objectType"]), text(&row["action"])))
            .collect::<Vec<_>>()
    };
    assert_eq!(actions(""), ["event deleted", "group created", "event created"]);
    assert_eq!(actions(&format!("actor={}", id(CAROL))), ["group created"]);
    assert_eq!(actions(&format!("object={made}&action=deleted")), ["event deleted"]);
    let now = club.clock.now();
    assert_eq!(actions(&format!("dateBegin={}", now.plus(chrono::TimeDelta::days(1)))), [""; 0]);
    assert_eq!(actions(&format!("dateEnd={now}")).len(), 3);
    club.by(ALICE).get("/api/audit?action=burnt").refused(400, "invalid-parameter");
    club.by(ALICE)
        .get(&format!("/api/audit?dateBegin={now}&dateEnd=2020-01-01T00:00:00Z"))
        .refused(400, "invalid-parameter");
    let lines = || club.by(ALICE).header("accept", "application/x-ndjson");
    let answer = lines().get("/api/audit").expect(200);
    assert_eq!(answer.header("content-type"), Some("application/x-ndjson"));
    let rows: Vec<Value> = answer.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(json!(rows), club.by(ALICE).get("/api/audit").expect(200).json());
    assert!(answer.text().ends_with("}\n"));
    let tag = club.by(ALICE).get("/api/audit").header("etag").unwrap().to_owned();
    lines().header("if-none-match", &tag).get("/api/audit").expect(200);
    let conn = &mut club.connect();
    for n in 0..1100 {
        let row = (history::at.eq(DbTimestamp(now)), history::origin.eq("command"), history::object_type.eq("tag"));
        let row = (
            row,
            history::object_id.eq(id(BOB)),
            history::action.eq("created"),
            history::changes.eq(format!("{{\"n\":[null,{n}]}}")),
        );
        diesel::insert_into(history::table).values(row).execute(conn).unwrap();
    }
    let streamed = lines().get("/api/audit").expect(200).text();
    assert_eq!(streamed.lines().filter(|line| serde_json::from_str::<Value>(line).unwrap().is_object()).count(), 1103);
    assert!(streamed.ends_with("}\n"));
}

/// Secrets, answers and remarks are in no row, neither as JSON nor on a page.
#[rstest]
fn nothing_private_is_in_the_history(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let token = make_token(&club, BOB, "write");
    let feed = text(&club.by(BOB).put("/api/users/me/ical", json!({})).expect(200).json()["secret"]);
    let bot =
        || club.anonymous().header("authorization", &format!("Bearer {token}")).header("user-agent", "canary-agent");
    let body = event_body(&club, BOB, At::Place("S516"), (1, 2));
    let made = text(&bot().post("/api/events", body.clone()).expect(201).json()["eventId"]);
    let changed = merge([body, json!({"name": "Zig"})]);
    bot().header("idempotency-key", "canary-key").put(&format!("/api/events/{made}"), changed).expect(200);
    let absent = json!({"schedule": "absent"});
    club.by(CAROL).put(&format!("/api/events/{made}/attendees/me"), absent).expect(204);
    let (path, slots) = poll(&club, BOB, json!({"open": true}));
    let answer = json!({"slotIds": [slots[0]], "comment": "canary-remark"});
    club.by(CAROL).post(&format!("{path}/availability"), answer).expect(201);
    club.by(BOB).put(&path, json!({"name": "Trip"})).expect(200);
    club.by(BOB).delete(&path).expect(204);
    let page = format!("/polls/{}", path.rsplit('/').next().unwrap());
    let lists = ["/api/audit".to_owned(), format!("/api/events/{made}/history"), format!("{path}/history")];
    let pages = [format!("/events/{made}/history"), format!("{page}/history"), page, "/deleted".to_owned()];
    for address in lists.iter().chain(&pages) {
        let shown = club.by(ALICE).get(address).expect(200).text();
        assert!(shown.contains(&made) || shown.contains("Trip"), "{shown}");
        for private in [token.as_str(), &feed, "canary", "session-of", "absent"] {
            assert!(!shown.contains(private), "{private} in {address}: {shown}");
        }
    }
}

/// Bookings, deletions, restorations and reverts of the same place at the same time. Without the lock on the place in
/// `restore`, two of them overlap.
#[rstest]
fn restorations_and_reverts_never_book_twice(#[values(Sqlite, Postgres)] backend: Backend) {
    let mut club = Club::start(backend);
    let services = start_services(&mut club);
    let stock = verified_room(&club, ALICE, "S516", (0, 40));
    let everybody = [ALICE, BOB, CAROL, DAVE];
    let admins = json!({"admins": everybody.map(id)});
    // Each event has been in the room at the same time, one after another.
    let mut events = Vec::new();
    for n in 0..24 {
        let body = merge([event_body(&club, BOB, At::Room(&stock), (2, 4)), admins.clone()]);
        let made = club.by(BOB).post("/api/events", body).expect(201).json();
        let path = format!("/api/events/{}", text(&made["eventId"]));
        let first = of(&club, &path).remove(0)["historyId"].clone();
        if n % 2 == 0 {
            club.by(BOB).delete(&path).expect(204);
        } else {
            let elsewhere = event_body(&club, BOB, At::Room(&stock), (5 + n, 6 + n));
            club.by(BOB).put(&path, merge([elsewhere, admins.clone()])).expect(200);
        }
        events.push((path, first));
    }
    for _ in 0..8 {
        let barrier = std::sync::Barrier::new(events.len() + 1);
        std::thread::scope(|scope| {
            for (n, (path, first)) in events.iter().enumerate() {
                let (somebody, barrier) = (club.by(everybody[n % 4]).at(n / 4 % services), &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    let restored = retry_while_busy(|| somebody.post(&format!("{path}/restore"), json!({})).status);
                    assert!(matches!(restored, 200 | 409), "{restored}");
                    let revert = || somebody.post(&format!("{path}/revert"), json!({"to": first})).status;
                    let reverted = retry_while_busy(revert);
                    assert!(matches!(reverted, 200 | 404 | 409), "{reverted}");
                });
            }
            barrier.wait();
            let booked = crate::builders::declare(&club, CAROL, At::Place("s516"), (3, 5));
            // On a slow machine the place is not free in time for all.
            assert!(matches!(booked.status, 201 | 409 | 503), "{}", booked.text());
            if booked.status == 201 {
                club.by(CAROL).delete(&format!("/api/events/{}", text(&booked.json()["eventId"]))).expect(204);
            }
        });
        assert_eq!(double_bookings(&club), []);
        for (path, _) in &events {
            let status = retry_while_busy(|| club.by(BOB).delete(path).status);
            assert!(matches!(status, 204 | 404), "{status}");
        }
    }
}

#[rstest]
fn queries_use_indexes(#[values(Sqlite, Postgres)] backend: Backend) {
    use service_kit::{
        database::PageBounds,
        history::{Action, Selection, load, load_selected, since},
    };
    let club = Club::start(backend);
    let event = event(&club, BOB, At::Place("S516"), (1, 2));
    let event = service_kit::database::types::DbUuid(event.parse().unwrap());
    plans::check(&club, |conn| {
        load(conn, event, &PageBounds { after: Some(i64::MAX), rows: 10 }).unwrap();
        since(conn, event, 1).unwrap();
    });
    let now = DbTimestamp(club.clock.now());
    let from = DbTimestamp(now.plus(-chrono::TimeDelta::days(1)));
    for selection in [
        Selection::default(),
        Selection { action: Some(Action::Created), ..Selection::default() },
        Selection { actor: Some(id(BOB)), ..Selection::default() },
        Selection { from: Some(from), to: Some(now), ..Selection::default() },
    ] {
        for page in plans::pages((now, 1)) {
            plans::check_page(&club, |conn| {
                load_selected(conn, &selection, &page).unwrap();
            });
        }
    }
}

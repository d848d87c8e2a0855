//! Groups.

use crate::harness::Backend::{self, Postgres, Sqlite};
use booking_service::{
    groups::queries::{self, EVERYONE},
    schema::{events, group_members, groups, places, rooms},
};
use chrono::TimeDelta;
use diesel::{connection::SimpleConnection, prelude::*};
use rstest::rstest;
use serde_json::{Value, json};
use service_kit::database::{
    AnyConnection,
    types::{DbTimestamp, DbUuid},
};

use crate::{
    harness::{ALICE, BOB, CAROL, Club, DAVE, SUSAN, hours_from_now, id},
    plans,
};

#[rstest]
fn a_group_is_made_and_shown(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let body = json!({"name": "art", "description": "We draw.\n", "open": true, "admins": [id(DAVE)],
            "members": [id(CAROL), id(BOB), id(CAROL)], "extra": {"is": "ignored"}});
    let made = club.by(BOB).post("/api/groups", body).expect(201).json();
    assert_eq!((&made["name"], &made["description"]), (&json!("art"), &json!("We draw.\n")));
    assert_eq!((&made["open"], &made["isTraQGroup"]), (&json!(true), &json!(false)));
    assert_eq!((&made["members"], &made["admins"]), (&ids(&[BOB, CAROL]), &ids(&[DAVE])));
    assert_eq!(made["createdBy"], json!(id(BOB)));
    assert_eq!(made["createdAt"], made["updatedAt"]);
    assert!(made["createdAt"].as_str().unwrap().ends_with("+09:00"), "{made}");
    assert_eq!(club.by(DAVE).get(&path(&made)).expect(200).json(), made);
    let upper = path(&made).to_uppercase().replace("/API/GROUPS", "/api/groups");
    assert_eq!(club.by(DAVE).get(&upper).expect(200).json(), made);
    let plain = json!({"name": "art", "description": "", "open": false, "admins": [id(BOB)]});
    assert_eq!(club.by(BOB).post("/api/groups", plain).expect(201).json()["members"], json!([]));
}

#[rstest]
fn the_list_has_groups_made_here_then_everyone_then_directory_groups(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for name in ["b", "a", "Z"] {
        make(&club, name, &json!({}));
    }
    let gone = make(&club, "gone", &json!({}));
    club.by(BOB).delete(&path(&gone)).expect(204);
    directory_group(&club, "d");
    directory_group(&club, "c");
    let list = club.by(BOB).get("/api/groups").expect(200).json();
    let names: Vec<_> = list.as_array().unwrap().iter().map(|group| group["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["Z", "a", "b", "Everyone", "c", "d"]);
    for group in list.as_array().unwrap() {
        assert_eq!(club.by(BOB).get(&path(group)).expect(200).json(), *group);
    }
}

#[rstest]
fn the_everyone_group_has_all_active_users(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let group = club.by(BOB).get(&format!("/api/groups/{EVERYONE}")).expect(200).json();
    assert_eq!(group["groupId"], "11111111-1111-1111-1111-111111111111");
    assert_eq!((&group["name"], &group["description"]), (&json!("Everyone"), &json!("")));
    assert_eq!((&group["open"], &group["isTraQGroup"]), (&json!(false), &json!(true)));
    assert_eq!((&group["members"], &group["admins"]), (&ids(&[ALICE, BOB, CAROL, DAVE]), &json!([])));
    assert_eq!(group["createdBy"], "00000000-0000-0000-0000-000000000000");

    let mut club = club;
    club.config.everyone_group = Some("Everybody".into());
    club.clock.advance(TimeDelta::hours(1));
    club.start_another();
    let renamed = club.by(BOB).get(&format!("/api/groups/{EVERYONE}")).expect(200).json();
    assert_eq!(renamed["name"], "Everybody");
    assert_eq!(renamed["createdAt"], group["createdAt"]);
    assert_ne!(renamed["updatedAt"], group["updatedAt"]);
}

#[rstest]
fn invalid_groups_are_refused(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let post = |body: Value| club.by(BOB).post("/api/groups", body).expect(400);
    assert_eq!(post(json!({})).pointers(), ["/admins", "/description", "/name", "/open"]);
    let long = "x".repeat(10_001);
    let wrong = json!({"name": " ", "description": long, "open": "yes", "members": ["x"], "admins": []});
    assert_eq!(post(wrong).pointers(), ["/admins", "/description", "/members/0", "/name", "/open"]);
    let long = |length| json!({"name": "五".repeat(length), "description": "", "open": true, "admins": [id(BOB)]});
    assert_eq!(post(long(33)).pointers(), ["/name"]);
    club.by(BOB).post("/api/groups", long(32)).expect(201);

    let nobody = DbUuid::new();
    let strangers = json!({"name": "x", "description": "", "open": true, "admins": [nobody],
            "members": [id(BOB), id(BOB), nobody, id(SUSAN), EVERYONE]});
    assert_eq!(post(strangers.clone()).pointers(), ["/admins/0", "/members/2", "/members/4"]);
    let group = make(&club, "x", &json!({}));
    let refused = club.by(BOB).put(&path(&group), strangers).expect(400);
    assert_eq!(refused.pointers(), ["/admins/0", "/members/2", "/members/4"]);
    assert_eq!(club.by(BOB).get(&path(&group)).expect(200).json(), group);
}

#[rstest]
fn groups_need_sign_in_and_exist(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let body = json!({"name": "x", "description": "", "open": true, "admins": [id(BOB)]});
    let known = path(&make(&club, "x", &json!({})));
    let me = format!("{known}/members/me");
    for (method, path) in [
        ("GET", "/api/groups"),
        ("POST", "/api/groups"),
        ("GET", &known),
        ("PUT", &known),
        ("DELETE", &known),
        ("PUT", &me),
        ("DELETE", &me),
        ("GET", "/api/users/me/groups"),
    ] {
        let body = Some(body.clone()).filter(|_| matches!(method, "POST" | "PUT") && path != me);
        club.anonymous().send(method, path, body.clone()).refused(401, "not-signed-in");
        club.by(SUSAN).send(method, path, body.clone()).refused(403, "account-inactive");
        if !path.contains(&known) {
            continue;
        }
        let unknown = path.replace(&known, &format!("/api/groups/{}", DbUuid::new()));
        club.by(ALICE).send(method, &unknown, body.clone()).refused(404, "not-found");
        for bad in ["x", "00000000-0000-0000-0000-000000000000"] {
            let bad = path.replace(&known, &format!("/api/groups/{bad}"));
            assert_eq!(club.by(ALICE).send(method, &bad, body.clone()).expect(400).pointers(), ["groupID"]);
        }
    }
}

#[rstest]
fn admins_and_privileged_users_change_a_group(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let group = make(&club, "art", &json!({"members": [id(CAROL), id(DAVE)], "open": true}));
    let path = path(&group);
    let body = json!({"name": "band", "description": "We play.", "open": false, "admins": [id(CAROL)]});
    club.by(CAROL).put(&path, body.clone()).refused(403, "forbidden");
    club.clock.advance(TimeDelta::hours(1));
    let changed = club.by(BOB).put(&path, body.clone()).expect(200).json();
    assert_eq!((&changed["name"], &changed["description"]), (&json!("band"), &json!("We play.")));
    assert_eq!((&changed["open"], &changed["admins"]), (&json!(false), &ids(&[CAROL])));
    assert_eq!(changed["members"], ids(&[CAROL, DAVE]), "left out is unchanged");
    assert_eq!((&changed["createdBy"], &changed["createdAt"]), (&group["createdBy"], &group["createdAt"]));
    assert_ne!(changed["updatedAt"], group["updatedAt"]);
    assert_eq!(club.by(BOB).get(&path).expect(200).json(), changed);
    // Bob is no longer an admin.
    club.by(BOB).put(&path, body.clone()).refused(403, "forbidden");
    let mut body = body;
    body["members"] = json!([]);
    assert_eq!(club.by(ALICE).put(&path, body.clone()).expect(200).json()["members"], json!([]));
    body["members"] = json!([id(BOB), id(CAROL)]);
    assert_eq!(club.by(CAROL).put(&path, body).expect(200).json()["members"], ids(&[BOB, CAROL]));
}

#[rstest]
fn anybody_joins_and_leaves_an_open_group(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let group = make(&club, "art", &json!({"open": true}));
    let (path, me) = (path(&group), format!("{}/members/me", path(&group)));
    let members = || club.by(BOB).get(&path).expect(200).json()["members"].clone();
    for _ in 0..2 {
        club.by(CAROL).send("PUT", &me, None).expect(204);
        assert_eq!(members(), ids(&[CAROL]));
    }
    for _ in 0..2 {
        club.by(CAROL).delete(&me).expect(204);
        assert_eq!(members(), ids(&[]));
    }
    let closed = make(&club, "closed", &json!({"members": [id(CAROL)]}));
    let me = format!("/api/groups/{}/members/me", closed["groupId"].as_str().unwrap());
    for who in [ALICE, BOB, CAROL] {
        club.by(who).send("PUT", &me, None).refused(403, "forbidden");
        club.by(who).delete(&me).refused(403, "forbidden");
    }
}

#[rstest]
fn groups_not_made_here_are_read_only(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let body = json!({"name": "x", "description": "", "open": true, "admins": [id(ALICE)]});
    for group in [directory_group(&club, "art"), EVERYONE] {
        let path = format!("/api/groups/{group}");
        let before = club.by(ALICE).get(&path).expect(200).json();
        assert_eq!(before["isTraQGroup"], true);
        club.by(ALICE).put(&path, body.clone()).refused(403, "forbidden");
        club.by(ALICE).delete(&path).refused(403, "forbidden");
        club.by(ALICE).delete(&format!("{path}?force=true")).refused(403, "forbidden");
        club.by(ALICE).send("PUT", &format!("{path}/members/me"), None).refused(403, "forbidden");
        club.by(ALICE).delete(&format!("{path}/members/me")).refused(403, "forbidden");
        assert_eq!(club.by(ALICE).get(&path).expect(200).json(), before);
    }
}

#[rstest]
fn only_its_events_show_a_deleted_group(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let group = make(&club, "art", &json!({"open": true, "members": [id(CAROL)]}));
    let (path, uid) = (path(&group), uid(&group));
    event(&club, uid, -3, None);
    club.by(CAROL).delete(&path).refused(403, "forbidden");
    assert_eq!(club.by(BOB).delete(&format!("{path}?force=maybe")).expect(400).pointers(), ["force"]);
    club.by(BOB).delete(&path).expect(204);
    let body = json!({"name": "x", "description": "", "open": true, "admins": [id(BOB)]});
    club.by(BOB).get(&path).refused(404, "not-found");
    club.by(BOB).put(&path, body).refused(404, "not-found");
    club.by(BOB).delete(&path).refused(404, "not-found");
    club.by(BOB).send("PUT", &format!("{path}/members/me"), None).refused(404, "not-found");
    club.by(BOB).delete(&format!("{path}/members/me")).refused(404, "not-found");
    assert!(!club.by(BOB).get("/api/groups").expect(200).text().contains("art"));
    assert_eq!(of(&club, CAROL, "?relation=belongs-or-admins"), [EVERYONE]);
    let conn = &mut club.connect();
    assert_eq!(queries::member_ids(conn, uid).unwrap(), [id(CAROL)]);
    assert!(!queries::lock_against_deletion(conn, uid).unwrap());
    club.by(ALICE).delete(&self::path(&make(&club, "another", &json!({})))).expect(204);
}

#[rstest]
fn a_group_with_events_to_come_is_deleted_only_with_force(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let group = make(&club, "art", &json!({}));
    let other = make(&club, "band", &json!({}));
    let past = event(&club, uid(&group), -3, None);
    let now = event(&club, uid(&group), 0, None);
    let soon = event(&club, uid(&group), 24, None);
    // An event of another group uses the room that was made for this event.
    let shared = event(&club, uid(&group), 48, None);
    let guest = event(&club, uid(&other), 48, Some(shared.room));
    // An event that uses a room of another event.
    let visitor = event(&club, uid(&group), 72, Some(past.room));

    let problem = club.by(BOB).delete(&path(&group)).refused(409, "events-to-come");
    assert_eq!(problem["events"], json!([now.id, soon.id, shared.id, visitor.id]));
    club.by(BOB).delete(&format!("{}?force=false", path(&group))).refused(409, "events-to-come");
    club.by(CAROL).delete(&format!("{}?force=true", path(&group))).refused(403, "forbidden");
    assert!([&now, &soon, &shared].iter().all(|event| !event.is_deleted(&club) && !event.is_room_deleted(&club)));

    club.by(BOB).delete(&format!("{}?force=true", path(&group))).expect(204);
    club.by(BOB).get(&path(&group)).refused(404, "not-found");
    let state = |event: &Event| (event.is_deleted(&club), event.is_room_deleted(&club));
    assert_eq!(state(&past), (false, false));
    assert_eq!(state(&now), (true, true));
    assert_eq!(state(&soon), (true, true));
    assert_eq!(state(&shared), (true, false));
    assert_eq!(state(&guest), (false, false));
    assert_eq!(state(&visitor), (true, false));
}

#[rstest]
fn a_users_groups_are_found_by_relation(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let a = uid(&make(&club, "a", &json!({"members": [id(CAROL)], "admins": [id(BOB)]})));
    let b = uid(&make(&club, "b", &json!({"members": [id(BOB)], "admins": [id(CAROL)]})));
    let c = uid(&make(&club, "c", &json!({"members": [id(CAROL), id(SUSAN)], "admins": [id(CAROL)]})));
    let d = directory_group(&club, "0");
    diesel::insert_into(group_members::table)
        .values((group_members::group_id.eq(d), group_members::user_id.eq(id(CAROL))))
        .execute(&mut club.connect())
        .unwrap();
    for (query, expected) in [
        ("", vec![a, c, EVERYONE, d]),
        ("?relation=belongs", vec![a, c, EVERYONE, d]),
        ("?relation=admins", vec![b, c]),
        ("?relation=belongs-or-admins", vec![a, b, c, EVERYONE, d]),
    ] {
        assert_eq!(of(&club, CAROL, query), expected, "{query}");
        let mine = club.by(CAROL).get(&format!("/api/users/me/groups{query}")).expect(200).json();
        assert_eq!(mine, json!(expected), "{query}");
    }
    assert_eq!(of(&club, DAVE, ""), [EVERYONE]);
    // An empty parameter counts as absent.
    assert_eq!(of(&club, DAVE, "?relation="), [EVERYONE]);
    assert_eq!(of(&club, SUSAN, ""), [c], "the everyone group is for active users");
    for bad in ["/api/users/me/groups?relation=attendees", &format!("/api/users/{}/groups?relation=x", id(BOB))] {
        assert_eq!(club.by(BOB).get(bad).expect(400).pointers(), ["relation"]);
    }
    club.by(BOB).get(&format!("/api/users/{}/groups", DbUuid::new())).refused(404, "not-found");
    assert_eq!(club.by(BOB).get("/api/users/x/groups").expect(400).pointers(), ["userID"]);
}

#[rstest]
fn other_slices_read_members(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let conn = &mut club.connect();
    let group = uid(&make(&club, "a", &json!({"members": [id(CAROL), id(SUSAN)]})));
    let members = |conn: &mut _, group| queries::member_ids(conn, group).unwrap();
    assert_eq!(json!(members(conn, group)), ids(&[CAROL, SUSAN]));
    assert_eq!(json!(members(conn, EVERYONE)), ids(&[ALICE, BOB, CAROL, DAVE]));
    assert_eq!(members(conn, DbUuid::new()), []);
    for (group, user, expected) in [
        (group, CAROL, true),
        (group, BOB, false),
        (EVERYONE, BOB, true),
        (EVERYONE, SUSAN, false),
        (DbUuid::new(), BOB, false),
    ] {
        assert_eq!(queries::is_member(conn, group, id(user)).unwrap(), expected, "{user}");
    }
    assert!(queries::lock_against_deletion(conn, group).unwrap());
    assert!(!queries::lock_against_deletion(conn, DbUuid::new()).unwrap());
}

#[rstest]
fn concurrent_changes_leave_a_group_consistent(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let group = make(&club, "art", &json!({"open": true}));
    let (path, me) = (path(&group), format!("{}/members/me", path(&group)));
    let body = json!({"name": "art", "description": "", "open": true, "admins": [id(BOB)],
            "members": [id(CAROL), id(DAVE)]});
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..10).for_each(|_| drop(club.by(CAROL).send("PUT", &me, None).expect(204))));
            scope.spawn(|| (0..10).for_each(|_| drop(club.by(DAVE).delete(&me).expect(204))));
            scope.spawn(|| (0..10).for_each(|_| drop(club.by(BOB).put(&path, body.clone()).expect(200))));
        }
    });
    assert_eq!(club.by(BOB).put(&path, body).expect(200).json()["members"], ids(&[CAROL, DAVE]));
}

#[rstest]
fn no_event_is_made_for_a_group_that_is_being_deleted(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let start = std::sync::Barrier::new(2);
    for _ in 0..10 {
        let group = make(&club, "art", &json!({}));
        let make_event = || -> Option<Event> {
            let conn = &mut club.connect();
            let begin = if club.is_postgres() { "BEGIN" } else { "BEGIN IMMEDIATE" };
            start.wait();
            conn.batch_execute(begin).unwrap();
            let made = queries::lock_against_deletion(conn, uid(&group)).unwrap();
            let made = made.then(|| event_by(conn, &club, uid(&group), 24, None));
            conn.batch_execute("COMMIT").unwrap();
            made
        };
        let (made, status) = std::thread::scope(|scope| {
            let made = scope.spawn(make_event);
            start.wait();
            let status = club.by(BOB).delete(&path(&group)).status;
            (made.join().unwrap(), status)
        });
        assert_eq!(status, if made.is_some() { 409 } else { 204 });
    }
}

#[rstest]
fn the_list_takes_as_many_statements_for_many_groups_as_for_one(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let statements = |query: &str| {
        let read = || {
            let metrics = club.anonymous().get("/metrics").expect(200).text();
            metrics.lines().find_map(|line| line.strip_prefix("db_statements_total ")?.parse::<u32>().ok()).unwrap()
        };
        let before = read();
        club.by(BOB).get(&format!("/api/groups{query}")).expect(200);
        read() - before
    };
    // The first request with a credential also looks up whose it is.
    statements("");
    let few = statements("");
    for n in 0..20 {
        make(&club, &format!("group {n}"), &json!({"members": [id(ALICE), id(BOB)]}));
    }
    assert_eq!(statements(""), few);
    // A page without the everyone group does not read its members.
    assert_eq!(statements("?limit=10"), few - 1);
}

#[rstest]
fn pages_are_not_sorted_out_of_whole_lists(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for page in plans::pages((0, "graphics".to_owned(), id(BOB))) {
        plans::check_page(&club, |conn| {
            queries::list(conn, &page).unwrap();
        });
    }
}

/// Creates a group as Bob, who is its admin unless `more` replaces this.
fn make(club: &Club, name: &str, more: &Value) -> Value {
    let mut body = json!({"name": name, "description": "", "open": false, "admins": [id(BOB)]});
    for (member, value) in more.as_object().unwrap() {
        body[member] = value.clone();
    }
    club.by(BOB).post("/api/groups", body).expect(201).json()
}

fn path(group: &Value) -> String {
    format!("/api/groups/{}", group["groupId"].as_str().unwrap())
}

fn uid(group: &Value) -> DbUuid {
    DbUuid(group["groupId"].as_str().unwrap().parse().unwrap())
}

/// The ids of members, in the order of ids.
fn ids(names: &[&str]) -> Value {
    let mut ids: Vec<_> = names.iter().map(|name| id(name)).collect();
    ids.sort();
    json!(ids)
}

fn of(club: &Club, user: &str, query: &str) -> Vec<DbUuid> {
    let found = club.by(BOB).get(&format!("/api/users/{}/groups{query}", id(user))).expect(200).json();
    found.as_array().unwrap().iter().map(|id| DbUuid(id.as_str().unwrap().parse().unwrap())).collect()
}

/// A directory group.
fn directory_group(club: &Club, name: &str) -> DbUuid {
    let (id, now) = (DbUuid::new(), DbTimestamp(club.clock.now()));
    diesel::insert_into(groups::table)
        .values((
            groups::id.eq(id),
            groups::kind.eq(2_i16),
            groups::name.eq(name),
            groups::description.eq(""),
            groups::open.eq(false),
            groups::created_at.eq(now),
            groups::updated_at.eq(now),
        ))
        .execute(&mut club.connect())
        .unwrap();
    id
}

/// An event in the database.
struct Event {
    id: DbUuid,
    room: DbUuid,
    owns_room: bool,
}

/// Inserts an event of two hours that starts in `hours` hours, in this room or in a new one.
fn event(club: &Club, group: DbUuid, hours: i64, room: Option<DbUuid>) -> Event {
    event_by(&mut club.connect(), club, group, hours, room)
}

fn event_by(conn: &mut AnyConnection, club: &Club, group: DbUuid, hours: i64, room: Option<DbUuid>) -> Event {
    let (starts, ends) = (DbTimestamp(hours_from_now(club, hours)), DbTimestamp(hours_from_now(club, hours + 2)));
    let now = DbTimestamp(club.clock.now());
    let event = Event { id: DbUuid::new(), room: room.unwrap_or_default(), owns_room: room.is_none() };
    let place = format!("place {}", event.room);
    if event.owns_room {
        diesel::insert_into(places::table).values(places::key.eq(&place)).execute(conn).unwrap();
        diesel::insert_into(rooms::table)
            .values((
                rooms::id.eq(event.room),
                rooms::place.eq(&place),
                rooms::place_key.eq(&place),
                rooms::starts_at.eq(starts),
                rooms::ends_at.eq(ends),
                rooms::is_long.eq(false),
                rooms::reach_from.eq(DbTimestamp(starts.plus(-TimeDelta::hours(24)))),
                rooms::verified.eq(false),
                rooms::made_for_event.eq(true),
                rooms::created_by.eq(id(BOB)),
                rooms::created_at.eq(now),
                rooms::updated_at.eq(now),
            ))
            .execute(conn)
            .unwrap();
    }
    diesel::insert_into(events::table)
        .values((
            events::id.eq(event.id),
            events::name.eq("meeting"),
            events::description.eq(""),
            events::shared.eq(true),
            events::starts_at.eq(starts),
            events::ends_at.eq(ends),
            events::is_long.eq(false),
            events::place.eq(&place),
            events::place_key.eq(&place),
            events::room_id.eq(event.room),
            events::owns_room.eq(event.owns_room),
            events::group_id.eq(group),
            events::open.eq(false),
            events::sequence.eq(0),
            events::created_by.eq(id(BOB)),
            events::created_at.eq(now),
            events::updated_at.eq(now),
        ))
        .execute(conn)
        .unwrap();
    event
}

impl Event {
    fn is_deleted(&self, club: &Club) -> bool {
        let columns = (events::deleted_at, events::created_at, events::updated_at, events::sequence);
        let (deleted, created, updated, sequence): (Option<DbTimestamp>, DbTimestamp, DbTimestamp, i32) =
            events::table.find(self.id).select(columns).first(&mut club.connect()).unwrap();
        assert_eq!((updated, sequence), deleted.map_or((created, 0), |deleted| (deleted, 1)));
        deleted.is_some()
    }

    fn is_room_deleted(&self, club: &Club) -> bool {
        let deleted: Option<DbTimestamp> =
            rooms::table.find(self.room).select(rooms::deleted_at).first(&mut club.connect()).unwrap();
        deleted.is_some()
    }
}

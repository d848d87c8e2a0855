//! The copy of the club directory.

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;
use std::{collections::BTreeMap, iter, path::PathBuf, process::Command};

use chrono::{TimeDelta, TimeZone as _, Utc};
use club_directory::{DirectoryGroup, DirectoryUser, Snapshot, UserState};
use common::{
    semester::{Semester, YearWithSemester},
    time::Timestamp,
};
use diesel::prelude::*;
use portfolio_service::{
    schema::{group_memberships, groups, users},
    span::{Columns, Half},
    sync,
};
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use serde_json::{Value, json};
use service_kit::database::types::{DbTimestamp, DbUuid};
use uuid::Uuid;

use crate::{
    booking::until,
    builders::project,
    harness::{ALICE, BOB, CAROL, Club, DAVE, DORA, SUSAN, id, real_name},
};

/// Writes the directory's file.
pub fn write(club: &Club, directory: &Value) -> PathBuf {
    let file = club.folder().join("club.json");
    std::fs::write(&file, directory.to_string()).unwrap();
    file
}

/// Starts a replica that has the directory.
pub fn start(club: &mut Club, directory: &Value) -> usize {
    let file = write(club, directory);
    club.config.directory.directory_file = Some(file);
    club.start_another()
}

/// The six members as they are, and more.
pub fn members(more: &[Value]) -> Vec<Value> {
    let state = |name: &str| match name {
        SUSAN => 2,
        DORA => 0,
        _ => 1,
    };
    let member = |name| json!({"id": id(name), "name": name, "realName": real_name(name), "state": state(name)});
    [ALICE, BOB, CAROL, DAVE, SUSAN, DORA].map(member).into_iter().chain(more.iter().cloned()).collect()
}

fn sync(club: &Club, replica: usize) {
    club.by(ALICE).at(replica).send("POST", "/api/v1/users/sync", None).expect(204);
}

fn names(club: &Club) -> Vec<String> {
    let all = club.anonymous().get("/api/v1/users?includeSuspended=true").expect(200).json();
    all.as_array().unwrap().iter().map(|user| user["name"].as_str().unwrap().to_owned()).collect()
}

/// Name and span of each member of a group, as shown.
fn spans(club: &Club, group: DbUuid) -> Vec<(String, Value)> {
    let shown = club.anonymous().get(&format!("/api/v1/groups/{group}")).expect(200).json();
    let members = shown["members"].as_array().unwrap().iter();
    members.map(|member| (member["name"].as_str().unwrap().to_owned(), member["duration"].clone())).collect()
}

/// Puts the clock to noon of a day in Tokyo.
fn go_to(club: &Club, year: i32, month: u32, day: u32) {
    let noon = Utc.with_ymd_and_hms(year, month, day, 3, 0, 0).unwrap();
    club.clock.advance(noon - club.clock.now().utc());
}

#[rstest]
fn only_admins_sync_and_there_must_be_a_directory(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let sync = |client: crate::harness::Client<'_>| client.send("POST", "/api/v1/users/sync", None);
    sync(club.anonymous()).refused(401, "not-signed-in");
    let refused = sync(club.by(BOB)).refused(403, "forbidden");
    assert_eq!(refused["detail"], "This needs an admin.");
    sync(club.by(SUSAN)).refused(403, "account-inactive");
    let problem = sync(club.by(ALICE));
    assert!(problem.header("retry-after").is_some());
    problem.refused(503, "unavailable");
}

#[rstest]
fn it_starts_with_what_the_directory_says_or_without_it(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut club = club;
    let erin = json!({"name": "erin", "realName": "Erin E."});
    let bad = json!({"name": "no sign-in name"});
    let group = json!({"name": "g", "members": ["erin", "no sign-in name"], "admins": ["no sign-in name"]});
    start(&mut club, &json!({"users": members(&[erin, bad]), "groups": [group]}));
    assert_eq!(names(&club), ["alice", "bob", "carol", "dave", "dora", "erin", "susan"]);
    let group = &club.anonymous().get("/api/v1/groups").json()[0];
    let group = club.anonymous().get(&format!("/api/v1/groups/{}", group["id"].as_str().unwrap())).json();
    assert_eq!((group["members"].as_array().unwrap().len(), &group["admin"]), (1, &json!([])));
    std::fs::write(club.folder().join("club.json"), "{").unwrap();
    let broken = club.start_another();
    assert_eq!(club.by(BOB).at(broken).get("/api/v1/users/me").expect(200).json()["name"], BOB);
}

#[rstest]
fn a_directory_that_cannot_be_read_changes_nothing(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut club = club;
    let replica = start(&mut club, &json!({"users": members(&[])}));
    let before = names(&club);
    let twice = json!({"users": [{"name": "erin"}, {"name": "frank", "id": id(BOB)}, {"name": "gil", "id": id(BOB)}]});
    for text in ["", "{", &twice.to_string()] {
        std::fs::write(club.folder().join("club.json"), text).unwrap();
        let refused = club.by(ALICE).at(replica).send("POST", "/api/v1/users/sync", None);
        let problem = refused.refused(503, "unavailable");
        assert!(!problem.to_string().contains("club.json"), "{problem}");
        assert_eq!(names(&club), before);
    }
}

#[rstest]
fn names_states_and_real_names_follow_and_what_users_say_stays(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut club = club;
    let replica = start(&mut club, &json!({"users": members(&[])}));
    let path = |name: &str| format!("/api/v1/users/{}", id(name));
    club.by(BOB).patch(&path(BOB), json!({"bio": "I draw.", "check": true})).expect(204);
    let account = json!({"type": 5, "url": "https://github.com/bob", "displayName": "b"});
    club.by(BOB).post(&format!("{}/accounts", path(BOB)), account).expect(201);
    write(
        &club,
        &json!({"users": [
            {"id": id(ALICE), "name": ALICE, "realName": "Alice"},
            // These two swap names, and one takes the name that another gives up.
            {"id": id(BOB), "name": CAROL, "realName": "Robert"},
            {"id": id(CAROL), "name": BOB},
            {"id": id(DAVE), "name": "david", "state": "suspended"},
            {"name": DAVE},
            {"id": id(SUSAN), "name": SUSAN, "state": 1},
        ]}),
    );
    sync(&club, replica);
    assert_eq!(names(&club), ["alice", "bob", "carol", "dave", "david", "dora", "susan"]);
    let bob = club.anonymous().get(&path(BOB)).expect(200).json();
    assert_eq!((&bob["name"], &bob["realName"], &bob["bio"]), (&json!(CAROL), &json!("Robert"), &json!("I draw.")));
    assert_eq!(bob["accounts"].as_array().unwrap().len(), 1);
    assert_eq!(club.anonymous().get(&path(CAROL)).json()["realName"], "");
    assert_eq!(club.anonymous().get(&path(DAVE)).json()["state"], 2);
    // Rights go with the id, sign-in with the name.
    assert_eq!(club.by(CAROL).get("/api/v1/users/me").json()["id"], json!(id(BOB)));
    club.by("david").get("/api/v1/users/me").refused(403, "account-inactive");
    club.by(SUSAN).get("/api/v1/users/me").expect(200);
    // Whom the directory does not list stays deactivated.
    assert_eq!(club.anonymous().get(&path(DORA)).json()["state"], 0);
}

#[rstest]
fn whoever_leaves_takes_the_consent_to_publish_the_name_along(#[values(Sqlite, Postgres)] backend: Backend) {
    let mut club = Club::start(backend);
    let all = json!({"users": members(&[])});
    let replica = start(&mut club, &all);
    let bob = format!("/api/v1/users/{}", id(BOB));
    club.by(BOB).patch(&bob, json!({"bio": "I draw.", "check": true})).expect(204);
    let mut fewer = all.clone();
    fewer["users"].as_array_mut().unwrap().remove(1);
    for directory in [&fewer, &all] {
        write(&club, directory);
        sync(&club, replica);
    }
    let shown = club.by(BOB).get("/api/v1/users/me").expect(200).json();
    assert_eq!((&shown["check"], &shown["realName"], &shown["bio"]), (&json!(false), &json!(""), &json!("I draw.")));
}

#[rstest]
fn a_name_goes_to_whom_the_directory_gives_it(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut club = club;
    let mut users = members(&[json!({"name": BOB})]);
    users.retain(|user| user["id"] != json!(id(BOB)));
    start(&mut club, &json!({ "users": users }));
    let moved = club.anonymous().get(&format!("/api/v1/users/{}", id(BOB))).expect(200).json();
    let digits = id(BOB).0.simple().to_string();
    assert_eq!(moved["name"], format!("bob-{}", &digits[24..]));
    assert_ne!(club.by(BOB).get("/api/v1/users/me").expect(200).json()["id"], json!(id(BOB)));
}

#[rstest]
fn what_is_the_same_is_not_written(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut club = club;
    let group = json!({"name": "graphics", "members": [ALICE, BOB], "admins": [ALICE]});
    let directory = json!({"users": members(&[]), "groups": [group]});
    let replica = start(&mut club, &directory);
    let changes = || -> (Vec<DbTimestamp>, Vec<DbTimestamp>, Vec<DbUuid>) {
        let conn = &mut club.connect();
        (
            users::table.select(users::updated_at).order(users::id).load(conn).unwrap(),
            groups::table.select(groups::updated_at).order(groups::id).load(conn).unwrap(),
            group_memberships::table.select(group_memberships::id).order(group_memberships::id).load(conn).unwrap(),
        )
    };
    let before = changes();
    club.clock.advance(TimeDelta::hours(1));
    sync(&club, replica);
    assert_eq!(changes(), before);
}

#[rstest]
fn members_come_and_go_by_semesters(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut club = club;
    let group = DbUuid::new();
    let directory = |members_of: &[&str], admins: &[&str]| {
        json!({"users": members(&[]), "groups": [
            {"id": group, "name": "graphics", "description": "We draw.", "members": members_of, "admins": admins}
        ]})
    };
    // Before the members were added.
    diesel::update(users::table)
        .set(users::updated_at.eq(DbTimestamp(Timestamp::EPOCH)))
        .execute(&mut club.connect())
        .unwrap();
    go_to(&club, 2026, 3, 31);
    let replica = start(&mut club, &directory(&[ALICE, BOB], &[ALICE, SUSAN]));
    let second = json!({"year": 2025, "semester": 1});
    assert_eq!(
        spans(&club, group),
        [(ALICE.to_owned(), json!({"since": second})), (BOB.to_owned(), json!({"since": second}))]
    );
    let shown = club.anonymous().get(&format!("/api/v1/groups/{group}")).json();
    let admins: Vec<_> = shown["admin"].as_array().unwrap().iter().map(|user| user["name"].as_str().unwrap()).collect();
    assert_eq!((admins, &shown["description"], &shown["link"]), (vec![ALICE, SUSAN], &"We draw.".into(), &"".into()));

    // 1 April in Tokyo begins while it is still March in Greenwich.
    club.clock.advance(Utc.with_ymd_and_hms(2026, 3, 31, 15, 0, 0).unwrap() - club.clock.now().utc());
    write(&club, &directory(&[BOB, CAROL], &[]));
    sync(&club, replica);
    let first = json!({"year": 2026, "semester": 0});
    let expected = [
        (ALICE, json!({"since": second, "until": first})),
        (BOB, json!({"since": second})),
        (CAROL, json!({"since": first})),
    ];
    assert_eq!(spans(&club, group), expected.map(|(name, span)| (name.to_owned(), span)));

    // Away and back within a semester is one span.
    for present in [&[BOB, CAROL, ALICE][..], &[CAROL, ALICE], &[BOB, CAROL, ALICE]] {
        write(&club, &directory(present, &[ALICE]));
        sync(&club, replica);
    }
    let expected =
        [(ALICE, json!({"since": second})), (BOB, json!({"since": second})), (CAROL, json!({"since": first}))];
    assert_eq!(spans(&club, group), expected.map(|(name, span)| (name.to_owned(), span)));
    let of_bob = club.anonymous().get(&format!("/api/v1/users/{}/groups", id(BOB))).expect(200).json();
    assert_eq!(of_bob, json!([{"id": group, "name": "graphics", "duration": {"since": second}}]));
    // Spans that an earlier version left apart become one: bob's as long as he is a member, alice's of the past.
    let earlier = |name, since: i32, until: Option<i32>| {
        use portfolio_service::schema::group_memberships as rows;
        let half = |n| Half::from(semester(n));
        let people = (rows::group_id.eq(group), rows::user_id.eq(id(name)));
        (rows::id.eq(DbUuid::new()), people, rows::since.eq(half(since)), rows::until.eq(until.map(half)))
    };
    for row in [earlier(BOB, 49, Some(50)), earlier(BOB, 51, Some(52)), earlier(ALICE, 40, Some(47))] {
        diesel::insert_into(group_memberships::table).values(row).execute(&mut club.connect()).unwrap();
    }
    sync(&club, replica);
    let long_ago = json!({"since": {"year": 2020, "semester": 0}, "until": {"year": 2023, "semester": 1}});
    let expected = [
        (ALICE, long_ago),
        (ALICE, json!({"since": second})),
        (BOB, json!({"since": {"year": 2024, "semester": 1}})),
        (CAROL, json!({"since": first})),
    ];
    assert_eq!(spans(&club, group), expected.map(|(name, span)| (name.to_owned(), span)));

    // The group is gone: everybody has left it, and it is still there for their histories.
    go_to(&club, 2026, 10, 1);
    write(&club, &json!({"users": members(&[])}));
    sync(&club, replica);
    let third = json!({"year": 2026, "semester": 1});
    assert_eq!(spans(&club, group)[1], (ALICE.to_owned(), json!({"since": second, "until": third})));
    assert!(spans(&club, group).iter().all(|(_, span)| span["until"].is_object()));
    let shown = club.anonymous().get(&format!("/api/v1/groups/{group}")).expect(200).json();
    assert_eq!(shown["admin"], json!([]));
    assert_eq!(club.anonymous().get("/api/v1/groups").json(), json!([{"id": group, "name": "graphics"}]));
    // A clock that was put back does not end a span before it began.
    write(&club, &directory(&[DAVE], &[]));
    sync(&club, replica);
    go_to(&club, 2025, 5, 1);
    write(&club, &directory(&[], &[]));
    club.by(ALICE).at(replica).send("POST", "/api/v1/users/sync?force=true", None).expect(204);
    assert_eq!(spans(&club, group)[4], (DAVE.to_owned(), json!({"since": third, "until": third})));
}

#[rstest]
fn a_clock_before_the_newest_change_rewrites_no_semesters(#[values(Sqlite, Postgres)] backend: Backend) {
    let mut club = Club::start(backend);
    let group = DbUuid::new();
    let directory = |people: &[&str]| json!({"users": members(&[]), "groups": [{"id": group, "name": "graphics", "members": people}]});
    start(&mut club, &directory(&[ALICE, BOB]));
    let before = spans(&club, group);
    club.clock.advance(TimeDelta::days(-26 * 365));
    let replica = start(&mut club, &directory(&[ALICE, BOB, CAROL]));
    assert_eq!(spans(&club, group), before, "the start changes nothing");
    let refused = club.by(ALICE).at(replica).send("POST", "/api/v1/users/sync", None).refused(503, "wrong-clock");
    assert!(refused["detail"].as_str().unwrap().contains("the newest change in the database is of"), "{refused}");
    assert_eq!(spans(&club, group), before);
    // Two clocks may differ a little.
    club.clock.advance(TimeDelta::days(26 * 365) - TimeDelta::minutes(1));
    until("the sync is tried again", || spans(&club, group).len() == 3);
    // A change of an object counts too.
    club.clock.advance(TimeDelta::days(1));
    project(&club, BOB, "robot");
    club.clock.advance(TimeDelta::hours(-23));
    let sync = |query: &str| club.by(ALICE).at(replica).send("POST", &format!("/api/v1/users/sync{query}"), None);
    sync("").refused(503, "wrong-clock");
    sync("?force=true").expect(204);
}

#[rstest]
fn groups_are_public_and_ordered_by_name(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut club = club;
    let made = ["b", "c", "a", "B"].map(|name| json!({"name": name, "members": [SUSAN, BOB]}));
    start(&mut club, &json!({"users": members(&[]), "groups": made}));
    let listed = |query: &str| -> Vec<String> {
        let groups = club.anonymous().get(&format!("/api/v1/groups{query}")).expect(200).json();
        groups.as_array().unwrap().iter().map(|group| group["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(listed(""), ["B", "a", "b", "c"]);
    assert_eq!(listed("?limit=1"), ["B"]);
    assert_eq!(club.anonymous().get("/api/v1/groups?limit=0").expect(400).pointers(), ["limit"]);
    club.anonymous().get(&format!("/api/v1/groups/{}", DbUuid::new())).refused(404, "not-found");
    assert_eq!(club.anonymous().get("/api/v1/groups/x").expect(400).pointers(), ["groupId"]);
    let of = |name: &str| club.anonymous().get(&format!("/api/v1/users/{}/groups?limit=2", id(name)));
    assert_eq!(of(SUSAN).expect(200).json().as_array().unwrap().len(), 2, "suspended users stay in histories");
    assert_eq!(of(ALICE).expect(200).json(), json!([]));
    of("nobody").refused(404, "not-found");
    assert_eq!(club.anonymous().get("/api/v1/users/x/groups").expect(400).pointers(), ["userId"]);
}

#[rstest]
fn two_replicas_sync_at_the_same_time(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut club = club;
    let group = json!({"name": "graphics", "members": [ALICE, BOB, CAROL]});
    let first = start(&mut club, &json!({"users": members(&[])}));
    let second = club.start_another();
    write(&club, &json!({"users": members(&[json!({"name": "erin"})]), "groups": [group]}));
    std::thread::scope(|scope| {
        for replica in [first, second, first, second] {
            let club = &club;
            scope.spawn(move || sync(club, replica));
        }
    });
    let conn = &mut club.connect();
    assert_eq!(group_memberships::table.count().get_result::<i64>(conn).unwrap(), 3);
}

#[rstest]
fn the_command_syncs_too(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let file = write(&club, &json!({"users": members(&[json!({"name": "erin"})])}));
    let run = |file: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_portfolio-service"));
        command.env_clear().args(["sync", "--database-url", club.url(), "--directory-file", file]);
        let output = command.args(["--log", "warn", "--admins", "alice,alise"]).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (status, said) = run(file.to_str().unwrap());
    assert!(status == 0 && said.contains("\"alise\", whom --admins names") && !said.contains("alice"), "{said}");
    assert!(names(&club).contains(&"erin".to_owned()));
    assert_eq!(run("/no/such/file.json").0, 1);
}

#[test]
fn check_config_warns_of_users_who_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("club.json");
    std::fs::write(&file, json!({"users": [{"name": " alice "}, {"name": "bob"}]}).to_string()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_portfolio-service"));
    command.env_clear().args(["check-config", "--log", "warn", "--directory-file", file.to_str().unwrap()]);
    let said = String::from_utf8(command.output().unwrap().stderr).unwrap();
    assert!(said.contains("is left out, as \" alice \" is no sign-in name"), "{said}");
    assert_eq!(said.matches("no sign-in name").count(), 1, "{said}");
}

#[rstest]
fn the_spans_are_those_of_a_simple_model_whatever_the_history(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let config = Config { cases: 48, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    runner
        .run(&prop::collection::vec(step(), 1..12), |history| {
            check_history(&club, &history);
            Ok(())
        })
        .unwrap();
}

const USERS: usize = 4;
const GROUPS: usize = 2;

#[rstest]
fn groups_with_other_people_count_as_changed(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let ids = |names: &[&str]| names.iter().map(|name| id(name)).collect::<Vec<_>>();
    let group = |name: &str, admins: &[&str], members: &[&str]| json!({"id": key(2, name.len()), "name": name, "members": ids(members), "admins": ids(admins)});
    let sync = |groups: &[Value]| {
        let file = write(&club, &json!({"users": members(&[]), "groups": groups}));
        let mut command = Command::new(env!("CARGO_BIN_EXE_portfolio-service"));
        command.env_clear().args(["sync", "--database-url", club.url(), "--directory-file", file.to_str().unwrap()]);
        let said = String::from_utf8(command.output().unwrap().stdout).unwrap();
        said.trim_end().rsplit_once("groups: ").unwrap().1.to_owned()
    };
    let same = group("graphics", &[ALICE], &[ALICE, BOB]);
    for (changing, said) in [
        (Some(group("ctf", &[ALICE], &[ALICE])), "2 added, 0 changed, 0 removed"),
        (Some(group("ctf", &[ALICE], &[ALICE, CAROL])), "0 added, 1 changed, 0 removed"),
        (Some(group("ctf", &[ALICE, CAROL], &[ALICE, CAROL])), "0 added, 1 changed, 0 removed"),
        (Some(group("ctf", &[CAROL], &[CAROL])), "0 added, 1 changed, 0 removed"),
        (Some(group("ctf", &[CAROL], &[CAROL])), "0 added, 0 changed, 0 removed"),
        // A group that the directory no longer lists stays, without people.
        (None, "0 added, 1 changed, 0 removed"),
        (None, "0 added, 0 changed, 0 removed"),
    ] {
        let groups: Vec<_> = iter::once(same.clone()).chain(changing.clone()).collect();
        assert_eq!(sync(&groups), said, "{changing:?}");
    }
}

/// One look at the directory: how many semesters after the last one, who is in which group, which user is called by
/// which name, which group is there.
type Step = (i32, Vec<bool>, Vec<usize>, Vec<bool>);

fn step() -> impl Strategy<Value = Step> {
    (
        prop_oneof![3 => Just(0), 2 => Just(1), 1 => Just(3)],
        prop::collection::vec(any::<bool>(), USERS * GROUPS),
        Just((0..=USERS).collect::<Vec<_>>()).prop_shuffle(),
        prop::collection::vec(prop::bool::weighted(0.8), GROUPS),
    )
}

fn key(kind: u128, index: usize) -> Uuid {
    Uuid::from_u128((kind << 64) + index as u128 + 1)
}

fn semester(count: i32) -> YearWithSemester {
    let half = Semester::from_number((count % 2).into()).unwrap();
    YearWithSemester::new(2000 + count / 2, half).unwrap()
}

/// Feeds a history to the service and to a model that only knows the rules of the contract, and compares them.
fn check_history(club: &Club, history: &[Step]) {
    let conn = &mut club.connect();
    for table in ["group_memberships", "group_admins", "groups"] {
        diesel::sql_query(format!("DELETE FROM {table}")).execute(conn).unwrap();
    }
    let mut model: BTreeMap<(Uuid, Uuid), Vec<Columns>> = BTreeMap::new();
    let mut present = 0;
    for (later, membership, called, there) in history {
        present += later;
        let now = Half::from(semester(present));
        let mut snapshot = Snapshot::default();
        for (user, name) in called.iter().take(USERS).enumerate() {
            snapshot.users.push(DirectoryUser {
                id: key(1, user),
                name: format!("member-{name}"),
                display_name: String::new(),
                real_name: None,
                icon: None,
                email: None,
                state: UserState::Active,
            });
        }
        for group in 0..GROUPS {
            let is_in = |user: &usize| there[group] && membership[group * USERS + user];
            let members: Vec<_> = (0..USERS).filter(is_in).map(|user| key(1, user)).collect();
            if there[group] {
                snapshot.groups.push(DirectoryGroup {
                    id: key(2, group),
                    name: format!("group {}", called[0] + group),
                    description: String::new(),
                    admins: members.clone(),
                    members: members.clone(),
                });
            }
            for user in (0..USERS).map(|user| key(1, user)) {
                let spans = model.entry((key(2, group), user)).or_default();
                match (spans.last_mut(), members.contains(&user)) {
                    (Some(last), true) if last.until.is_none_or(|until| now <= until.next()) => last.until = None,
                    (_, true) => spans.push(Columns { since: now, until: None }),
                    (Some(last), false) if last.until.is_none() => last.until = Some(now),
                    _ => {}
                }
            }
        }
        let at = DbTimestamp(Timestamp::from_micros(0).unwrap());
        diesel::Connection::transaction(conn, |conn| {
            sync::apply(conn, &snapshot, true, semester(present), at).map_err(|error| panic!("{error:?}"))
        })
        .unwrap_or_else(|error: diesel::result::Error| panic!("{error}"));

        let kept: Vec<(DbUuid, DbUuid, Half, Option<Half>)> = group_memberships::table
            .select((
                group_memberships::group_id,
                group_memberships::user_id,
                group_memberships::since,
                group_memberships::until,
            ))
            .load(conn)
            .unwrap();
        let mut kept: Vec<_> =
            kept.into_iter().map(|(group, user, since, until)| (group.0, user.0, since, until)).collect();
        let mut expected: Vec<_> = model
            .iter()
            .flat_map(|((group, user), spans)| spans.iter().map(|span| (*group, *user, span.since, span.until)))
            .collect();
        kept.sort_unstable();
        expected.sort_unstable();
        assert_eq!(kept, expected);
        let names: Vec<String> = users::table
            .filter(users::id.eq_any((0..USERS).map(|user| DbUuid(key(1, user)))))
            .select(users::name)
            .order(users::id)
            .load(conn)
            .unwrap();
        assert_eq!(names, (0..USERS).map(|user| format!("member-{}", called[user])).collect::<Vec<_>>());
    }
}

//! Teams of contests and their members.

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;
use std::thread;

use portfolio_service::teams::queries;
use serde_json::{Value, json};
use service_kit::database::{PageBounds, types::DbTimestamp};

use crate::{
    builders::{NOBODY, contest, each, made, team, team_body, text, with},
    harness::{ALICE, BOB, CAROL, Club, DAVE, DORA, SUSAN, id, real_name},
    objects::Objects,
    plans,
};

fn put(club: &Club, by: &str, team: &str, members: &[&str]) -> crate::harness::Answer {
    let members: Vec<_> = members.iter().map(|name| id(name)).collect();
    club.by(by).put(&format!("{team}/members"), json!({ "members": members }))
}

fn names(club: &Club, team: &str) -> Vec<String> {
    each(&club.anonymous().get(&format!("{team}/members")).expect(200).json(), "name")
}

#[rstest]
fn a_team_is_made_read_changed_and_deleted(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let contest = contest(&club, BOB, "cup");
    let teams = format!("{contest}/teams");
    let body = json!({"name": " A ", "link": "http://a.example", "description": "first\ttime", "result": " 3rd"});
    let answer = club.by(CAROL).post(&teams, body.clone()).expect(201);
    let made = answer.json();
    assert_eq!(made, json!({"id": made["id"], "name": " A ", "result": " 3rd", "members": []}));
    let path = format!("{teams}/{}", text(&made["id"]));
    assert_eq!(answer.header("location"), Some(&*path));
    let mut expected = with(body, json!({"id": made["id"], "members": []}));
    assert_eq!(club.anonymous().get(&path).expect(200).json(), expected);
    assert!(club.by(CAROL).patch(&path, json!({})).expect(204).body.is_empty());
    for (field, value) in
        [("name", json!("A")), ("link", json!("")), ("description", json!("last time")), ("result", json!(""))]
    {
        club.by(CAROL).patch(&path, json!({ field: value })).expect(204);
        expected[field] = value;
        assert_eq!(club.anonymous().get(&path).json(), expected);
    }
    // Another team with the same name, without the optional fields.
    let other = team(&club, DAVE, &contest, "A");
    let shown = club.anonymous().get(&other).json();
    assert_eq!((&shown["link"], &shown["result"]), (&json!(""), &json!("")));
    put(&club, DAVE, &other, &[BOB]).expect(204);
    club.by(DAVE).delete(&other).expect(204);
    club.anonymous().get(&other).refused(404, "not-found");
    club.by(DAVE).delete(&other).refused(404, "not-found");
    assert_eq!(club.anonymous().get(&teams).json().as_array().unwrap().len(), 1);
}

#[rstest]
fn teams_are_ordered_by_name_then_by_id(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let contest = contest(&club, BOB, "cup");
    let mut expected: Vec<_> = ["b", "a", "B", "a", "い", "あ"]
        .iter()
        .map(|name| {
            let path = team(&club, BOB, &contest, name);
            ((*name).to_owned(), path.rsplit('/').next().unwrap().to_owned())
        })
        .collect();
    expected.sort();
    let list = club.anonymous().get(&format!("{contest}/teams")).expect(200).json();
    let found: Vec<_> = each(&list, "name").into_iter().zip(each(&list, "id")).collect();
    assert_eq!(found, expected);
}

#[rstest]
fn members_are_the_whole_new_list_by_name(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let path = team(&club, BOB, &contest(&club, BOB, "cup"), "A");
    put(&club, BOB, &path, &[SUSAN, CAROL, DORA]).expect(204);
    assert_eq!(names(&club, &path), [CAROL, DORA, SUSAN]);
    let answer = club.by(ALICE).get(&format!("{path}/members"));
    assert_eq!(answer.json()[0], json!({"id": id(CAROL), "name": CAROL, "realName": ""}));
    assert!(!answer.text().contains(&real_name(CAROL)));
    let first = club.anonymous().get(&format!("{path}/members?limit=1")).expect(200).json();
    assert_eq!(each(&first, "name"), [CAROL]);
    assert_eq!(club.anonymous().get(&path).json()["members"], answer.json());
    put(&club, BOB, &path, &[DAVE]).expect(204);
    assert_eq!(names(&club, &path), [DAVE]);
    let list = |members: Value| club.by(BOB).put(&format!("{path}/members"), json!({ "members": members }));
    assert_eq!(list(json!([id(BOB), id(CAROL), id(BOB)])).expect(400).pointers(), ["/members/2"]);
    assert_eq!(list(json!([id(BOB), NOBODY, "x"])).expect(400).pointers(), ["/members/2"]);
    assert_eq!(list(json!([id(BOB), NOBODY])).expect(400).pointers(), ["/members/1"]);
    assert_eq!(list(json!("x")).expect(400).pointers(), ["/members"]);
    assert_eq!(club.by(BOB).put(&format!("{path}/members"), json!({})).expect(400).pointers(), ["/members"]);
    assert_eq!(names(&club, &path), [DAVE]);
    put(&club, BOB, &path, &[]).expect(204);
    assert_eq!(names(&club, &path), [""; 0]);
}

#[rstest]
fn who_may_edit(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let contest = contest(&club, BOB, "cup");
    let path = team(&club, CAROL, &contest, "A");
    // Bob has created the contest and Carol the team; Dave is a member of the team.
    put(&club, CAROL, &path, &[DAVE, SUSAN]).expect(204);
    let body = || json!({"result": "3rd"});
    for who in [BOB, CAROL, DAVE, ALICE] {
        club.by(who).patch(&path, body()).expect(204);
        put(&club, who, &path, &[DAVE, SUSAN]).expect(204);
    }
    let problem = club.by(DAVE).delete(&path).refused(403, "forbidden");
    assert_eq!(problem["detail"], "This needs the creator of the team or of the contest, or an admin.");
    for who in [SUSAN, DORA] {
        club.by(who).post(&format!("{contest}/teams"), team_body("x")).refused(403, "account-inactive");
        club.by(who).patch(&path, body()).refused(403, "account-inactive");
        put(&club, who, &path, &[]).refused(403, "account-inactive");
        club.by(who).delete(&path).refused(403, "account-inactive");
    }
    put(&club, CAROL, &path, &[]).expect(204);
    for problem in [
        club.by(DAVE).patch(&path, body()).refused(403, "forbidden"),
        put(&club, DAVE, &path, &[DAVE]).refused(403, "forbidden"),
    ] {
        let needed = "This needs the creator of the team or of the contest, a member of the team, or an admin.";
        assert_eq!(problem["detail"], needed);
    }
    club.anonymous().post(&format!("{contest}/teams"), team_body("x")).refused(401, "not-signed-in");
    club.anonymous().patch(&path, body()).refused(401, "not-signed-in");
    club.anonymous().put(&format!("{path}/members"), json!({"members": []})).refused(401, "not-signed-in");
    club.anonymous().delete(&path).refused(401, "not-signed-in");
    for who in [CAROL, BOB, ALICE] {
        let path = team(&club, CAROL, &contest, who);
        club.by(who).delete(&path).expect(204);
    }
}

#[rstest]
fn a_team_of_another_contest_is_404(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (one, other) = (contest(&club, BOB, "one"), contest(&club, BOB, "other"));
    let team_id = team(&club, BOB, &one, "A").rsplit('/').next().unwrap().to_owned();
    put(&club, BOB, &format!("{one}/teams/{team_id}"), &[CAROL]).expect(204);
    for wrong in [
        format!("{other}/teams/{team_id}"),
        format!("{one}/teams/{NOBODY}"),
        format!("/api/v1/contests/{NOBODY}/teams/{team_id}"),
    ] {
        club.anonymous().get(&wrong).refused(404, "not-found");
        club.anonymous().get(&format!("{wrong}/members")).refused(404, "not-found");
        for who in [BOB, CAROL, DAVE, ALICE] {
            club.by(who).patch(&wrong, json!({"name": "stolen"})).refused(404, "not-found");
            put(&club, who, &wrong, &[]).refused(404, "not-found");
            club.by(who).delete(&wrong).refused(404, "not-found");
        }
    }
    assert_eq!(club.anonymous().get(&format!("{one}/teams/{team_id}")).expect(200).json()["name"], "A");
    assert_eq!(names(&club, &format!("{one}/teams/{team_id}")), [CAROL]);
    let nowhere = format!("/api/v1/contests/{NOBODY}/teams");
    club.anonymous().get(&nowhere).refused(404, "not-found");
    club.by(BOB).post(&nowhere, team_body("A")).refused(404, "not-found");
    for (path, parameter) in [
        ("/api/v1/contests/x/teams".to_owned(), "contestId"),
        (format!("{one}/teams/x"), "teamId"),
        (format!("{one}/teams/x/members"), "teamId"),
    ] {
        assert_eq!(club.anonymous().get(&path).expect(400).pointers(), [parameter]);
    }
    assert_eq!(club.by(BOB).patch(&format!("{one}/teams/x"), json!({})).expect(400).pointers(), ["teamId"]);
    assert_eq!(club.by(BOB).delete(&format!("{one}/teams/x")).expect(400).pointers(), ["teamId"]);
    assert_eq!(put(&club, BOB, &format!("{one}/teams/x"), &[]).expect(400).pointers(), ["teamId"]);
}

#[rstest]
fn every_broken_rule_is_named(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let contest = contest(&club, BOB, "cup");
    let path = team(&club, BOB, &contest, "A");
    let teams = format!("{contest}/teams");
    let long = |length: usize| "五".repeat(length);
    for (field, value) in [
        ("name", json!("")),
        ("name", json!(long(33))),
        ("description", json!(" ")),
        ("description", json!(long(257))),
        ("link", json!("a.example")),
        ("result", json!(long(33))),
        ("result", json!(1)),
        ("name", json!("\u{7f}")),
    ] {
        let (change, pointers) = (json!({ field: value }), [format!("/{field}")]);
        let answer = club.by(BOB).post(&teams, with(team_body("new"), change.clone())).expect(400);
        assert_eq!(answer.pointers(), pointers, "{change}");
        assert_eq!(club.by(BOB).patch(&path, change.clone()).expect(400).pointers(), pointers, "{change}");
    }
    assert_eq!(club.by(BOB).post(&teams, json!({})).expect(400).pointers(), ["/description", "/name"]);
    made(&club, BOB, &teams, json!({"name": long(32), "description": long(256), "result": long(32)}));
}

#[rstest]
fn concurrent_changes_of_a_team_and_of_its_members_both_take_effect(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut club = club;
    let second = club.start_another();
    let path = team(&club, BOB, &contest(&club, BOB, "cup"), "A");
    for round in 0..200 {
        let change = json!({"result": format!("{round}."), "description": format!("round {round}")});
        let lists: [&[&str]; 3] = [&[BOB, CAROL], &[CAROL, DAVE, ALICE], &[DAVE]];
        let (expected, other) = (lists[round % 3], lists[(round + 1) % 3]);
        thread::scope(|scope| {
            let (club, path, body) = (&club, &path, change.clone());
            let change = move || club.by(BOB).at(second).patch(path, body).expect(204);
            if round % 2 == 0 {
                scope.spawn(change);
                scope.spawn(move || put(club, BOB, path, expected).expect(204));
            } else {
                scope.spawn(move || put(club, BOB, path, expected).expect(204));
                scope.spawn(change);
            }
            if round % 5 == 0 {
                scope.spawn(move || put(club, ALICE, path, other).expect(204));
            }
        });
        let shown = club.anonymous().get(&path).expect(200).json();
        assert_eq!((&shown["result"], &shown["description"]), (&change["result"], &change["description"]));
        let sorted = |list: &[&str]| {
            let mut list: Vec<_> = list.iter().map(|name| (*name).to_owned()).collect();
            list.sort();
            list
        };
        let found = each(&shown["members"], "name");
        assert!(found == sorted(expected) || (round % 5 == 0 && found == sorted(other)), "round {round}: {found:?}");
    }
}

#[rstest]
fn a_contest_deleted_while_teams_are_added_leaves_none(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for round in 0..30 {
        let contest = contest(&club, BOB, &format!("c{round}"));
        let statuses = thread::scope(|scope| {
            let (club, contest) = (&club, &contest);
            let add = || scope.spawn(move || club.by(CAROL).post(&format!("{contest}/teams"), team_body("A")).status);
            let adds = [add(), add()];
            let deleted = scope.spawn(move || club.by(BOB).delete(contest).status);
            assert_eq!(deleted.join().unwrap(), 204);
            adds.map(|add| add.join().unwrap())
        });
        assert!(statuses.iter().all(|status| [201, 404].contains(status)), "{statuses:?}");
        club.anonymous().get(&format!("{contest}/teams")).refused(404, "not-found");
    }
}

#[rstest]
fn a_member_leaves_and_changes_the_team_at_once(#[values(Sqlite, Postgres)] backend: Backend) {
    let mut club = Club::start(backend);
    let second = club.start_another();
    let path = team(&club, BOB, &contest(&club, BOB, "cup"), "A");
    for round in 0..30 {
        put(&club, BOB, &path, &[CAROL, DAVE]).expect(204);
        let change = json!({"description": format!("round {round}")});
        thread::scope(|scope| {
            scope.spawn(|| put(&club, CAROL, &path, &[DAVE]).expect(204));
            scope.spawn(|| club.by(CAROL).at(second).patch(&path, change.clone()).expect(204));
        });
        assert_eq!(club.anonymous().get(&path).expect(200).json()["description"], change["description"]);
        assert_eq!(names(&club, &path), [DAVE]);
    }
    put(&club, CAROL, &path, &[CAROL]).refused(403, "forbidden");
    club.clock.advance(chrono::TimeDelta::seconds(61));
    club.by(CAROL).patch(&path, json!({"link": ""})).refused(403, "forbidden");
}

#[rstest]
fn queries_use_indexes(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut objects = Objects::new();
    objects.grow(&club, 2);
    let (contest, team, bob) = (objects.first("contestId"), objects.first("teamId"), id(BOB));
    plans::check(&club, |conn| {
        queries::of_contest(conn, contest).unwrap();
        queries::get(conn, contest, team).unwrap();
        for page in plans::pages((String::new(), bob)).into_iter().chain([PageBounds::all()]) {
            queries::page_of_contest(conn, contest, &page).unwrap();
            queries::members(conn, team, &page).unwrap();
        }
        queries::put_members(conn, team, &[bob], bob, DbTimestamp(club.clock.now())).unwrap();
    });
}

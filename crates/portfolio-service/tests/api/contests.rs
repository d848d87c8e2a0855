//! Contests.

use crate::harness::{
    Backend::{self, Postgres, Sqlite},
    Club,
};
use rstest::rstest;
use std::thread;

use portfolio_service::contests::queries;
use serde_json::{Value, json};
use service_kit::database::types::DbTimestamp;

use crate::{
    builders::{NOBODY, contest, contest_body, each, made, team, text, with},
    harness::{ALICE, BOB, CAROL, DAVE, DORA, SUSAN, id, real_name},
    objects::Objects,
    plans,
};

const CONTESTS: &str = "/api/v1/contests";

#[rstest]
fn a_contest_is_made_read_changed_and_deleted_with_its_teams(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let body = json!({
        "name": " 春のカップ ", "link": "https://cup.example/", "description": "every\nspring",
        "duration": {"since": "2026-04-04T18:00:00.1234567+09:00", "until": "2026-04-05T00:00:00Z"}, "extra": 1
    });
    let answer = club.by(BOB).post(CONTESTS, body.clone()).expect(201);
    let made = answer.json();
    let path = format!("{CONTESTS}/{}", text(&made["id"]));
    assert_eq!(answer.header("location"), Some(&*path));
    // In UTC, truncated to microseconds.
    let utc = json!({"since": "2026-04-04T09:00:00.123456Z", "until": "2026-04-05T00:00:00Z"});
    let mut expected = with(body, json!({"id": made["id"], "teams": [], "duration": utc}));
    expected.as_object_mut().unwrap().remove("extra");
    assert_eq!(made, expected);
    assert_eq!(club.anonymous().get(&path).expect(200).json(), expected);
    let listed = json!([{"id": made["id"], "name": made["name"], "duration": made["duration"]}]);
    assert_eq!(club.anonymous().get(CONTESTS).expect(200).json(), listed);

    assert!(club.by(BOB).patch(&path, json!({})).expect(204).body.is_empty());
    assert_eq!(club.anonymous().get(&path).json(), expected);
    for (field, value) in [
        ("name", json!("cup")),
        ("link", json!("")),
        ("description", json!("each spring")),
        // Without `until` it is still going on.
        ("duration", json!({"since": "2026-04-04T09:00:00Z"})),
        // `until` may equal `since`.
        ("duration", json!({"since": "2026-04-04T09:00:00Z", "until": "2026-04-04T09:00:00Z"})),
    ] {
        club.by(BOB).patch(&path, json!({ field: value })).expect(204);
        expected[field] = value;
        assert_eq!(club.anonymous().get(&path).json(), expected);
    }

    let team = team(&club, CAROL, &path, "A");
    club.by(CAROL).put(&format!("{team}/members"), json!({"members": [id(DAVE)]})).expect(204);
    club.by(BOB).delete(&path).expect(204);
    club.anonymous().get(&path).refused(404, "not-found");
    club.anonymous().get(&team).refused(404, "not-found");
    club.by(BOB).delete(&path).refused(404, "not-found");
    assert_eq!(club.anonymous().get(&format!("/api/v1/users/{}/contests", id(DAVE))).expect(200).json(), json!([]));
    contest(&club, CAROL, "cup");
}

#[rstest]
fn contests_are_ordered_by_start_descending_and_id(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let since = [
        "2024-01-01T00:00:00Z",
        "2026-01-01T00:00:00Z",
        "1960-01-01T00:00:00Z",
        "2025-12-31T23:59:59.999999Z",
        "2024-01-01T00:00:00Z",
        "2026-01-01T00:00:00Z",
    ];
    let mut made: Vec<_> = since
        .iter()
        .enumerate()
        .map(|(n, since)| {
            let body = with(contest_body(&format!("c{n}")), json!({"duration": {"since": since}}));
            let path = made(&club, BOB, CONTESTS, body);
            let team = team(&club, BOB, &path, "A");
            club.by(BOB).put(&format!("{team}/members"), json!({"members": [id(CAROL)]})).expect(204);
            (std::cmp::Reverse(*since), path.rsplit('/').next().unwrap().to_owned())
        })
        .collect();
    made.sort();
    let expected: Vec<_> = made.into_iter().map(|(_, id)| id).collect();
    assert_eq!(each(&club.anonymous().get(CONTESTS).expect(200).json(), "id"), expected);
    let of_carol = format!("/api/v1/users/{}/contests", id(CAROL));
    assert_eq!(each(&club.anonymous().get(&of_carol).expect(200).json(), "id"), expected);
    let limited = |limit: &str| club.anonymous().get(&format!("{CONTESTS}?limit={limit}"));
    assert_eq!(each(&limited("3").expect(200).json(), "id"), expected[..3]);
    for bad in ["0", "1001", "x"] {
        assert_eq!(limited(bad).expect(400).pointers(), ["limit"], "{bad}");
    }
    assert_eq!(each(&club.anonymous().get(&format!("{of_carol}?limit=2")).expect(200).json(), "id"), expected[..2]);
}

#[rstest]
fn a_contest_shows_its_teams_and_a_user_only_their_own(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let path = contest(&club, BOB, "cup");
    let [b, a, empty] = ["B", "A", "empty"].map(|name| team(&club, BOB, &path, name));
    let put = |team: &str, members: &[&str]| {
        let members: Vec<_> = members.iter().map(|name| id(name)).collect();
        club.by(BOB).put(&format!("{team}/members"), json!({ "members": members })).expect(204);
    };
    put(&a, &[SUSAN, CAROL, DORA]);
    put(&b, &[CAROL]);
    club.by(BOB).patch(&b, json!({"result": "3位"})).expect(204);
    let user = |name: &str| json!({"id": id(name), "name": name, "realName": ""});
    let of = |team: &str, name: &str, result: &str| json!({"id": team.rsplit('/').next().unwrap(), "name": name, "result": result});
    let teams = json!([
        with(of(&a, "A", ""), json!({"members": [user(CAROL), user(DORA), user(SUSAN)]})),
        with(of(&b, "B", "3位"), json!({"members": [user(CAROL)]})),
        with(of(&empty, "empty", ""), json!({"members": []})),
    ]);
    assert_eq!(club.anonymous().get(&path).expect(200).json()["teams"], teams);
    assert_eq!(club.anonymous().get(&format!("{path}/teams")).expect(200).json(), teams);
    let first = club.anonymous().get(&format!("{path}/teams?limit=1")).expect(200).json();
    assert_eq!(first, json!([teams[0]]));
    let shown = club.anonymous().get(&path).json();
    let contest = json!({"id": shown["id"], "name": "cup", "duration": shown["duration"]});
    let of_user = |name: &str| club.anonymous().get(&format!("/api/v1/users/{}/contests", id(name))).expect(200).json();
    let both = with(contest.clone(), json!({"teams": [of(&a, "A", ""), of(&b, "B", "3位")]}));
    assert_eq!(of_user(CAROL), json!([both]));
    assert_eq!(of_user(SUSAN), json!([with(contest, json!({"teams": [of(&a, "A", "")]}))]));
    assert_eq!(of_user(BOB), json!([]));
    for who in [ALICE, CAROL] {
        let text = club.by(who).get(&path).text();
        assert!(!text.contains(&real_name(CAROL)), "{text}");
    }
}

#[rstest]
fn who_may_edit(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let path = contest(&club, BOB, "cup");
    let team = team(&club, CAROL, &path, "A");
    club.by(CAROL).put(&format!("{team}/members"), json!({"members": [id(DAVE)]})).expect(204);
    let body = || json!({"description": "changed"});
    for who in [BOB, ALICE] {
        club.by(who).patch(&path, body()).expect(204);
    }
    for who in [CAROL, DAVE] {
        for problem in [
            club.by(who).patch(&path, body()).refused(403, "forbidden"),
            club.by(who).delete(&path).refused(403, "forbidden"),
        ] {
            assert_eq!(problem["detail"], "This needs the creator of the contest, or an admin.");
        }
    }
    for who in [SUSAN, DORA] {
        club.by(who).post(CONTESTS, contest_body("x")).refused(403, "account-inactive");
        club.by(who).patch(&path, body()).refused(403, "account-inactive");
        club.by(who).delete(&path).refused(403, "account-inactive");
    }
    club.by("stranger").post(CONTESTS, contest_body("x")).refused(403, "forbidden");
    club.anonymous().post(CONTESTS, contest_body("x")).refused(401, "not-signed-in");
    club.anonymous().patch(&path, body()).refused(401, "not-signed-in");
    club.anonymous().delete(&path).refused(401, "not-signed-in");
    club.by(ALICE).delete(&path).expect(204);
}

#[rstest]
fn an_unknown_id_is_404_and_a_malformed_one_is_400(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let nowhere = format!("{CONTESTS}/{NOBODY}");
    club.anonymous().get(&nowhere).refused(404, "not-found");
    club.anonymous().get(&format!("/api/v1/users/{NOBODY}/contests")).refused(404, "not-found");
    for who in [BOB, ALICE] {
        club.by(who).patch(&nowhere, json!({})).refused(404, "not-found");
        club.by(who).delete(&nowhere).refused(404, "not-found");
    }
    let bad = format!("{CONTESTS}/x");
    assert_eq!(club.anonymous().get(&bad).expect(400).pointers(), ["contestId"]);
    assert_eq!(club.by(BOB).patch(&bad, json!({})).expect(400).pointers(), ["contestId"]);
    assert_eq!(club.by(BOB).delete(&bad).expect(400).pointers(), ["contestId"]);
    assert_eq!(club.anonymous().get("/api/v1/users/x/contests").expect(400).pointers(), ["userId"]);
}

#[rstest]
fn every_broken_rule_is_named(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let path = contest(&club, BOB, "cup");
    let before = club.anonymous().get(&path).text();
    let long = |length: usize| "五".repeat(length);
    let bad = [
        ("name", json!(" ")),
        ("name", json!(long(33))),
        ("name", json!("a\u{1}")),
        ("description", json!("")),
        ("description", json!(long(257))),
        ("link", json!("ftp://cup.example")),
        ("duration/until", json!({"since": "2026-04-04T00:00:00Z", "until": "2026-04-03T23:59:59.999999Z"})),
        ("duration/since", json!({"until": "2026-04-04T00:00:00Z"})),
        ("duration/since", json!({"since": "2026-04-04"})),
        ("duration", json!([])),
    ];
    for (pointer, value) in bad {
        let change = json!({ pointer.split('/').next().unwrap(): value });
        let pointers = [format!("/{pointer}")];
        let answer = club.by(BOB).post(CONTESTS, with(contest_body("new"), change.clone())).expect(400);
        assert_eq!(answer.pointers(), pointers, "{change}");
        assert_eq!(club.by(BOB).patch(&path, change.clone()).expect(400).pointers(), pointers, "{change}");
    }
    assert_eq!(
        club.by(BOB).post(CONTESTS, json!({"link": 1})).expect(400).pointers(),
        ["/description", "/duration", "/link", "/name"]
    );
    assert_eq!(club.anonymous().get(&path).text(), before);
    assert_eq!(club.anonymous().get(CONTESTS).json().as_array().unwrap().len(), 1);
}

#[rstest]
fn a_taken_name_is_409_also_for_concurrent_requests(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut club = club;
    let second = club.start_another();
    contest(&club, BOB, "cup");
    let other = contest(&club, CAROL, "Cup");
    club.by(CAROL).post(CONTESTS, contest_body("cup")).refused(409, "duplicate-name");
    club.by(CAROL).patch(&other, json!({"name": "cup"})).refused(409, "duplicate-name");
    assert_eq!(club.anonymous().get(&other).json()["name"], "Cup");
    for round in 0..50 {
        let body: Value = contest_body(&format!("c{round}"));
        let mut statuses = thread::scope(|scope| {
            let attempts = [0, second].map(|service| {
                let (club, body) = (&club, body.clone());
                scope.spawn(move || club.by(BOB).at(service).post(CONTESTS, body).status)
            });
            attempts.map(|attempt| attempt.join().unwrap())
        });
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 409], "round {round}");
    }
    let paths = ["a", "b"].map(|name| contest(&club, BOB, name));
    for round in 0..50 {
        let body = json!({"name": format!("renamed {round}")});
        let mut statuses = thread::scope(|scope| {
            let attempts = [(0, &paths[0]), (second, &paths[1])].map(|(service, path)| {
                let (club, body) = (&club, body.clone());
                scope.spawn(move || club.by(BOB).at(service).patch(path, body).status)
            });
            attempts.map(|attempt| attempt.join().unwrap())
        });
        statuses.sort_unstable();
        assert_eq!(statuses, [204, 409], "round {round}");
    }
}

#[rstest]
fn queries_use_indexes(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut objects = Objects::new();
    objects.grow(&club, 2);
    let (bob, at) = (id(BOB), DbTimestamp(club.clock.now()));
    plans::check_page(&club, |conn| {
        for page in plans::pages((at, bob)) {
            queries::list(conn, &page).unwrap();
        }
    });
    plans::check(&club, |conn| {
        queries::get(conn, objects.first("contestId")).unwrap();
        for page in plans::pages((at, bob)) {
            queries::of_user(conn, bob, &page).unwrap();
        }
    });
}

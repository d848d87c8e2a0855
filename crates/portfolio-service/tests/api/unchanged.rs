//! What is saved as it is does not change, nor does the time of its last change.

use chrono::TimeDelta;
use diesel::prelude::*;
use portfolio_service::schema::{accounts, contest_teams, contests, projects, users};
use rstest::rstest;
use serde_json::{Value, json};
use service_kit::database::types::{DbTimestamp, DbUuid};

use crate::{
    builders::{contest, made, member, project, semester, team, with},
    harness::{
        BOB,
        Backend::{self, Postgres, Sqlite},
        CAROL, Club, DAVE, id,
    },
};

/// The times of the last changes of all objects.
fn times(club: &Club) -> Vec<Vec<(DbUuid, DbTimestamp)>> {
    let conn = &mut club.connect();
    macro_rules! times {
        ($($table:ident)+) => {
            vec![$($table::table.select(($table::id, $table::updated_at)).order($table::id).load(conn).unwrap(),)+]
        };
    }
    times!(users accounts projects contests contest_teams)
}

#[rstest]
fn saving_the_same_again_changes_nothing(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let user = format!("/api/v1/users/{}", id(BOB));
    let account = json!({"type": 1, "displayName": "bob", "url": "https://bob.example", "prPermitted": true});
    let account_path = made(&club, BOB, &format!("{user}/accounts"), account.clone());
    let (project, contest) = (project(&club, BOB, "robot"), contest(&club, BOB, "cup"));
    let team = team(&club, BOB, &contest, "ours");
    let span = json!({"since": semester((2024, 1)), "until": semester((2025, 0))});
    let changes = [
        ("PATCH", user, json!({"bio": "I am bob.", "check": true}), json!({"bio": "I was bob."})),
        ("PATCH", account_path, account, json!({"displayName": "Bob"})),
        (
            "PATCH",
            project.clone(),
            json!({"name": "robot", "link": "https://r.example", "description": "walks", "duration": span}),
            json!({"duration": {"since": semester((2024, 1))}}),
        ),
        (
            "PUT",
            format!("{project}/members"),
            json!({"members": [member(CAROL, (2024, 0), None), member(BOB, (2025, 0), Some((2025, 0)))]}),
            json!({"members": [member(CAROL, (2024, 0), None), member(BOB, (2025, 0), None)]}),
        ),
        (
            "PATCH",
            contest.clone(),
            json!({"name": "cup", "link": "", "description": "d", "duration": {"since": "2026-04-01T09:00:00Z"}}),
            json!({"duration": {"since": "2026-04-01T09:00:00Z", "until": "2026-04-02T09:00:00Z"}}),
        ),
        (
            "PATCH",
            team.clone(),
            json!({"name": "ours", "link": "", "description": "d", "result": "first"}),
            json!({"result": ""}),
        ),
        ("PUT", format!("{team}/members"), json!({"members": [id(CAROL), id(DAVE)]}), json!({"members": [id(DAVE)]})),
    ];
    let send = |method, path: &str, body: &Value| {
        club.clock.advance(TimeDelta::minutes(2));
        club.by(BOB).send(method, path, Some(body.clone())).expect(204);
        times(&club)
    };
    for (method, path, body, change) in &changes {
        let before = send(method, path, body);
        let tag = || club.by(BOB).get(path).header("etag").unwrap().rsplit('.').next().unwrap().to_owned();
        let hash = tag();
        assert_eq!(send(method, path, body), before, "{method} {path}");
        if *method == "PATCH" {
            assert_eq!(send(method, path, &json!({})), before, "{method} {path} without a field");
        }
        if path.ends_with("/members") {
            let reversed: Vec<_> = body["members"].as_array().unwrap().iter().rev().cloned().collect();
            assert_eq!(send(method, path, &json!({ "members": reversed })), before, "{path} in another order");
        }
        assert_eq!(tag(), hash, "{method} {path}");
        let both = if *method == "PATCH" { with(body.clone(), change.clone()) } else { change.clone() };
        assert_ne!(send(method, path, &both), before, "{method} {path} with a change");
    }
}

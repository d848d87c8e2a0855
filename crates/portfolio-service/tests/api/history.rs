//! The history of projects and contests, and their restoration (contract, "History").

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;

use chrono::TimeDelta;
use portfolio_service::deletion::REMOVALS;
use serde_json::{Value, json};
use service_kit::{database::types::DbTimestamp, removal::first_place};

use crate::{
    builders::{contest, contest_body, member, project, project_body, team},
    events,
    harness::{ALICE, BOB, CAROL, Club, DAVE, id, real_name},
};

/// The history of an object, as an admin reads it.
fn of(club: &Club, path: &str) -> Vec<Value> {
    club.by(ALICE).get(&format!("{path}/history")).expect(200).json().as_array().unwrap().clone()
}

/// The newest change, as actor, kind of credential, action and changes.
fn newest(rows: &[Value]) -> Value {
    let row = &rows[0];
    json!([row["actor"], row["by"], row["action"], row["changes"]])
}

fn audit(club: &Club) -> Vec<Value> {
    club.by(ALICE).get("/api/v1/audit").expect(200).json().as_array().unwrap().clone()
}

#[rstest]
fn a_project_has_a_row_for_each_change(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let path = project(&club, CAROL, "robot");
    assert_eq!(newest(&of(&club, &path))[2], "created");
    club.by(CAROL).patch(&path, json!({"name": "robots"})).expect(204);
    club.by(CAROL).patch(&path, json!({"name": "robots"})).expect(204);
    let expected = json!({"name": ["robot", "robots"]});
    assert_eq!(newest(&of(&club, &path)), json!([id(CAROL), "proxy", "changed", expected]));
    let members = json!({"members": [member(BOB, (2024, 0), None)]});
    club.by(CAROL).put(&format!("{path}/members"), members.clone()).expect(204);
    club.by(CAROL).put(&format!("{path}/members"), members).expect(204);
    let rows = of(&club, &path);
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[0]["changes"]["members"]["added"][0]["id"], json!(id(BOB)));
    assert!(rows[0]["changes"]["members"]["added"][0]["name"].is_null());
    club.by(BOB).get(&format!("{path}/history")).expect(200);
    club.by(DAVE).get(&format!("{path}/history")).refused(403, "forbidden");
}

#[rstest]
fn a_deleted_project_comes_back(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let path = project(&club, CAROL, "robot");
    let members = json!({"members": [member(BOB, (2024, 0), None)]});
    club.by(CAROL).put(&format!("{path}/members"), members).expect(204);
    let before = club.by(BOB).get(&path).expect(200).json();
    club.by(CAROL).post(&format!("{path}/restore"), json!({})).refused(409, "not-deleted");
    club.by(CAROL).delete(&path).expect(204);
    club.by(BOB).get(&format!("{path}/history")).expect(200);
    club.by(DAVE).get(&format!("{path}/history")).refused(403, "forbidden");
    club.by(BOB).post(&format!("{path}/restore"), json!({})).refused(403, "forbidden");
    let other = project(&club, DAVE, "robot");
    club.by(CAROL).post(&format!("{path}/restore"), json!({})).refused(409, "duplicate-name");
    club.by(DAVE).delete(&other).expect(204);
    let restored = club.by(CAROL).post(&format!("{path}/restore"), json!({})).expect(200).json();
    assert_eq!(restored, before);
    let rows = of(&club, &path);
    assert_eq!(newest(&rows), json!([id(CAROL), "proxy", "restored", {"deleted": [true, false]}]));
    assert_eq!(rows.len(), 4);
    club.by(CAROL).delete(&path).expect(204);
    club.clock.advance(TimeDelta::days(30));
    club.by(CAROL).post(&format!("{path}/restore"), json!({})).refused(404, "not-found");
    let now = DbTimestamp(club.clock.now());
    let (conn, removal) = (&mut club.connect(), &REMOVALS[0]);
    let (_, ids) = removal.page(conn, now, first_place()).unwrap().unwrap();
    assert_eq!((ids.len(), removal.remove_some(conn, &ids).unwrap()), (2, 2));
    assert!(removal.page(conn, now, first_place()).unwrap().is_none());
    club.by(CAROL).get(&format!("{path}/history")).refused(404, "not-found");
}

#[rstest]
fn a_contest_comes_back_with_its_teams(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let path = contest(&club, CAROL, "cup");
    let of_team = team(&club, BOB, &path, "the team");
    club.by(BOB).put(&format!("{of_team}/members"), json!({"members": [id(BOB), id(DAVE)]})).expect(204);
    let before = club.by(BOB).get(&path).expect(200).json();
    club.by(CAROL).delete(&path).expect(204);
    let deleted: Vec<_> = audit(&club).into_iter().filter(|row| row["action"] == "deleted").collect();
    assert_eq!(deleted.len(), 2, "the contest and its team: {deleted:?}");
    let name = json!({"name": "cup"});
    let mut body = contest_body("cup");
    body["name"] = name["name"].clone();
    assert_eq!(club.by(CAROL).post(&format!("{path}/restore"), json!({})).expect(200).json(), before);
    assert_eq!(newest(&of(&club, &path))[2], "restored");
    club.by(CAROL).post("/api/v1/contests", body).refused(409, "duplicate-name");
}

/// What only some may see is in no row.
#[rstest]
fn the_history_has_nothing_private(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let profile = format!("/api/v1/users/{}", id(BOB));
    club.by(BOB).patch(&profile, json!({"bio": "I draw.", "check": true})).expect(204);
    let path = project(&club, CAROL, "robot");
    club.by(CAROL).put(&format!("{path}/members"), json!({"members": [member(BOB, (2024, 0), None)]})).expect(204);
    club.by(BOB).patch(&profile, json!({"check": false})).expect(204);
    let account = json!({"displayName": "Bob", "type": 0, "url": "https://bob.example"});
    club.by(BOB).post(&format!("{profile}/accounts"), account).expect(201);
    let event = events::plant(&club, "secret meeting", "2026-04-04T09:00:00Z", &[BOB], Some(2));
    club.by(BOB).patch(&format!("/api/v1/events/{event}"), json!({"level": 1})).expect(204);
    club.by(BOB).patch(&format!("/api/v1/events/{event}"), json!({"level": 2})).expect(204);
    let rows = json!(audit(&club)).to_string();
    for private in [&*real_name(BOB), "secret meeting"] {
        assert!(!rows.contains(private), "{private}: {rows}");
    }
    for public in ["I draw.", "https://bob.example", r#""level":[1,2]"#, r#""check":[true,false]"#] {
        assert!(rows.contains(public), "{public}: {rows}");
    }
    club.by(BOB).get("/api/v1/audit").refused(403, "forbidden");
    club.by(BOB).post("/api/v1/projects", project_body("robot")).refused(409, "duplicate-name");
}

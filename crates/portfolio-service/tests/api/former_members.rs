//! Who is no longer listed in the directory (contract, booking "The club directory").

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;
use std::process::Command;

use serde_json::{Value, json};

use crate::{
    builders::{member, project, text},
    harness::{ALICE, Answer, BOB, CAROL, Club, DAVE, DORA, SUSAN, id},
    sync::{members, start, write},
};

/// The directory without these members.
fn without(names: &[&str]) -> Value {
    let users = members(&[]).into_iter().filter(|user| !names.contains(&user["name"].as_str().unwrap()));
    json!({"users": users.collect::<Vec<_>>()})
}

fn sync(club: &Club, replica: usize, query: &str) -> Answer {
    club.by(ALICE).at(replica).send("POST", &format!("/api/v1/users/sync{query}"), None)
}

/// The states of alice, bob, carol, dave, dora and susan.
fn states(club: &Club) -> [i64; 6] {
    [ALICE, BOB, CAROL, DAVE, DORA, SUSAN].map(|name| {
        let user = club.anonymous().get(&format!("/api/v1/users/{}", id(name))).expect(200).json();
        user["state"].as_i64().unwrap()
    })
}

#[rstest]
fn who_is_no_longer_listed_is_deactivated(#[values(Sqlite, Postgres)] backend: Backend) {
    let mut club = Club::start(backend);
    let replica = start(&mut club, &without(&[]));
    let path = project(&club, BOB, "robot");
    let list = json!({"members": [member(CAROL, (2024, 0), None)]});
    club.by(BOB).put(&format!("{path}/members"), list).expect(204);
    write(&club, &without(&[CAROL, SUSAN]));
    sync(&club, replica, "").expect(204);
    assert_eq!(states(&club), [1, 1, 0, 1, 0, 0]);
    club.by(CAROL).get("/api/v1/users/me").refused(403, "account-inactive");
    // The history stays.
    assert_eq!(club.anonymous().get(&path).expect(200).json()["members"][0]["name"], CAROL);
    write(&club, &without(&[]));
    sync(&club, replica, "").expect(204);
    assert_eq!(states(&club), [1, 1, 1, 1, 0, 2]);
    // Listed, though under a name that is none here.
    let mut directory = without(&[CAROL]);
    directory["users"].as_array_mut().unwrap().push(json!({"id": id(CAROL), "name": "no sign-in name"}));
    write(&club, &directory);
    sync(&club, replica, "").expect(204);
    assert_eq!(states(&club), [1, 1, 1, 1, 0, 2]);
}

#[rstest]
fn a_suspicious_directory_is_refused_unless_forced(#[values(Sqlite, Postgres)] backend: Backend) {
    let mut club = Club::start(backend);
    let replica = start(&mut club, &without(&[]));
    let mut suspended = without(&[]);
    suspended["users"].as_array_mut().unwrap().iter_mut().for_each(|user| user["state"] = json!("suspended"));
    let mut mixed = without(&[BOB, CAROL]);
    mixed["users"][1]["state"] = json!("suspended");
    assert_eq!(mixed["users"][1]["name"], DAVE);
    for directory in [json!({"users": []}), suspended, mixed, without(&[BOB, CAROL, DAVE])] {
        write(&club, &directory);
        let problem = sync(&club, replica, "").refused(409, "suspicious-directory");
        assert!(text(&problem["detail"]).contains("of 4 active members"), "{problem}");
        let other = club.start_another();
        club.by(BOB).at(other).get("/api/v1/users/me").expect(200);
        assert_eq!(states(&club), [1, 1, 1, 1, 0, 2]);
    }
    let file = club.folder().join("club.json");
    let run = |command: &[&str]| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_portfolio-service"));
        program.env_clear().args(["--log", "warn", "--database-url", club.url()]).args(command);
        let output = program.args(["--directory-file", file.to_str().unwrap()]).output().unwrap();
        (String::from_utf8(output.stderr).unwrap(), output.status.code())
    };
    let (err, status) = run(&["sync"]);
    assert_eq!(status, Some(1), "{err}");
    assert!(err.contains("3 of 4 active members") && err.contains("force"), "{err}");
    assert_eq!(states(&club), [1, 1, 1, 1, 0, 2]);

    write(&club, &without(&[CAROL, DAVE]));
    sync(&club, replica, "?force=false").expect(204);
    assert_eq!(states(&club), [1, 1, 0, 0, 0, 2]);
    write(&club, &without(&[ALICE, BOB]));
    let (err, status) = run(&["sync", "--force"]);
    assert_eq!(status, Some(0), "{err}");
    assert_eq!(states(&club), [0, 0, 1, 1, 0, 2]);
}

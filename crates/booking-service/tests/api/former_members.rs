//! Who may be a member, and who is one no more (contract, "Who may become a member" and "The club directory").

use crate::harness::Backend::{self, Postgres, Sqlite};
use booking_service::{schema::users, users::suspension};
use diesel::prelude::*;
use rstest::rstest;
use serde_json::{Value, json};
use service_kit::database::{AnyConnection, types::DbTimestamp};

use crate::{
    builders::{At, event, text},
    commands::on,
    harness::{ALICE, Answer, BOB, CAROL, Club, DAVE, SUSAN, id},
    issuer::{Issuer, start},
    sign_in::{Browser, HTML, both, sign_in},
    sync::{start_with_file, with_members, write},
    tokens::{by_token, make_token},
};

/// The directory without these members.
fn without(names: &[&str]) -> Value {
    let mut directory = with_members(&[], &[]);
    directory["users"].as_array_mut().unwrap().retain(|user| !names.contains(&user["name"].as_str().unwrap()));
    directory
}

fn sync(club: &Club, replica: usize, query: &str) -> Answer {
    club.by(ALICE).at(replica).send("POST", &format!("/api/users/sync{query}"), None)
}

fn states(club: &Club) -> Vec<(String, i64)> {
    let users = club.by(ALICE).get("/api/users?include-suspended=true").expect(200).json();
    let users = users.as_array().unwrap().iter();
    users.map(|user| (text(&user["name"]), user["state"].as_i64().unwrap())).collect()
}

fn with_states(states: [(&str, i64); 5]) -> Vec<(String, i64)> {
    states.map(|(name, state)| (name.to_owned(), state)).into()
}

#[rstest]
fn who_is_no_longer_listed_loses_all_access(#[values(Sqlite, Postgres)] backend: Backend) {
    let mut club = Club::start(backend);
    let replica = start_with_file(&mut club, &without(&[DAVE]));
    let secret = text(&club.by(CAROL).get("/api/users/me/ical").expect(200).json()["secret"]);
    let feed = format!("/api/ical/v1/{}{secret}", id(CAROL));
    let token = make_token(&club, CAROL, "read");
    club.anonymous().get(&feed).expect(200);
    by_token(&club, &token).get("/api/users/me").expect(200);

    write(&club, &without(&[CAROL, DAVE]));
    sync(&club, replica, "").expect(201);
    // The directory never listed dave, so it does not end his membership.
    let expected = [(ALICE, 1), (BOB, 1), (CAROL, 0), (DAVE, 1), (SUSAN, 2)];
    assert_eq!(states(&club), with_states(expected));
    club.by(CAROL).get("/api/users/me").refused(403, "account-inactive");
    by_token(&club, &token).get("/api/users/me").refused(403, "account-inactive");
    club.anonymous().get(&feed).refused(404, "not-found");
    let everyone = format!("/api/groups/{}", crate::builders::EVERYONE);
    let members = club.by(BOB).get(&everyone).expect(200).json()["members"].to_string();
    assert!(!members.contains(&id(CAROL).to_string()) && members.contains(&id(DAVE).to_string()), "{members}");

    // Listed again, she signs in anew.
    write(&club, &without(&[]));
    sync(&club, replica, "").expect(201);
    club.by(CAROL).get("/api/users/me").refused(401, "bad-credentials");
    by_token(&club, &token).get("/api/users/me").refused(401, "bad-credentials");
    club.anonymous().get(&feed).refused(404, "not-found");
    assert_eq!(states(&club)[2], (CAROL.to_owned(), 1));
}

#[rstest]
fn whose_name_goes_to_somebody_else_is_deactivated_as_well(#[values(Sqlite, Postgres)] backend: Backend) {
    let mut club = Club::start(backend);
    let replica = start_with_file(&mut club, &without(&[]));
    let mut directory = without(&[CAROL]);
    let other = json!({"id": service_kit::database::types::DbUuid::new(), "name": CAROL, "displayName": "Another"});
    directory["users"].as_array_mut().unwrap().push(other);
    write(&club, &directory);
    sync(&club, replica, "").expect(201);
    let former = format!("{CAROL}~{}", &id(CAROL).to_string()[..8]);
    assert!(states(&club).contains(&(former, 0)) && states(&club).contains(&(CAROL.to_owned(), 1)));
}

#[rstest]
fn a_suspicious_directory_is_refused_unless_forced(#[values(Sqlite, Postgres)] backend: Backend) {
    let mut club = Club::start(backend);
    let replica = start_with_file(&mut club, &without(&[]));
    let before = states(&club);
    let groups = club.by(ALICE).get("/api/groups").expect(200).json();
    let deactivated = json!({"users": [
        {"id": id(ALICE), "name": ALICE}, {"id": id(BOB), "name": BOB, "state": 0},
        {"id": id(CAROL), "name": CAROL, "state": 0}, {"id": id(DAVE), "name": DAVE, "state": 0},
    ]});
    let mut suspended = without(&[]);
    suspended["users"].as_array_mut().unwrap().iter_mut().for_each(|user| user["state"] = json!("suspended"));
    // One of each kind.
    let mut mixed = without(&[BOB]);
    mixed["users"][1]["state"] = json!(0);
    mixed["users"][2]["state"] = json!(2);
    let suspicious = [json!({"users": [], "groups": []}), without(&[BOB, CAROL, DAVE]), deactivated, suspended, mixed];
    for directory in suspicious {
        write(&club, &directory);
        let problem = sync(&club, replica, "").refused(409, "suspicious-directory");
        assert!(text(&problem["detail"]).contains("of 4 active members"), "{problem}");
        club.by(BOB).at(replica).send("POST", "/api/users/sync?force=true", None).refused(403, "forbidden");
        // A start with it is refused the copy and nothing else.
        let other = club.start_another();
        club.by(BOB).at(other).get("/api/users/me").expect(200);
        assert_eq!(states(&club), before);
        assert_eq!(club.by(ALICE).get("/api/groups").expect(200).json(), groups);
    }

    // Half of the members are not more than half.
    write(&club, &without(&[CAROL, DAVE]));
    sync(&club, replica, "?force=false").expect(201);
    assert_eq!(states(&club), with_states([(ALICE, 1), (BOB, 1), (CAROL, 0), (DAVE, 0), (SUSAN, 2)]));
    write(&club, &without(&[ALICE, BOB, SUSAN]));
    sync(&club, replica, "").refused(409, "suspicious-directory");
    write(&club, &without(&[BOB, SUSAN]));
    sync(&club, replica, "?force=true").expect(201);
    assert_eq!(states(&club), with_states([(ALICE, 1), (BOB, 0), (CAROL, 1), (DAVE, 1), (SUSAN, 0)]));
}

#[rstest]
fn the_command_refuses_a_suspicious_directory_too(#[values(Sqlite, Postgres)] backend: Backend) {
    let mut club = Club::start(backend);
    start_with_file(&mut club, &without(&[]));
    write(&club, &json!({"users": []}));
    let file = club.folder().join("directory.json");
    let options = ["--directory-file", file.to_str().unwrap()];
    let before = states(&club);
    let (_, err, status) = on(&club, &[&["sync"], &options[..]].concat());
    assert_eq!(status, Some(1), "{err}");
    assert!(err.contains("4 of 4 active members") && err.contains("force"), "{err}");
    assert_eq!(states(&club), before);
    write(&club, &without(&[BOB, CAROL, DAVE]));
    let (_, err, status) = on(&club, &[&["sync", "--force"], &options[..]].concat());
    assert_eq!(status, Some(0), "{err}");
    assert_eq!(states(&club), with_states([(ALICE, 1), (BOB, 0), (CAROL, 0), (DAVE, 0), (SUSAN, 2)]));
}

/// A club with a provider and a directory that lists `newcomer` and these, and with the usual members, whom it does not
/// list.
fn listed_club(backend: Backend, issuer: &Issuer, more: &[Value], options: &[&str]) -> (Club, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("members.json");
    let newcomer = json!({"name": "newcomer", "displayName": "New Comer"});
    let users: Vec<_> = [newcomer].iter().chain(more).cloned().collect();
    std::fs::write(&file, json!({ "users": users }).to_string()).unwrap();
    let options = [&["--directory-file", file.to_str().unwrap()], options].concat();
    (start(backend, &issuer.options(), &options), folder)
}

#[test]
fn a_user_with_a_new_id_in_the_directory_signs_in_after_the_former_one_is_unlinked() {
    both(|backend| {
        let issuer = Issuer::start();
        let (club, folder) = listed_club(backend, &issuer, &[], &[]);
        issuer.is_now("subject-1", "newcomer");
        sign_in(&mut Browser::new(&club), &issuer).expect(302);
        let new_id = "0198c0de-0000-7000-8000-000000000077";
        let directory = json!({"users": [{"name": "newcomer", "id": new_id}]}).to_string();
        std::fs::write(folder.path().join("members.json"), directory).unwrap();
        sync(&club, 0, "?force=true").expect(201);

        let refused = sign_in(&mut Browser::new(&club), &issuer).refused(403, "not-a-member");
        let former = states(&club).into_iter().find(|(name, _)| name.starts_with("newcomer~")).unwrap().0;
        assert!(text(&refused["detail"]).contains(&format!("belongs to the user {former}, ")), "{refused}");
        let unlink = || on(&club, &["user", "unlink", &former]);
        assert_eq!(unlink().0, format!("{former} is no longer linked to an account\n"));
        assert_eq!(unlink().0, format!("{former} was not linked\n"));
        let mut browser = Browser::new(&club);
        sign_in(&mut browser, &issuer).expect(302);
        assert_eq!(browser.get("/api/users/me").expect(200).json()["userId"], new_id);
    });
}

#[test]
fn only_people_of_the_directory_sign_in() {
    both(|backend| {
        let issuer = Issuer::start();
        let suspended = json!({"name": "sleeper", "state": "suspended"});
        let (club, folder) = listed_club(backend, &issuer, &[suspended], &[]);
        let mut newcomer = Browser::new(&club);
        sign_in(&mut newcomer, &issuer).expect(302);
        newcomer.get("/api/users/me").expect(200);

        let refuse = |subject: &str, name: &str, code: &str| {
            issuer.is_now(subject, name);
            let mut browser = Browser::new(&club);
            sign_in(&mut browser, &issuer).refused(403, code);
            assert_eq!(browser.session(), None);
        };
        refuse("subject-2", "stranger", "not-a-member");
        assert!(!states(&club).iter().any(|(name, _)| name == "stranger"));
        let mut browser = Browser { accept: HTML, ..Browser::new(&club) };
        let page = sign_in(&mut browser, &issuer).expect(403).text();
        assert!(page.contains("Only members") && page.contains("Sign in again"), "{page}");
        // A user whom the directory does not list is none of its people.
        refuse("subject-3", BOB, "not-a-member");
        refuse("subject-4", "sleeper", "account-inactive");

        // Not listed any more.
        std::fs::write(folder.path().join("members.json"), r#"{"users": [{"name": "other"}]}"#).unwrap();
        sync(&club, 0, "").expect(201);
        newcomer.get("/api/users/me").refused(403, "account-inactive");
        refuse("subject-1", "newcomer", "not-a-member");
    });
}

#[test]
fn anyone_signs_in_where_the_options_say_so() {
    both(|backend| {
        let issuer = Issuer::start();
        let (club, _folder) = listed_club(backend, &issuer, &[], &["--sign-in", "anyone"]);
        let coming = event(&club, BOB, At::Place("x"), (1, 2));
        issuer.is_now("subject-2", "stranger");
        let mut browser = Browser::new(&club);
        sign_in(&mut browser, &issuer).expect(302);
        // Whom the directory never listed it does not deactivate.
        sync(&club, 0, "").expect(201);
        browser.get("/api/users/me").expect(200);
        // Like each active user, this one is invited to what is to come for everybody.
        let me = browser.get("/api/users/me").json()["userId"].clone();
        let attendees = browser.get(&format!("/api/events/{coming}")).expect(200).json()["attendees"].clone();
        assert!(attendees.as_array().unwrap().contains(&json!({"userId": me, "schedule": "pending"})), "{attendees}");
    });
}

#[test]
fn only_a_directory_has_people() {
    let key = "a key of more than thirty-two characters";
    let issuer = ["--oidc-issuer", "https://sso.example", "--oauth-client-id", "club", "--secret-key", key];
    let (out, status) = crate::commands::check(&[&issuer[..], &["--sign-in", "directory"]].concat(), &[]);
    assert!(out.starts_with("--sign-in directory needs --directory-file or --traq-url;"), "{out}");
    assert_eq!(status, Some(78));
    for policy in ["anyone", "invited"] {
        let (_, status) = crate::commands::check(&[&issuer[..], &["--sign-in", policy]].concat(), &[]);
        assert_eq!(status, Some(0));
    }
}

#[rstest]
fn a_command_suspends_whom_no_directory_lists(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (conn, now) = (&mut club.connect(), DbTimestamp(club.clock.now()));
    let bob = users::table.find(id(BOB));
    let set = |conn: &mut AnyConnection, suspended| suspension::set_suspended(conn, BOB, suspended, now);
    diesel::update(bob).set(users::in_directory.eq(true)).execute(conn).unwrap();
    assert_eq!(set(conn, true).unwrap_err().into_problem().status(), 403);
    diesel::update(bob).set((users::in_directory.eq(false), users::privileged.eq(true))).execute(conn).unwrap();
    let token = make_token(&club, BOB, "write");
    assert!(set(conn, true).unwrap() && !set(conn, true).unwrap());
    by_token(&club, &token).get("/api/users/me").refused(403, "account-inactive");
    let listed = club.by(ALICE).get(&format!("/api/users/{}", id(BOB))).expect(200).json();
    assert_eq!((&listed["state"], &listed["privileged"]), (&json!(2), &json!(false)));
    // What has ended stays so.
    assert!(set(conn, false).unwrap() && !set(conn, false).unwrap());
    by_token(&club, &token).get("/api/users/me").refused(401, "bad-credentials");
    let token = make_token(&club, CAROL, "read");
    suspension::end_access_of(conn, CAROL, now).unwrap();
    by_token(&club, &token).get("/api/users/me").refused(401, "bad-credentials");
    assert_eq!(suspension::end_access_of(conn, "nobody", now).unwrap_err().into_problem().status(), 404);
}

//! Users.

use crate::harness::Backend::{self, Postgres, Sqlite};
use diesel::prelude::*;
use portfolio_service::{
    schema::users,
    users::queries::{self, Selection},
};
use rstest::rstest;
use serde_json::{Value, json};
use service_kit::database::types::DbUuid;

use crate::{
    harness::{ALICE, BOB, CAROL, Club, DORA, SUSAN, id, real_name},
    objects::Objects,
    plans,
};

fn user(name: &str) -> String {
    format!("/api/v1/users/{}", id(name))
}

#[rstest]
fn the_list_is_ordered_by_name_and_has_only_active_users_by_default(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let names = |query: &str| -> Vec<String> {
        let users = club.anonymous().get(&format!("/api/v1/users{query}")).expect(200).json();
        users.as_array().unwrap().iter().map(|user| user["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(""), ["alice", "bob", "carol", "dave"]);
    assert_eq!(names("?includeSuspended=false"), ["alice", "bob", "carol", "dave"]);
    assert_eq!(names("?includeSuspended=true"), ["alice", "bob", "carol", "dave", "dora", "susan"]);
    assert_eq!(names("?limit=2"), ["alice", "bob"]);
    assert_eq!(names("?name=susan"), ["susan"]);
    assert_eq!(names("?name=dora&limit=1"), ["dora"]);
    assert_eq!(names("?name=Susan"), [""; 0]);
    let bad = |query: &str| club.anonymous().get(&format!("/api/v1/users{query}")).expect(400).pointers();
    assert_eq!(bad("?name=bob&includeSuspended=true"), ["name"]);
    assert_eq!(bad("?name=bob&includeSuspended=false"), ["name"]);
    assert_eq!(names("?includeSuspended=1"), names("?includeSuspended=TRUE"));
    assert_eq!(bad("?includeSuspended=yes"), ["includeSuspended"]);
    assert_eq!(bad("?limit=1001"), ["limit"]);
    assert_eq!(names("?name="), names(""));
    // A text that is not a sign-in name matches no user.
    for name in ["%00", "a%00b", "%F0%9F%8D%A3", "%FF", "bob%20", "BOB", "bob'--"] {
        assert_eq!(names(&format!("?name={name}")), [""; 0], "{name}");
    }
    let alice = club.by(SUSAN).get("/api/v1/users?name=alice").expect(200).json();
    assert_eq!(alice, json!([{"id": id(ALICE), "name": ALICE, "realName": ""}]));
}

#[rstest]
fn everybody_sees_a_user_in_any_state(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for (name, state) in [(BOB, 1), (SUSAN, 2), (DORA, 0)] {
        let expected = json!({
            "id": id(name), "name": name, "realName": "", "state": state, "bio": "", "accounts": []
        });
        for client in [club.anonymous(), club.by(BOB), club.by(ALICE)] {
            assert_eq!(client.get(&user(name)).expect(200).json(), expected);
        }
    }
    club.anonymous().get(&user("nobody")).refused(404, "not-found");
    assert_eq!(club.anonymous().get("/api/v1/users/x").expect(400).pointers(), ["userId"]);
    assert_eq!(
        club.anonymous().get("/api/v1/users/00000000-0000-0000-0000-000000000000").expect(400).pointers(),
        ["userId"]
    );
}

#[rstest]
fn me_is_who_the_proxy_says(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let me = club.by(BOB).get("/api/v1/users/me").expect(200).json();
    assert_eq!((&me["name"], &me["check"], &me["realName"]), (&json!(BOB), &json!(false), &json!("")));
    club.by(BOB).patch(&user(BOB), json!({"check": true})).expect(204);
    let me = club.by(BOB).get("/api/v1/users/me").expect(200).json();
    assert_eq!((&me["check"], &me["realName"]), (&json!(true), &json!(real_name(BOB))));
    club.anonymous().get("/api/v1/users/me").refused(401, "not-signed-in");
    club.by("nobody").get("/api/v1/users/me").refused(404, "not-found");
    club.by(SUSAN).get("/api/v1/users/me").refused(403, "account-inactive");
    club.by(DORA).get("/api/v1/users/me").refused(403, "account-inactive");
}

#[rstest]
fn a_real_name_is_shown_only_while_its_owner_publishes_it(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let shown = |club: &Club| -> Vec<Value> {
        let listed = club.by(CAROL).get("/api/v1/users?name=bob").json();
        vec![listed[0]["realName"].clone(), club.anonymous().get(&user(BOB)).json()["realName"].clone()]
    };
    assert_eq!(shown(&club), ["", ""]);
    club.by(BOB).patch(&user(BOB), json!({"check": true})).expect(204);
    assert_eq!(shown(&club), [real_name(BOB), real_name(BOB)]);
    club.by(BOB).patch(&user(BOB), json!({"check": false})).expect(204);
    assert_eq!(shown(&club), ["", ""]);
}

#[rstest]
fn a_user_is_changed_by_themself_and_by_admins(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let bio = "I draw.\r\n\t絵".repeat(20);
    club.by(BOB).patch(&user(BOB), json!({"bio": bio, "name": "robert", "state": 0})).expect(204);
    let bob = club.anonymous().get(&user(BOB)).json();
    assert_eq!((&bob["bio"], &bob["name"], &bob["state"]), (&json!(bio), &json!(BOB), &json!(1)), "as sent");
    club.by(BOB).patch(&user(BOB), json!({})).expect(204);
    club.by(BOB).patch(&user(BOB), json!({"bio": null, "check": null})).expect(204);
    assert_eq!(club.anonymous().get(&user(BOB)).json(), bob, "what is left out stays");
    club.by(ALICE).patch(&user(BOB), json!({"bio": ""})).expect(204);
    assert_eq!(club.anonymous().get(&user(BOB)).json()["bio"], "");

    let refused = club.by(CAROL).patch(&user(BOB), json!({"bio": "x"})).refused(403, "forbidden");
    assert_eq!(refused["detail"], "This needs the user themself, or an admin.");
    club.anonymous().patch(&user(BOB), json!({"bio": "x"})).refused(401, "not-signed-in");
    club.by("nobody").patch(&user(BOB), json!({"bio": "x"})).refused(403, "forbidden");
    club.by(SUSAN).patch(&user(SUSAN), json!({"bio": "x"})).refused(403, "account-inactive");
    club.by(CAROL).patch(&user("nobody"), json!({"bio": "x"})).refused(404, "not-found");
    club.by(ALICE).patch(&user("nobody"), json!({"bio": "x"})).refused(404, "not-found");
    assert_eq!(club.by(BOB).patch("/api/v1/users/x", json!({})).expect(400).pointers(), ["userId"]);
    let bad = json!({"bio": "あ".repeat(257), "check": "yes"});
    assert_eq!(club.by(BOB).patch(&user(BOB), bad).expect(400).pointers(), ["/bio", "/check"]);
    assert_eq!(club.by(BOB).patch(&user(BOB), json!({"bio": "\u{0}"})).expect(400).pointers(), ["/bio"]);
    club.by(BOB).patch(&user(BOB), json!({"bio": "あ".repeat(256)})).expect(204);
    club.by(BOB).header("content-type", "text/plain").send_bytes("PATCH", &user(BOB), b"{}".to_vec()).expect(415);
    club.by(BOB).patch(&user(BOB), json!({"bio": "x".repeat(2 << 20)})).expect(413);
}

#[rstest]
fn a_suspended_admin_has_no_rights(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    diesel::update(users::table.find(id(ALICE))).set(users::state.eq(2_i16)).execute(&mut club.connect()).unwrap();
    club.by(ALICE).patch(&user(BOB), json!({"bio": "x"})).refused(403, "account-inactive");
    club.by(ALICE).get(&user(BOB)).expect(200);
}

#[rstest]
fn ids_are_read_in_any_case(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let upper = format!("/api/v1/users/{}", id(BOB).to_string().to_uppercase());
    assert_eq!(club.anonymous().get(&upper).expect(200).json()["id"], json!(id(BOB)));
    assert_ne!(id(BOB), DbUuid::nil());
}

#[rstest]
fn queries_use_indexes(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut objects = Objects::new();
    objects.grow(&club, 2);
    plans::check_page(&club, |conn| {
        for page in plans::pages((String::new(), id(BOB))) {
            queries::list(conn, &Selection::All, &page).unwrap();
            queries::list(conn, &Selection::Active, &page).unwrap();
        }
    });
    plans::check(&club, |conn| {
        queries::get(conn, id(BOB)).unwrap();
        queries::id_by_name(conn, BOB).unwrap();
    });
}

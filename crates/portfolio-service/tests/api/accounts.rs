//! Accounts.

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;

use diesel::prelude::*;
use portfolio_service::schema::accounts as rows;
use serde_json::{Value, json};
use service_kit::database::types::DbUuid;

use crate::harness::{ALICE, BOB, CAROL, Club, SUSAN, id};

fn accounts(name: &str) -> String {
    format!("/api/v1/users/{}/accounts", id(name))
}

fn github(name: &str) -> Value {
    json!({"type": 5, "url": format!("https://github.com/{name}"), "displayName": name})
}

fn add(club: &Club, name: &str, body: Value) -> String {
    let account = club.by(name).post(&accounts(name), body).expect(201).json();
    format!("{}/{}", accounts(name), account["id"].as_str().unwrap())
}

#[rstest]
fn the_types_are_those_of_the_contract(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let types = club.anonymous().get("/api/v1/account-types").expect(200).json();
    let names: Vec<_> = types.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "homepage",
            "blog",
            "twitter",
            "facebook",
            "pixiv",
            "github",
            "qiita",
            "zenn",
            "atcoder",
            "soundcloud",
            "hackthebox",
            "ctftime",
            "bluesky",
            "mixi2"
        ]
    );
    let numbers: Vec<_> = types.as_array().unwrap().iter().map(|row| row["value"].as_i64().unwrap()).collect();
    assert_eq!(numbers, (0..14).collect::<Vec<_>>());
}

#[rstest]
fn an_account_is_added_listed_and_shown(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let blog = json!({"type": 1, "url": "https://blog.example/?a=b", "displayName": " Bob's 日記 ", "id": 5});
    let blog = add(&club, BOB, blog);
    let answer = club.by(BOB).post(&accounts(BOB), github("bob")).expect(201);
    let made = answer.json();
    assert_eq!((&made["type"], &made["url"]), (&json!(5), &json!("https://github.com/bob")));
    assert_eq!(club.anonymous().get(answer.header("location").unwrap()).expect(200).json(), made);
    let homepage = add(&club, BOB, json!({"type": 0, "url": "http://bob.example", "displayName": "Bob"}));
    let [homepage, blog] = [homepage, blog].map(|path| club.anonymous().get(&path).expect(200).json());
    assert_eq!(blog["displayName"], " Bob's 日記 ");
    let listed = club.anonymous().get(&accounts(BOB)).expect(200).json();
    assert_eq!(listed, json!([homepage, blog, made]), "by type");
    assert_eq!(club.anonymous().get(&format!("{}?limit=2", accounts(BOB))).json(), json!([homepage, blog]));
    let detail = club.anonymous().get(&format!("/api/v1/users/{}", id(BOB))).expect(200).json();
    assert_eq!(detail["accounts"], listed);
    assert_eq!(club.anonymous().get(&accounts(CAROL)).json(), json!([]));
    club.anonymous().get(&accounts("nobody")).refused(404, "not-found");
    assert_eq!(club.anonymous().get("/api/v1/users/x/accounts").expect(400).pointers(), ["userId"]);
    assert_eq!(club.anonymous().get(&format!("{}?LIMIT=2", accounts(BOB))).json(), json!([homepage, blog]));
    assert_eq!(club.anonymous().get(&format!("{}?limit=2&Limit=2", accounts(BOB))).expect(400).pointers(), ["limit"]);
    assert_eq!(club.anonymous().get(&format!("{}?limit=x", accounts(BOB))).expect(400).pointers(), ["limit"]);
}

#[rstest]
fn only_the_user_and_admins_add(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    club.anonymous().post(&accounts(BOB), github("bob")).refused(401, "not-signed-in");
    club.by(CAROL).post(&accounts(BOB), github("bob")).refused(403, "forbidden");
    club.by(SUSAN).post(&accounts(SUSAN), github("susan")).refused(403, "account-inactive");
    club.by(ALICE).post(&accounts("nobody"), github("nobody")).refused(404, "not-found");
    club.by(CAROL).post(&accounts("nobody"), github("nobody")).refused(404, "not-found");
    club.by(ALICE).post(&accounts(BOB), github("bob")).expect(201);
}

#[rstest]
fn bad_accounts_are_refused_with_every_violation(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let bad = |body: Value| club.by(BOB).post(&accounts(BOB), body).expect(400).pointers();
    assert_eq!(bad(json!({})), ["/displayName", "/type", "/url"]);
    assert_eq!(bad(json!({"type": 14, "url": 5, "displayName": " "})), ["/displayName", "/type", "/url"]);
    assert_eq!(bad(json!({"type": "5", "url": "https://github.com/bob", "displayName": "b"})), ["/type"]);
    assert_eq!(bad(json!({"type": 5, "url": "https://gitlab.com/bob", "displayName": "b"})), ["/url"]);
    assert_eq!(bad(json!({"type": 0, "url": "", "displayName": "b"})), ["/url"]);
    assert_eq!(bad(json!({"type": 0, "url": "javascript:alert(1)", "displayName": "b"})), ["/url"]);
    let long = json!({"type": 5, "url": "https://github.com/bob", "displayName": "x".repeat(257)});
    assert_eq!(bad(long), ["/displayName"]);
}

#[rstest]
fn a_user_has_one_account_of_a_type(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let first = add(&club, BOB, github("bob"));
    club.by(BOB).post(&accounts(BOB), github("robert")).refused(409, "second-account-of-type");
    add(&club, CAROL, github("bob"));
    let blog = add(&club, BOB, json!({"type": 1, "url": "https://github.com/bob", "displayName": "b"}));
    club.by(BOB).patch(&blog, json!({"type": 5})).refused(409, "second-account-of-type");
    club.by(BOB).delete(&first).expect(204);
    club.by(BOB).patch(&blog, json!({"type": 5})).expect(204);
}

#[rstest]
fn of_two_concurrent_accounts_of_a_type_one_is_added(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for round in 0..10 {
        let add = || club.by(BOB).post(&accounts(BOB), github("bob"));
        let mut answers = std::thread::scope(|scope| {
            let threads = [scope.spawn(add), scope.spawn(add)];
            threads.map(|thread| thread.join().unwrap())
        });
        answers.sort_by_key(|answer| answer.status);
        let [made, refused] = answers;
        refused.refused(409, "second-account-of-type");
        let id = made.expect(201).json()["id"].as_str().unwrap().to_owned();
        club.by(BOB).delete(&format!("{}/{id}", accounts(BOB))).expect(204);
        assert_eq!(club.anonymous().get(&accounts(BOB)).json(), json!([]), "round {round}");
    }
}

#[rstest]
fn of_two_concurrent_changes_to_one_type_one_succeeds(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for round in 0..20 {
        let add =
            |type_: i32| add(&club, BOB, json!({"type": type_, "url": "https://github.com/bob", "displayName": "b"}));
        let paths = [add(0), add(1)];
        let mut statuses = std::thread::scope(|scope| {
            let club = &club;
            let change = |path| scope.spawn(move || club.by(BOB).patch(path, json!({"type": 5})).status);
            [change(&paths[0]), change(&paths[1])].map(|thread| thread.join().unwrap())
        });
        statuses.sort_unstable();
        assert_eq!(statuses, [204, 409], "round {round}");
        for path in &paths {
            club.by(BOB).delete(path).expect(204);
        }
    }
}

#[rstest]
fn null_in_a_change_is_like_a_missing_field(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let path = add(&club, BOB, github("bob"));
    let before = club.anonymous().get(&path).json();
    club.by(BOB).patch(&path, json!({"type": null, "url": null, "displayName": null})).expect(204);
    assert_eq!(club.anonymous().get(&path).json(), before);
    let body = json!({"type": null, "url": null, "displayName": null});
    let missing = club.by(CAROL).post(&accounts(CAROL), body).expect(400).pointers();
    assert_eq!(missing, ["/displayName", "/type", "/url"]);
}

#[rstest]
fn a_change_checks_type_and_address_together(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let path = add(&club, BOB, github("bob"));
    let shown = || club.anonymous().get(&path).expect(200).json();
    let before = shown();
    club.by(BOB).patch(&path, json!({})).expect(204);
    assert_eq!(shown(), before);
    assert_eq!(club.by(BOB).patch(&path, json!({"type": 8})).expect(400).pointers(), ["/type"]);
    assert_eq!(club.by(BOB).patch(&path, json!({"url": "https://x.com/bob"})).expect(400).pointers(), ["/url"]);
    assert_eq!(club.by(BOB).patch(&path, json!({"displayName": ""})).expect(400).pointers(), ["/displayName"]);
    assert_eq!(shown(), before);
    club.by(BOB).patch(&path, json!({"type": 2, "url": "https://x.com/bob"})).expect(204);
    club.by(ALICE).patch(&path, json!({"displayName": "Bobby"})).expect(204);
    let expected = json!({
        "id": before["id"], "type": 2, "url": "https://x.com/bob", "displayName": "Bobby"
    });
    assert_eq!(shown(), expected);
    club.by(CAROL).patch(&path, json!({"displayName": "x"})).refused(403, "forbidden");
    club.anonymous().patch(&path, json!({"displayName": "x"})).refused(401, "not-signed-in");
}

#[rstest]
fn what_an_import_left_keeps_nobody_from_changing_the_rest(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let [first, further] = [
        add(&club, BOB, github("bob")),
        add(&club, BOB, json!({"type": 0, "url": "https://b.example", "displayName": "b"})),
    ];
    let of = |path: &str| DbUuid(path.rsplit_once('/').unwrap().1.parse().unwrap());
    // As an import leaves them: a second account of a type, and an address of another site.
    diesel::update(rows::table.find(of(&further)))
        .set((rows::type_.eq(5), rows::further.eq(true), rows::url.eq("https://gitlab.com/bob")))
        .execute(&mut club.connect())
        .unwrap();
    club.by(BOB).patch(&further, json!({"displayName": "Bobby"})).expect(204);
    let all = json!({"type": 5, "url": "https://gitlab.com/bob", "displayName": "Bob"});
    club.by(BOB).patch(&further, all).expect(204);
    assert_eq!(club.anonymous().get(&further).json()["displayName"], "Bob");
    let other = json!({"url": "https://gitlab.com/robert"});
    assert_eq!(club.by(BOB).patch(&further, other).expect(400).pointers(), ["/url"]);
    assert_eq!(club.by(BOB).patch(&further, json!({"type": 8})).expect(400).pointers(), ["/type"]);
    // It counts like the first, after which it is the only one.
    club.by(BOB).delete(&first).expect(204);
    let blog = add(&club, BOB, json!({"type": 1, "url": "https://github.com/bob", "displayName": "b"}));
    club.by(BOB).patch(&blog, json!({"type": 5})).refused(409, "second-account-of-type");
    club.by(BOB).delete(&further).expect(204);
    club.by(BOB).patch(&blog, json!({"type": 5})).expect(204);
}

#[rstest]
fn concurrent_changes_of_type_and_address_leave_a_valid_account(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for _ in 0..20 {
        let path = add(&club, BOB, json!({"type": 0, "url": "https://github.com/bob", "displayName": "b"}));
        std::thread::scope(|scope| {
            scope.spawn(|| club.by(BOB).patch(&path, json!({"type": 5})));
            scope.spawn(|| club.by(BOB).patch(&path, json!({"url": "https://bob.example"})));
        });
        let shown = club.anonymous().get(&path).json();
        assert!(shown["type"] == 0 || shown["url"] == "https://github.com/bob", "{shown}");
        club.by(BOB).delete(&path).expect(204);
    }
}

#[rstest]
fn an_account_is_deleted(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let path = add(&club, BOB, github("bob"));
    club.anonymous().delete(&path).refused(401, "not-signed-in");
    club.by(CAROL).delete(&path).refused(403, "forbidden");
    club.by(BOB).delete(&path).expect(204);
    for method in ["GET", "DELETE"] {
        club.by(BOB).send(method, &path, None).refused(404, "not-found");
    }
    club.by(BOB).patch(&path, json!({})).refused(404, "not-found");
    club.by(ALICE).delete(&add(&club, BOB, github("bob"))).expect(204);
}

#[rstest]
fn an_account_belongs_to_its_user(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let path = add(&club, BOB, github("bob"));
    let others = path.replace(&id(BOB).to_string(), &id(CAROL).to_string());
    for client in [club.anonymous(), club.by(CAROL), club.by(ALICE)] {
        client.get(&others).refused(404, "not-found");
    }
    club.by(CAROL).patch(&others, json!({"displayName": "x"})).refused(404, "not-found");
    club.by(ALICE).delete(&others).refused(404, "not-found");
    club.anonymous().get(&format!("{}/{}", accounts(BOB), DbUuid::new())).refused(404, "not-found");
    assert_eq!(club.anonymous().get(&format!("{}/x", accounts(BOB))).expect(400).pointers(), ["accountId"]);
}

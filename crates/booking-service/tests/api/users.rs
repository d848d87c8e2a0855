//! Users: the list, privileges, icons. The tests of the sync are in `sync`.

use crate::harness::Backend::{self, Postgres, Sqlite};
use booking_service::{
    auth::{ApiToken, TOKEN_PREFIX},
    schema::{api_tokens, users},
    users::queries,
};
use diesel::prelude::*;
use rstest::rstest;
use serde_json::json;
use service_kit::database::types::{DbTimestamp, DbUuid};

use crate::{
    harness::{ALICE, BOB, CAROL, Club, SUSAN, id},
    plans,
};

#[rstest]
fn the_list_is_ordered_by_name_and_leaves_suspended_users_out_by_default(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let names = |path: &str| -> Vec<String> {
        let users = club.by(BOB).get(path).expect(200).json();
        users.as_array().unwrap().iter().map(|user| user["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("/api/users"), ["alice", "bob", "carol", "dave"]);
    assert_eq!(names("/api/users?include-suspended=true"), ["alice", "bob", "carol", "dave", "susan"]);
    for (value, expected) in [("True", 5), ("1", 5), ("FALSE", 4), ("0", 4), ("", 4)] {
        assert_eq!(names(&format!("/api/users?include-suspended={value}")).len(), expected, "{value}");
    }
    assert_eq!(club.by(BOB).get("/api/users?include-suspended=yes").expect(400).pointers(), ["include-suspended"]);
}

#[rstest]
fn everything_needs_sign_in(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    club.anonymous().get("/api/users").refused(401, "not-signed-in");
    club.anonymous().header("cookie", "session=wrong").get("/api/users/me").refused(401, "bad-credentials");
    club.by(SUSAN).get("/api/users/me").refused(403, "account-inactive");
    assert_eq!(club.by(ALICE).get("/api/users/me").expect(200).json()["privileged"], true);
    club.by(ALICE).get("/api/nowhere").refused(404, "not-found");
    assert_eq!(club.by(ALICE).delete("/api/users").expect(405).header("allow"), Some("GET, HEAD"));
}

#[rstest]
fn a_user_without_an_icon_gets_a_built_in_one(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let address = club.by(BOB).get("/api/users/me").json()["icon"].as_str().unwrap().to_owned();
    let path = address.strip_prefix("http://127.0.0.1:0").expect(&address);
    assert_eq!(path, "/icons/bob.svg");
    let icon = club.anonymous().get(path).expect(200);
    assert_eq!(icon.header("content-type"), Some("image/svg+xml"));
    assert_eq!(icon.header("cache-control"), Some("public, max-age=86400"));
    assert!(icon.text().contains(">B</text>"), "{}", icon.text());
    assert_eq!(club.anonymous().get(path).text(), icon.text());
    let odd = club.anonymous().get("/icons/%3Cscript%3E%2F%E4%BA%94.svg").expect(200);
    assert!(odd.text().contains(">S</text>"), "{}", odd.text());
    assert_eq!(club.anonymous().send("POST", path, None).expect(405).header("allow"), Some("GET, HEAD"));
    club.anonymous().get("/icons/bob.png").refused(404, "not-found");
}

#[rstest]
fn the_privilege_is_granted_and_revoked(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (bob, carol) = (privileged(BOB), privileged(CAROL));
    club.anonymous().send("PATCH", &bob, None).refused(401, "not-signed-in");
    club.by(BOB).send("PATCH", &bob, None).refused(403, "forbidden");
    let nobody = format!("/api/users/{}/privileged", DbUuid::new());
    club.by(ALICE).send("PATCH", &nobody, None).refused(404, "not-found");
    let nil = format!("/api/users/{}/privileged", DbUuid::nil());
    assert_eq!(club.by(ALICE).send("PATCH", &nil, None).expect(400).pointers(), ["userID"]);
    assert_eq!(club.by(ALICE).patch(&bob, json!({"privileged": 1})).expect(400).pointers(), ["/privileged"]);
    assert_eq!(club.by(ALICE).patch(&bob, json!({})).expect(400).pointers(), ["/privileged"]);
    club.by(ALICE).header("content-type", "text/plain").send_bytes("PATCH", &bob, b"{}".to_vec()).expect(415);
    assert!(!is_privileged(&club, BOB));

    for _ in 0..2 {
        club.by(ALICE).send("PATCH", &bob, None).expect(204);
        assert!(is_privileged(&club, BOB));
    }
    club.by(ALICE).patch(&bob, json!({"privileged": false})).expect(204);
    // Some clients send this instead of no body.
    club.by(ALICE).patch(&bob, json!(null)).expect(204);
    assert!(is_privileged(&club, BOB));
    club.by(BOB).patch(&carol, json!({"privileged": true})).expect(204);
    for _ in 0..2 {
        club.by(CAROL).patch(&bob, json!({"privileged": false})).expect(204);
        assert!(!is_privileged(&club, BOB));
    }
    club.by(BOB).patch(&carol, json!({"privileged": false})).refused(403, "forbidden");
}

#[rstest]
fn the_last_privileged_user_stays(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    club.by(ALICE).patch(&privileged(ALICE), json!({"privileged": false})).refused(409, "last-privileged-user");
    // A suspended privileged user does not count.
    club.by(ALICE).send("PATCH", &privileged(SUSAN), None).expect(204);
    club.by(ALICE).patch(&privileged(ALICE), json!({"privileged": false})).refused(409, "last-privileged-user");
    club.by(ALICE).patch(&privileged(SUSAN), json!({"privileged": false})).expect(204);
    club.by(ALICE).send("PATCH", &privileged(BOB), None).expect(204);
    club.by(ALICE).patch(&privileged(ALICE), json!({"privileged": false})).expect(204);
    assert!(!is_privileged(&club, ALICE));
}

#[rstest]
fn of_two_users_who_revoke_each_other_one_succeeds(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (conn, now) = (&mut club.connect(), DbTimestamp(club.clock.now()));
    for _ in 0..20 {
        for name in [ALICE, BOB] {
            queries::grant_privilege(conn, name, now).unwrap();
        }
        let take = |who: &'static str, from: &'static str| {
            let club = &club;
            move || club.by(who).patch(&privileged(from), json!({"privileged": false})).status
        };
        let mut statuses: Vec<_> = std::thread::scope(|scope| {
            [scope.spawn(take(ALICE, BOB)), scope.spawn(take(BOB, ALICE))].map(|run| run.join().unwrap()).into()
        });
        statuses.sort_unstable();
        // The second request is refused because its caller is no longer privileged, or because it would revoke the last
        // privilege.
        assert!(matches!(statuses[..], [204, 403 | 409]), "{statuses:?}");
        let left: i64 = users::table.filter(users::privileged.eq(true)).count().get_result(conn).unwrap();
        assert_eq!(left, 1);
    }
}

#[rstest]
fn a_read_only_token_cannot_grant_the_privilege(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let token = ApiToken::generate(TOKEN_PREFIX).unwrap();
    diesel::insert_into(api_tokens::table)
        .values((
            api_tokens::id.eq(DbUuid::new()),
            api_tokens::token_hash.eq(token.hash()),
            api_tokens::user_id.eq(id(ALICE)),
            api_tokens::name.eq("test"),
            api_tokens::scope.eq("read"),
            api_tokens::created_at.eq(DbTimestamp(club.clock.now())),
        ))
        .execute(&mut club.connect())
        .unwrap();
    let reader = club.anonymous().header("authorization", &format!("Bearer {}", token.reveal()));
    reader.get("/api/users/me").expect(200);
    reader.send("PATCH", &privileged(BOB), None).refused(403, "insufficient-scope");
    reader.send("POST", "/api/users/sync", None).refused(403, "insufficient-scope");
}

#[rstest]
fn the_command_line_grants_by_name(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (conn, now) = (&mut club.connect(), DbTimestamp(club.clock.now()));
    queries::grant_privilege(conn, BOB, now).unwrap();
    assert!(is_privileged(&club, BOB));
    assert_eq!(queries::grant_privilege(conn, "nobody", now).unwrap_err().into_problem().status(), 404);
}

fn privileged(name: &str) -> String {
    format!("/api/users/{}/privileged", id(name))
}

fn is_privileged(club: &Club, name: &str) -> bool {
    let users = club.by(CAROL).get("/api/users").expect(200).json();
    users.as_array().unwrap().iter().find(|user| user["name"] == name).unwrap()["privileged"] == true
}

#[rstest]
fn pages_are_not_sorted_out_of_whole_lists(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for all in [true, false] {
        for page in plans::pages(("alice".to_owned(), id(BOB))) {
            plans::check_page(&club, |conn| {
                queries::list(conn, all, &page).unwrap();
            });
        }
    }
}

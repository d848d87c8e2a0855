//! API tokens.

use crate::harness::Backend::{self, Postgres, Sqlite};
use booking_service::{
    auth::Scope,
    schema::{api_tokens, users},
    sign_in::tokens,
};
use chrono::TimeDelta;
use diesel::prelude::*;
use rstest::rstest;
use serde_json::{Value, json};
use service_kit::{
    credentials,
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
};

use crate::harness::{ALICE, BOB, CAROL, Client, Club, DAVE, SUSAN, id};

/// Creates a token of a member.
pub fn make_token(club: &Club, member: &str, scope: &str) -> String {
    let made = club.by(member).post("/api/users/me/tokens", json!({"name": "made", "scope": scope})).expect(201);
    made.json()["token"].as_str().unwrap().to_owned()
}

/// A request with a token.
pub fn by_token<'club>(club: &'club Club, token: &str) -> Client<'club> {
    club.anonymous().header("authorization", &format!("Bearer {token}"))
}

fn token_names(club: &Club, member: &str) -> Vec<String> {
    let list = club.by(member).get("/api/users/me/tokens").expect(200).json();
    list.as_array().unwrap().iter().map(|token| token["name"].as_str().unwrap().to_owned()).collect()
}

#[rstest]
fn a_token_is_shown_once_and_kept_as_a_hash(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let expires = "2999-01-01T00:00:00.5Z";
    let body = json!({"name": "ボット ", "scope": "read", "expiresAt": expires, "unknown": 1});
    let made = club.by(BOB).post("/api/users/me/tokens", body).expect(201);
    assert_eq!(made.header("cache-control"), Some("no-store"));
    let made = made.json();
    let token = made["token"].as_str().unwrap();
    assert!(token.starts_with("clubbooking_"), "{made}");
    assert_eq!(made["expiresAt"], "2999-01-01T09:00:00.500+09:00");
    assert_eq!((&made["name"], &made["scope"]), (&json!("ボット "), &json!("read")));
    assert_eq!(by_token(&club, token).get("/api/users/me").expect(200).json()["name"], BOB);
    let list = club.by(BOB).get("/api/users/me/tokens").expect(200);
    assert!(!list.text().contains(token));
    let mut expected = made.clone();
    expected.as_object_mut().unwrap().remove("token");
    let mut listed = list.json();
    // The last use may or may not be stored yet.
    listed[0].as_object_mut().unwrap().remove("lastUsedAt");
    assert_eq!(listed, json!([expected]));
    let hash: Vec<u8> = api_tokens::table.select(api_tokens::token_hash).first(&mut club.connect()).unwrap();
    assert_eq!(hash, credentials::hash(token));
    // A token that does not expire has no expiresAt.
    let endless = club.by(CAROL).post("/api/users/me/tokens", json!({"name": "x", "scope": "write"})).expect(201);
    assert_eq!(endless.json().get("expiresAt"), None);
    assert_eq!(club.by(CAROL).get("/api/users/me/tokens").json()[0].get("expiresAt"), None);
}

#[rstest]
fn what_a_token_may_do_depends_on_its_scope(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (read, write) = (make_token(&club, BOB, "read"), make_token(&club, BOB, "write"));
    by_token(&club, &read).put("/api/users/me/ical", json!({})).refused(403, "insufficient-scope");
    by_token(&club, &write).put("/api/users/me/ical", json!({})).expect(200);
    for token in [&read, &write] {
        let list = by_token(&club, token).get("/api/users/me/tokens").expect(200).json();
        assert_eq!(list.as_array().unwrap().len(), 2);
    }
}

#[rstest]
fn a_token_cannot_make_or_revoke_tokens(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let token = make_token(&club, ALICE, "write");
    let body = json!({"name": "x", "scope": "read"});
    by_token(&club, &token).post("/api/users/me/tokens", body.clone()).refused(403, "forbidden");
    let own = club.by(ALICE).get("/api/users/me/tokens").json()[0]["tokenId"].as_str().unwrap().to_owned();
    by_token(&club, &token).delete(&format!("/api/users/me/tokens/{own}")).refused(403, "forbidden");
    club.anonymous().post("/api/users/me/tokens", body).refused(401, "not-signed-in");
    club.anonymous().get("/api/users/me/tokens").refused(401, "not-signed-in");
    club.by(SUSAN).get("/api/users/me/tokens").refused(403, "account-inactive");
    assert_eq!(token_names(&club, ALICE), ["made"]);
}

#[rstest]
fn an_invalid_body_is_refused_with_all_violations(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let post = |body: Value| club.by(BOB).post("/api/users/me/tokens", body).expect(400).pointers();
    assert_eq!(post(json!({})), ["/name", "/scope"]);
    let all_wrong = json!({"name": " ", "scope": "admin", "expiresAt": "soon"});
    assert_eq!(post(all_wrong), ["/expiresAt", "/name", "/scope"]);
    assert_eq!(post(json!({"name": "a".repeat(65), "scope": "read"})), ["/name"]);
    assert_eq!(post(json!({"name": "a\u{0}", "scope": 5})), ["/name", "/scope"]);
    for expires in [club.clock.now(), club.clock.now().plus(-TimeDelta::days(1))] {
        let body = json!({"name": "a", "scope": "read", "expiresAt": expires});
        assert_eq!(post(body), ["/expiresAt"]);
    }
    club.by(BOB).post("/api/users/me/tokens", json!({"name": "名".repeat(64), "scope": "read"})).expect(201);
    assert_eq!(token_names(&club, BOB).len(), 1);
}

#[rstest]
fn tokens_are_listed_oldest_first_and_revoked_for_good(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for name in ["b", "a", "c"] {
        club.by(BOB).post("/api/users/me/tokens", json!({"name": name, "scope": "read"})).expect(201);
    }
    let carols = make_token(&club, CAROL, "read");
    assert_eq!(token_names(&club, BOB), ["b", "a", "c"]);
    let list = club.by(BOB).get("/api/users/me/tokens").json();
    let path = format!("/api/users/me/tokens/{}", list[1]["tokenId"].as_str().unwrap());
    club.by(CAROL).delete(&path).refused(404, "not-found");
    club.by(BOB).delete(&path.to_uppercase().replace("/API/USERS/ME/TOKENS", "/api/users/me/tokens")).expect(204);
    club.by(BOB).delete(&path).refused(404, "not-found");
    club.by(BOB).delete(&format!("/api/users/me/tokens/{}", DbUuid::new())).refused(404, "not-found");
    assert_eq!(club.by(BOB).delete("/api/users/me/tokens/x").expect(400).pointers(), ["tokenID"]);
    assert_eq!(token_names(&club, BOB), ["b", "c"]);
    by_token(&club, &carols).get("/api/users/me").expect(200);
    let id = club.by(CAROL).get("/api/users/me/tokens").json()[0]["tokenId"].as_str().unwrap().to_owned();
    club.by(CAROL).delete(&format!("/api/users/me/tokens/{id}")).expect(204);
    by_token(&club, &carols).get("/api/users/me").refused(401, "bad-credentials");
}

#[rstest]
fn a_token_ends_when_it_expires_or_its_owner_is_suspended(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let soon = club.clock.now().plus(TimeDelta::hours(1));
    let body = json!({"name": "a", "scope": "read", "expiresAt": soon});
    let short = club.by(BOB).post("/api/users/me/tokens", body).json()["token"].as_str().unwrap().to_owned();
    let long = make_token(&club, BOB, "read");
    by_token(&club, &short).get("/api/users/me").expect(200);
    club.clock.advance(TimeDelta::hours(1));
    by_token(&club, &short).get("/api/users/me").refused(401, "bad-credentials");
    by_token(&club, &long).get("/api/users/me").expect(200);
    let bob = users::table.find(id(BOB));
    diesel::update(bob).set(users::state.eq(2_i16)).execute(&mut club.connect()).unwrap();
    by_token(&club, &long).get("/api/users/me").refused(403, "account-inactive");
    for wrong in ["clubbooking_x_y", "", "x", &long[..long.len() - 1]] {
        by_token(&club, wrong).get("/api/users/me").refused(401, "bad-credentials");
    }
    club.anonymous().header("authorization", "Basic eDp5").get("/api/users/me").refused(401, "bad-credentials");
}

#[rstest]
fn the_command_line_makes_lists_and_revokes(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (conn, now) = (&mut club.connect(), club.clock.now());
    let until = Some(now.plus(TimeDelta::days(1)));
    let token = tokens::create(conn, Some(BOB), "cli", Scope::Write, until, now).unwrap();
    tokens::create(conn, Some(ALICE), "other", Scope::Read, None, now).unwrap();
    by_token(&club, token.reveal()).put("/api/users/me/ical", json!({})).expect(200);
    let status = |error: service_kit::error::Error| error.into_problem().status();
    assert_eq!(status(tokens::create(conn, Some("nobody"), "x", Scope::Read, None, now).unwrap_err()), 404);
    assert_eq!(status(tokens::create(conn, Some(BOB), " ", Scope::Read, None, now).unwrap_err()), 400);
    assert_eq!(status(tokens::create(conn, Some(BOB), "x", Scope::Read, Some(now), now).unwrap_err()), 400);
    assert_eq!(status(tokens::list(conn, Some("nobody")).unwrap_err()), 404);
    let all = tokens::list(conn, None).unwrap();
    assert_eq!(all.iter().map(|row| row.user_name.as_deref()).collect::<Vec<_>>(), [Some(BOB), Some(ALICE)]);
    let bobs = tokens::list(conn, Some(BOB)).unwrap();
    assert_eq!((bobs.len(), bobs[0].name.as_str(), bobs[0].expires_at), (1, "cli", until.map(DbTimestamp)));
    tokens::revoke(conn, bobs[0].id.0, now).unwrap();
    assert_eq!(status(tokens::revoke(conn, bobs[0].id.0, now).unwrap_err()), 404);
    assert_eq!(status(tokens::revoke(conn, DbUuid::new().0, now).unwrap_err()), 404);
    by_token(&club, token.reveal()).get("/api/users/me").refused(401, "bad-credentials");
}

#[rstest]
fn a_token_of_the_club_reads_what_every_member_may_read(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (conn, now) = (&mut club.connect(), club.clock.now());
    let make = |conn: &mut AnyConnection, scope| tokens::create(conn, None, "portfolio", scope, None, now);
    let token = make(conn, Scope::Read).unwrap();
    for scope in [Scope::Write, Scope::Board] {
        assert_eq!(make(conn, scope).unwrap_err().into_problem().status(), 400);
    }
    let by_club = || by_token(&club, token.reveal());
    for list in ["/api/users", "/api/groups", "/api/rooms", "/api/events", "/api/activity/events"] {
        assert_eq!(by_club().get(list).expect(200).json(), club.by(DAVE).get(list).expect(200).json(), "{list}");
    }
    // It is nobody, and no operation fails because of that.
    let document = club.anonymous().get("/openapi.json").expect(200).json();
    let paths = document["paths"].as_object().unwrap();
    let mut found = Vec::new();
    for path in paths.iter().filter(|(path, operations)| !path.contains('{') && operations.get("get").is_some()) {
        let answer = by_club().get(path.0);
        let is_personal = path.0.starts_with("/api/users/me");
        assert!(
            if is_personal { answer.status == 403 } else { matches!(answer.status, 200 | 400 | 403) },
            "{path:?}: {}",
            answer.text()
        );
        found.push(answer.status);
    }
    assert!(found.len() > 15, "{found:?}");
    by_club().post("/api/groups", json!({})).refused(403, "insufficient-scope");
    for page in ["/me", "/webhooks"] {
        by_club().get(page).expect(403);
    }
    let row = tokens::list(conn, None).unwrap().remove(0);
    assert_eq!((row.user_name, row.name.as_str()), (None, "portfolio"));
    tokens::revoke(conn, row.id.0, now).unwrap();
    by_club().get("/api/users").refused(401, "bad-credentials");
}

#[rstest]
fn a_user_has_at_most_50_tokens(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let path = "/api/users/me/tokens";
    let token = json!({"name": "x", "scope": "read"});
    let soon = club.clock.now().plus(TimeDelta::hours(1));
    let short = json!({"name": "x", "scope": "read", "expiresAt": soon});
    club.by(BOB).post(path, short).expect(201);
    (1..48).for_each(|_| {
        club.by(BOB).post(path, token.clone()).expect(201);
    });
    // Two are left. Of several requests at once, two succeed.
    let statuses = std::thread::scope(|scope| {
        let send = || club.by(BOB).post(path, token.clone()).status;
        let running: Vec<_> = (0..6).map(|_| scope.spawn(send)).collect();
        let mut statuses: Vec<_> = running.into_iter().map(|thread| thread.join().unwrap()).collect();
        statuses.sort_unstable();
        statuses
    });
    assert_eq!(statuses, [201, 201, 409, 409, 409, 409]);
    club.by(BOB).post(path, token.clone()).refused(409, "too-many-tokens");
    let error = tokens::create(&mut club.connect(), Some(BOB), "x", Scope::Read, None, club.clock.now()).unwrap_err();
    assert_eq!(error.into_problem().status(), 409);
    // The limit is for each user.
    club.by(CAROL).post(path, token.clone()).expect(201);
    // A token that has been revoked or has expired does not count.
    let id = club.by(BOB).get(path).json()[5]["tokenId"].as_str().unwrap().to_owned();
    club.by(BOB).delete(&format!("{path}/{id}")).expect(204);
    club.by(BOB).post(path, token.clone()).expect(201);
    club.by(BOB).post(path, token.clone()).refused(409, "too-many-tokens");
    club.clock.advance(TimeDelta::hours(1));
    club.by(BOB).post(path, token.clone()).expect(201);
    club.by(BOB).post(path, token).refused(409, "too-many-tokens");
}

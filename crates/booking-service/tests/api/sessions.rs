//! Sessions: listed, ended, idle; and when they and tokens were last used.

use crate::harness::Backend::{self, Postgres, Sqlite};
use booking_service::{
    schema::{api_tokens, sessions},
    sign_in::tokens,
};
use chrono::TimeDelta;
use club_sign_in::{identities, sessions as of_users};
use diesel::{connection::SimpleConnection, prelude::*};
use rstest::rstest;
use serde_json::Value;
use service_kit::database::{
    AnyConnection,
    types::{DbTimestamp, DbUuid},
};

use crate::{
    builders::each,
    harness::{BOB, CAROL, Club, id},
    plans,
    process::{Process, until},
    sign_in::Browser,
    tokens::{by_token, make_token},
};

const PATH: &str = "/api/users/me/sessions";

/// The id of a browser's session.
fn current(browser: &Browser<'_>) -> String {
    let listed = browser.clone().get(PATH).expect(200).json();
    let mut current = listed.as_array().unwrap().iter().filter(|session| session["current"] == true);
    let id = current.next().unwrap()["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(current.next(), None, "{listed}");
    id
}

fn signed_in<'club>(club: &'club Club, member: &str) -> Browser<'club> {
    let mut browser = Browser::new(club);
    browser.sign_in(member);
    browser
}

/// The stored last use of a session.
fn last_use(club: &Club, session: &str) -> DbTimestamp {
    let session = sessions::table.find(DbUuid(session.parse().unwrap()));
    session.select(sessions::last_used_at).first(&mut club.connect()).unwrap()
}

/// The stored last use of Bob's only token.
fn token_last_use(club: &Club) -> Option<DbTimestamp> {
    api_tokens::table.select(api_tokens::last_used_at).first(&mut club.connect()).unwrap()
}

/// A connection that blocks all other writes to the tokens until it commits.
fn block_writes(club: &Club) -> AnyConnection {
    let mut conn = club.connect();
    let begin = match conn {
        AnyConnection::Sqlite(_) => "BEGIN IMMEDIATE",
        AnyConnection::Postgresql(_) => "BEGIN; UPDATE api_tokens SET name = name",
    };
    conn.batch_execute(begin).unwrap();
    conn
}

/// Uses a session, and waits until the use is stored.
fn use_and_wait(club: &Club, browser: &Browser<'_>, session: &str) {
    let before = last_use(club, session);
    assert_eq!(browser.who().as_deref(), Some(BOB));
    until("the use is stored", || last_use(club, session) > before);
}

diesel::table! {
    writes (one) { one -> Integer, }
}

/// Creates a trigger that counts the writes of a token's last use.
fn count_writes(club: &Club) {
    let mut conn = club.connect();
    let count = match &conn {
        AnyConnection::Sqlite(_) => "BEGIN INSERT INTO writes VALUES (1); END",
        AnyConnection::Postgresql(_) => "FOR EACH ROW EXECUTE FUNCTION count_write()",
    };
    if let AnyConnection::Postgresql(conn) = &mut conn {
        let function = "CREATE FUNCTION count_write() RETURNS trigger LANGUAGE plpgsql \
                        AS 'BEGIN INSERT INTO writes VALUES (1); RETURN NEW; END'";
        conn.batch_execute(function).unwrap();
    }
    let trigger = format!(
        "CREATE TABLE writes (one INTEGER); CREATE TRIGGER count AFTER UPDATE OF last_used_at ON api_tokens {count}"
    );
    conn.batch_execute(&trigger).unwrap();
}

fn count_of_writes(club: &Club) -> i64 {
    writes::table.count().get_result(&mut club.connect()).unwrap()
}

#[rstest]
fn own_sessions_are_listed_newest_first(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (one, two, carols) = (signed_in(&club, BOB), signed_in(&club, BOB), signed_in(&club, CAROL));
    let (first, second) = (current(&one), current(&two));
    let listed = one.clone().get(PATH).expect(200).json();
    assert_eq!(each(&listed, "sessionId")[..2], [second, first.clone()]);
    // The third one is the session that every member of the tests has.
    assert_eq!(listed.as_array().unwrap().len(), 3);
    assert!(!each(&listed, "sessionId").contains(&current(&carols)));
    let mine = listed.as_array().unwrap().iter().find(|session| session["sessionId"] == *first).unwrap();
    assert_eq!(mine["createdAt"], mine["lastUsedAt"]);
    let at = |field: &str| chrono::DateTime::parse_from_rfc3339(mine[field].as_str().unwrap()).unwrap();
    assert_eq!(at("expiresAt") - at("createdAt"), TimeDelta::days(30));
    assert!(mine["createdAt"].as_str().unwrap().ends_with("+09:00"), "{mine}");
    // Sessions with equal times are ordered by id.
    diesel::update(sessions::table)
        .set(sessions::created_at.eq(DbTimestamp(club.clock.now())))
        .execute(&mut club.connect())
        .unwrap();
    let ids = each(&one.clone().get(PATH).expect(200).json(), "sessionId");
    assert!(ids.is_sorted() && ids.len() == 3, "{ids:?}");
}

#[rstest]
fn a_session_is_ended_from_another(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (mut here, there, carols) = (signed_in(&club, BOB), signed_in(&club, BOB), signed_in(&club, CAROL));
    let path = |browser: &Browser<'_>| format!("{PATH}/{}", current(browser));
    let (own, other, foreign) = (path(&here), path(&there), path(&carols));
    let ended = here.send("DELETE", &other).expect(204);
    assert_eq!(ended.header("set-cookie"), None);
    there.clone().get("/api/users/me").refused(401, "bad-credentials");
    for gone in [other, foreign, format!("{PATH}/{}", DbUuid::new())] {
        here.send("DELETE", &gone).refused(404, "not-found");
    }
    assert_eq!(carols.who().as_deref(), Some(CAROL));
    assert_eq!(here.send("DELETE", &format!("{PATH}/x")).expect(400).pointers(), ["sessionID"]);
    // Ending the own session is a sign-out.
    let before = here.clone();
    let cookie = here.send("DELETE", &own).expect(204).header("set-cookie").unwrap().to_owned();
    assert!(cookie.starts_with("session=;") && cookie.contains("Max-Age=0"), "{cookie}");
    assert_eq!((here.session(), before.who()), (None, None));
    before.clone().send("DELETE", &own).refused(401, "bad-credentials");
}

#[rstest]
fn a_token_can_neither_list_nor_end_sessions(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let session = current(&signed_in(&club, BOB));
    let token = make_token(&club, BOB, "write");
    by_token(&club, &token).get(PATH).refused(403, "forbidden");
    by_token(&club, &token).delete(&format!("{PATH}/{session}")).refused(403, "forbidden");
    assert!(each(&club.by(BOB).get(PATH).json(), "sessionId").contains(&session));
}

#[rstest]
fn a_session_ends_after_fourteen_days_without_use(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (used, idle) = (signed_in(&club, BOB), signed_in(&club, BOB));
    let (used_id, idle_id) = (current(&used), current(&idle));
    club.clock.advance(TimeDelta::days(14) - TimeDelta::minutes(1));
    use_and_wait(&club, &used, &used_id);
    club.clock.advance(TimeDelta::minutes(1));
    idle.clone().get("/api/users/me").refused(401, "bad-credentials");
    let listed = each(&used.clone().get(PATH).expect(200).json(), "sessionId");
    assert!(listed.contains(&used_id) && !listed.contains(&idle_id), "{listed:?}");
    club.by(BOB).delete(&format!("{PATH}/{idle_id}")).refused(404, "not-found");
    club.clock.advance(TimeDelta::days(14));
    used.clone().get("/api/users/me").refused(401, "bad-credentials");
}

#[rstest]
fn a_session_ends_after_thirty_days_however_much_it_is_used(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let browser = signed_in(&club, BOB);
    let session = current(&browser);
    for days in [10, 10] {
        club.clock.advance(TimeDelta::days(days));
        use_and_wait(&club, &browser, &session);
    }
    club.clock.advance(TimeDelta::days(10) - TimeDelta::minutes(1));
    use_and_wait(&club, &browser, &session);
    club.clock.advance(TimeDelta::minutes(1));
    browser.clone().get("/api/users/me").refused(401, "bad-credentials");
    assert!(!each(&club.by(BOB).get(PATH).json(), "sessionId").contains(&session));
    club.by(BOB).delete(&format!("{PATH}/{session}")).refused(404, "not-found");
}

#[rstest]
fn uses_are_recorded_once_an_hour(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let browser = signed_in(&club, BOB);
    let session = current(&browser);
    let made = last_use(&club, &session);
    club.clock.advance(TimeDelta::minutes(59));
    assert_eq!(browser.who().as_deref(), Some(BOB));
    club.clock.advance(TimeDelta::minutes(1));
    use_and_wait(&club, &browser, &session);
    assert!(*last_use(&club, &session) >= made.plus(TimeDelta::hours(1)), "not that of a minute ago");
    let shown = |list: &Value, id: &str, field: &str| {
        let found = list.as_array().unwrap().iter().find(|one| one[id] == *session || id == "tokenId");
        found.unwrap()[field].as_str().map(|at| at.parse().unwrap())
    };
    let list = club.by(BOB).get(PATH).json();
    assert_eq!(shown(&list, "sessionId", "lastUsedAt"), Some(*last_use(&club, &session)));

    let token = make_token(&club, BOB, "read");
    let tokens = || club.by(BOB).get("/api/users/me/tokens").expect(200).json();
    assert_eq!(tokens()[0].get("lastUsedAt"), None);
    by_token(&club, &token).get("/api/users/me").expect(200);
    until("the use is stored", || token_last_use(&club).is_some());
    assert_eq!(shown(&tokens(), "tokenId", "lastUsedAt"), token_last_use(&club).map(|at| *at));
}

#[rstest]
fn two_hundred_requests_are_one_write(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let token = make_token(&club, BOB, "read");
    count_writes(&club);
    let send = |times: u32| {
        for _ in 0..times {
            by_token(&club, &token).get("/api/users/me").expect(200);
        }
    };
    // While writes are blocked, each request sees the old last use.
    let mut blocker = block_writes(&club);
    send(20);
    assert_eq!(token_last_use(&club), None);
    blocker.batch_execute("COMMIT").unwrap();
    until("the use is stored", || token_last_use(&club).is_some());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| send(45));
        }
    });
    assert_eq!(count_of_writes(&club), 1);
}

#[rstest]
fn shutdown_writes_the_last_uses(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let token = make_token(&club, BOB, "read");
    let mut process = Process::beside(&club, &[]);
    let mut blocker = block_writes(&club);
    let mut wire = process.connect();
    wire.write(&format!(
        "GET /api/users/me HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n"
    ));
    assert_eq!(wire.read_to_end().0, 200);
    process.signal("TERM");
    process.until_it_logs("draining");
    assert_eq!(token_last_use(&club), None);
    blocker.batch_execute("COMMIT").unwrap();
    assert!(process.wait().success());
    assert!(token_last_use(&club).is_some());
}

#[rstest]
fn queries_use_indexes(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let session = DbUuid(current(&signed_in(&club, BOB)).parse().unwrap());
    make_token(&club, BOB, "write");
    let (user, now) = (id(BOB), club.clock.now());
    plans::check(&club, |conn| {
        // The browser's and that of the request that made the token.
        assert_eq!(of_users::sessions_of(conn, user, now).unwrap().len(), 2);
        let token = tokens::of_user(conn, user).unwrap().remove(0).id;
        tokens::revoke_of(conn, user, token, now).unwrap();
        assert!(!of_users::is_finished(conn, "unknown").unwrap());
        of_users::end(conn, b"unknown", now).unwrap();
        of_users::end_of(conn, user, session, now).unwrap();
        identities::unlink(conn, "bob").unwrap();
    });
}

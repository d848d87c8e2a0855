//! Rate limits. The clock is stopped, so that no limit recovers by itself.

use chrono::TimeDelta;
use diesel::prelude::*;
use portfolio_service::schema::users;
use serde_json::json;
use service_kit::{
    database::types::{DbTimestamp, DbUuid},
    with_connection,
};

use crate::{
    builders::{contest, contest_body, project, project_body, team, team_body},
    harness::{ALICE, Answer, BOB, Backend, CAROL, Club, SUSAN, id},
};

const USERS: &str = "/api/v1/users";
const ME: &str = "/api/v1/users/me";

/// Asserts that an answer is a 429 with this `Retry-After`.
#[track_caller]
fn assert_limited(answer: Answer, seconds: u32) {
    assert_eq!(answer.header("retry-after"), Some(&*seconds.to_string()), "{answer:?}");
    answer.refused(429, "rate-limited");
}

fn on_both(options: &[&str], test: impl Fn(&Club)) {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        test(&Club::start_with(backend, options));
    }
}

#[test]
fn anonymous_requests_count_by_address() {
    on_both(&["--rate-limit", "3"], |club| {
        club.anonymous().get(USERS).expect(200);
        club.anonymous().get(ME).refused(401, "not-signed-in");
        // The name that some proxies send for visitors.
        club.by("-").get(USERS).expect(200);
        for path in [USERS, ME, "/api/v1/ping", "/openapi.json", "/nowhere"] {
            assert_limited(club.anonymous().get(path), 20);
            assert_limited(club.by("").get(path), 20);
            assert_limited(club.anonymous().header("x-forwarded-for", "198.51.100.7").get(path), 20);
        }
        for path in ["/livez", "/readyz", "/metrics"] {
            (0..10).for_each(|_| {
                club.anonymous().get(path).expect(200);
            });
        }
        club.by(BOB).get(USERS).expect(200);
        club.clock.advance(TimeDelta::seconds(20));
        club.anonymous().get(USERS).expect(200);
        assert_limited(club.anonymous().get(USERS), 20);
    });
}

#[test]
fn a_trusted_proxy_sends_the_address_of_the_client() {
    on_both(&["--rate-limit", "2", "--trusted-proxies", "127.0.0.1"], |club| {
        let forwarded = |addresses: &str| club.anonymous().header("x-forwarded-for", addresses).get(USERS);
        forwarded("198.51.100.7").expect(200);
        forwarded("203.0.113.1, 198.51.100.7").expect(200);
        assert_limited(forwarded("203.0.113.2, 198.51.100.7"), 30);
        forwarded("198.51.100.8").expect(200);
        // A user has the same limit at every address.
        let by = |member: &str, address: &str| club.by(member).header("x-forwarded-for", address).get(ME);
        by(BOB, "198.51.100.7").expect(200);
        by(BOB, "198.51.100.8").expect(200);
        assert_limited(by(BOB, "198.51.100.9"), 30);
        by(CAROL, "198.51.100.7").expect(200);
    });
}

#[test]
fn a_name_from_an_untrusted_client_counts_by_address() {
    on_both(&["--rate-limit", "2", "--trusted-proxies", "10.0.0.0/8"], |club| {
        club.by(BOB).get(USERS).expect(200);
        club.by(CAROL).get(USERS).expect(200);
        assert_limited(club.by(SUSAN).get(USERS), 30);
        assert_limited(club.anonymous().get(USERS), 30);
    });
}

#[test]
fn every_user_has_a_limit_of_their_own() {
    on_both(&["--rate-limit", "4"], |club| {
        club.by(BOB).get(ME).expect(200);
        club.by(BOB).get(USERS).expect(200);
        let path = format!("{USERS}/{}", id(BOB));
        club.by(BOB).patch(&path, json!({"bio": "x"})).expect(204);
        club.by(BOB).get("/api/v1/projects").expect(200);
        for path in [ME, USERS, "/api/v1/projects"] {
            assert_limited(club.by(BOB).get(path), 15);
        }
        assert_limited(club.by(BOB).patch(&path, json!({"bio": "y"})), 15);
        assert_eq!(club.by(CAROL).get(&path).expect(200).json()["bio"], "x", "nothing was done");
        club.anonymous().get(USERS).expect(200);
    });
}

#[test]
fn a_long_list_is_one_request() {
    on_both(&["--rate-limit", "1"], |club| {
        let now = DbTimestamp(club.clock.now());
        let row = |n| {
            (
                (
                    users::id.eq(DbUuid::new()),
                    users::name.eq(format!("user{n}")),
                    users::real_name.eq(""),
                    users::state.eq(1),
                ),
                (users::created_at.eq(now), users::updated_at.eq(now)),
            )
        };
        let rows: Vec<_> = (0..1100).map(row).collect();
        with_connection!(&mut club.connect(), c => diesel::insert_into(users::table).values(rows).execute(c).unwrap());
        let list = club.by(BOB).get(USERS).expect(200).json();
        assert_eq!(list.as_array().unwrap().len(), 1100 + 4, "all, and the four who are active anyway");
        assert_limited(club.by(BOB).get(USERS), 60);
    });
}

#[test]
fn a_bad_credential_counts_by_address() {
    on_both(&["--rate-limit", "4"], |club| {
        club.anonymous().header("authorization", "Bearer x.y.z").get(ME).refused(401, "bad-credentials");
        club.anonymous().header("authorization", "Basic x").get(USERS).refused(401, "bad-credentials");
        club.by("no name").get(ME).refused(401, "bad-credentials");
        club.by("no name").get(ME).refused(401, "bad-credentials");
        assert_limited(club.anonymous().header("authorization", "Bearer z.y.x").get(ME), 15);
        assert_limited(club.by("no name").get(ME), 15);
        // What was refused takes nothing from those who read without sign-in, nor from members.
        club.anonymous().get(USERS).expect(200);
        club.by("no name").get(USERS).expect(200);
        club.by("nobody").get(ME).refused(404, "not-found");
        club.by(SUSAN).get(ME).refused(403, "account-inactive");
        assert_limited(club.by("nobody").get(ME), 15);
        assert_limited(club.anonymous().get(USERS), 15);
        club.by(BOB).get(ME).expect(200);
    });
}

#[test]
fn a_member_creates_only_so_much_in_a_day() {
    on_both(&["--daily-limit", "4"], |club| {
        let robot = project(club, BOB, "robot");
        let cup = contest(club, BOB, "cup");
        team(club, BOB, &cup, "club A");
        let account = json!({"type": 5, "url": "https://github.com/bob", "displayName": "bob"});
        let accounts = format!("{USERS}/{}/accounts", id(BOB));
        club.by(BOB).post(&accounts, account).expect(201);
        for (path, body) in [
            ("/api/v1/projects", project_body("another")),
            ("/api/v1/contests", contest_body("another")),
            (&format!("{cup}/teams"), team_body("club B")),
            (&accounts, json!({"type": 0, "url": "https://bob.example", "displayName": "bob"})),
        ] {
            let answer = club.by(BOB).post(path, body);
            assert!(answer.header("retry-after").is_some());
            answer.refused(429, "daily-limit");
        }
        project(club, CAROL, "another");
        // Changes count as well, but for those that change nothing.
        club.by(BOB).patch(&robot, json!({"name": "robot"})).expect(204);
        club.by(BOB).patch(&robot, json!({"name": "rover"})).refused(429, "daily-limit");
        // Admins have no limit.
        (0..5).for_each(|number| {
            project(club, ALICE, &format!("another {number}"));
        });
        club.clock.advance(TimeDelta::hours(24));
        project(club, BOB, "the next day");
    });
}

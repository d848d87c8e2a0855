//! Who may do what: the access table of `docs/access.md`.

#[path = "../../../service-kit/tests/shared/matrix.rs"]
mod table;

#[path = "../../../service-kit/tests/shared/conditions.rs"]
mod conditions;

#[path = "../../../service-kit/tests/shared/recorded.rs"]
mod recorded;

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;
use std::sync::atomic::{AtomicU32, Ordering};

use diesel::prelude::*;
use portfolio_service::schema::accounts;
use serde_json::{Value, json};
use service_kit::database::types::DbUuid;

pub use self::table::PICTURE;
use self::table::{Builder, Caller, Fixture, check_access};
use crate::{
    builders::{contest, contest_body, member, project, project_body, team, with},
    events,
    harness::{ALICE, BOB, CAROL, Client, Club, DAVE, SUSAN, id},
    identity::Issuer,
    sync::{members, start},
};

// As docs/access.md says who is who: BOB is the member, DAVE the stranger, CAROL the owner, ALICE the privileged one
// and SUSAN the suspended one.

const AUDIENCE: &str = "portfolio";

/// The input of the builders.
struct World {
    club: Club,
    /// A group of the directory.
    group: DbUuid,
    next: AtomicU32,
}

impl World {
    /// Returns also the index of a service that trusts the tests as a proxy, and of one that trusts another address.
    fn new(mut club: Club, issuer: &Issuer) -> (Self, [usize; 2]) {
        let group = DbUuid::new();
        club.config.sign_in.oidc_issuer = Some(issuer.address.clone());
        club.config.identity.oidc_audience = Some(AUDIENCE.to_owned());
        club.config.server.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
        let groups = json!([{"id": group, "name": "graphics", "members": [BOB], "admins": [CAROL]}]);
        let service = start(&mut club, &json!({"users": members(&[]), "groups": groups}));
        club.config.server.trusted_proxies = vec!["10.0.0.0/8".parse().unwrap()];
        let untrusting = club.start_another();
        (Self { club, group, next: AtomicU32::new(0) }, [service, untrusting])
    }

    /// A new unique name.
    fn name(&self) -> String {
        format!("name {}", self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// A project of the owner with the member.
    fn project(&self) -> Fixture {
        let path = project(&self.club, CAROL, &self.name());
        let members = json!({"members": [member(BOB, (2024, 0), None), member(SUSAN, (2024, 0), None)]});
        self.club.by(CAROL).put(&format!("{path}/members"), members).expect(204);
        Fixture::object("projectId", &last(&path))
    }

    /// Gives a project or user of the owner a picture.
    fn with_picture(&self, made: Fixture, path: &str) -> Fixture {
        let client = self.club.by(CAROL).header("content-type", "image/png");
        client.send_bytes("PUT", &format!("{path}/picture"), PICTURE.to_vec()).expect(204);
        made
    }

    fn project_with_picture(&self) -> Fixture {
        let made = self.project();
        let path = format!("/api/v1/projects/{}", made.value("projectId"));
        self.with_picture(made, &path)
    }

    fn contest(&self) -> Fixture {
        Fixture::object("contestId", &last(&contest(&self.club, CAROL, &self.name())))
    }

    /// A team with the member, in a contest with its own creator.
    fn team(&self, of_contest: &str, of_team: &str) -> Fixture {
        let contest = contest(&self.club, of_contest, &self.name());
        let team = team(&self.club, of_team, &contest, "the team");
        let members = json!({"members": [id(BOB), id(SUSAN)]});
        self.club.by(of_team).put(&format!("{team}/members"), members).expect(204);
        Fixture::object("contestId", &last(&contest)).and("teamId", &last(&team))
    }

    /// An event that the owner hosts.
    fn event(&self, level: i16) -> Fixture {
        let since = "2026-04-04T09:00:00Z";
        Fixture::object("eventId", &events::plant(&self.club, "open day", since, &[CAROL, SUSAN], Some(level)))
    }

    /// The owner without accounts, so that one of any type can be added.
    fn without_account(&self) -> Fixture {
        let of_owner = accounts::table.filter(accounts::user_id.eq(id(CAROL)));
        diesel::delete(of_owner).execute(&mut self.club.connect()).unwrap();
        owner()
    }

    fn account(&self) -> Fixture {
        let owner = self.without_account();
        let body = json!({"displayName": "Carol", "type": 0, "url": "https://carol.example"});
        let made = self.club.by(CAROL).post(&format!("/api/v1/users/{}/accounts", id(CAROL)), body).expect(201).json();
        owner.and("accountId", &made["id"].as_str().unwrap())
    }
}

fn user() -> String {
    format!("/api/v1/users/{}", id(CAROL))
}

fn owner() -> Fixture {
    Fixture::object("userId", &id(CAROL))
}

fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap()
}

/// The claims of a token of the issuer, some of them replaced.
fn claims(club: &Club, issuer: &Issuer, name: &str, replaced: Value) -> Value {
    let expires = club.clock.now().utc().timestamp() + 600;
    let claims = json!({"iss": issuer.address, "aud": AUDIENCE, "exp": expires, "preferred_username": name});
    with(claims, replaced)
}

/// Invalid `Authorization` headers of an admin, who could do everything with a valid one.
fn bad_tokens(club: &Club, issuer: &Issuer) -> [(&'static str, String); 8] {
    let token = |replaced| issuer.token(&claims(club, issuer, ALICE, replaced));
    let good = token(json!({}));
    let (head, signature) = good.rsplit_once('.').unwrap();
    let ended = club.clock.now().utc().timestamp() - 3600;
    [
        ("of an unknown key", format!("Bearer {}", Issuer::start().token(&claims(club, issuer, ALICE, json!({}))))),
        ("expired", format!("Bearer {}", token(json!({"exp": ended})))),
        ("for another service", format!("Bearer {}", token(json!({"aud": "booking"})))),
        ("of another issuer", format!("Bearer {}", token(json!({"iss": "https://evil.example"})))),
        ("without signature", format!("Bearer {head}.")),
        ("malformed", format!("Bearer {signature}")),
        ("none", "Bearer".to_owned()),
        ("of another scheme", "Basic YWxpY2U6YWxpY2U=".to_owned()),
    ]
}

/// `service` trusts the tests as a proxy, and `untrusting` trusts another address.
fn callers<'club>(club: &'club Club, issuer: &Issuer, service: usize, untrusting: usize) -> Vec<Caller<'club>> {
    let anonymous = || club.anonymous().at(service);
    let bearer = |name| {
        let token = issuer.token(&claims(club, issuer, name, json!({})));
        anonymous().header("authorization", &format!("Bearer {token}"))
    };
    let nobody = |column, way, client: Client<'club>, code, instead| {
        let refusal = Some((401, code));
        Caller { column, way, name: None, client, refusal, instead }
    };
    let mut callers = vec![nobody("anonymous", "no credential", anonymous(), "not-signed-in", None)];
    let cookie = anonymous().header("cookie", "session=x");
    callers.push(nobody("anonymous", "any cookie", cookie, "not-signed-in", None));
    for (way, value) in bad_tokens(club, issuer) {
        let client = anonymous().header("authorization", &value);
        callers.push(nobody("bad token", way, client, "bad-credentials", None));
    }
    let of_booking = anonymous().header("authorization", "Bearer clubbooking_x_y");
    callers.push(nobody("read-only token", "of booking", of_booking, "bad-credentials", Some("bad token")));
    let people = [("member", BOB), ("stranger", DAVE), ("owner", CAROL), ("privileged", ALICE), ("suspended", SUSAN)];
    for (column, name) in people {
        for (way, client) in [("by the proxy", club.by(name).at(service)), ("by a token", bearer(name))] {
            let refusal = (name == SUSAN).then_some((403, "account-inactive"));
            callers.push(Caller { column, way, name: Some(name), client, refusal, instead: None });
        }
    }
    let forged = club.by(ALICE).at(untrusting).header("x-showcase-user", ALICE).header("x-forwarded-for", "10.0.0.1");
    callers.push(nobody("anonymous", "from no proxy", forged, "not-signed-in", None));
    callers
}

/// First the objects of the last parameter of a path. Rows with a body or an object of their own have a builder below.
const BUILDERS: &[(&str, Builder<World>)] = &[
    ("{userId}", |_, _| owner()),
    ("{accountId}", |world, _| world.account()),
    ("{projectId}", |world, _| world.project()),
    ("{groupId}", |world, _| Fixture::object("groupId", &world.group)),
    ("{contestId}", |world, _| world.contest()),
    ("{teamId}", |world, _| world.team(ALICE, CAROL)),
    ("POST /api/v1/users/{userId}/accounts", |world, _| world.without_account()),
    ("GET /api/v1/projects/{projectId}/picture", |world, _| world.project_with_picture()),
    ("DELETE /api/v1/projects/{projectId}/picture", |world, _| world.project_with_picture()),
    ("GET /api/v1/users/{userId}/picture", |world, _| world.with_picture(owner(), &user())),
    ("DELETE /api/v1/users/{userId}/picture", |world, _| world.with_picture(owner(), &user())),
    ("PUT /api/v1/users/{userId}/picture", |world, _| {
        // Without one, so that it is a change.
        world.club.by(CAROL).delete(&format!("{}/picture", user()));
        owner()
    }),
    ("POST /api/v1/projects", |world, _| Fixture::body(project_body(&world.name()))),
    ("PATCH /api/v1/projects/{projectId}", |world, _| world.project().with(json!({"name": world.name()}))),
    ("PUT /api/v1/projects/{projectId}/members", |world, _| world.project().with(json!({"members": []}))),
    ("GET /api/v1/events/{eventId}, anonymous", |world, _| world.event(0)),
    ("GET /api/v1/events/{eventId}, public", |world, _| world.event(1)),
    ("GET /api/v1/events/{eventId}, private", |world, _| world.event(2)),
    ("PATCH /api/v1/events/{eventId}, anonymous", |world, _| world.event(0)),
    ("PATCH /api/v1/events/{eventId}, public", |world, _| world.event(1)),
    ("PATCH /api/v1/events/{eventId}, private", |world, _| world.event(2)),
    ("POST /api/v1/projects/{projectId}/restore", |world, _| {
        let made = world.project();
        world.club.by(ALICE).delete(&format!("/api/v1/projects/{}", made.value("projectId"))).expect(204);
        made
    }),
    ("POST /api/v1/contests/{contestId}/restore", |world, _| {
        let made = world.contest();
        world.club.by(ALICE).delete(&format!("/api/v1/contests/{}", made.value("contestId"))).expect(204);
        made
    }),
    ("POST /api/v1/contests", |world, _| Fixture::body(contest_body(&world.name()))),
    ("PATCH /api/v1/contests/{contestId}/teams/{teamId}, of the owner", |world, _| world.team(ALICE, CAROL)),
    ("PATCH /api/v1/contests/{contestId}/teams/{teamId}, in the owner's contest", |world, _| world.team(CAROL, ALICE)),
    ("DELETE /api/v1/contests/{contestId}/teams/{teamId}, of the owner", |world, _| world.team(ALICE, CAROL)),
    ("DELETE /api/v1/contests/{contestId}/teams/{teamId}, in the owner's contest", |world, _| world.team(CAROL, ALICE)),
    ("PUT /api/v1/contests/{contestId}/teams/{teamId}/members, of the owner", |world, _| {
        world.team(ALICE, CAROL).with(json!({"members": []}))
    }),
    ("PUT /api/v1/contests/{contestId}/teams/{teamId}/members, in the owner's contest", |world, _| {
        world.team(CAROL, ALICE).with(json!({"members": []}))
    }),
];

/// Takes seconds: every operation is called by every kind of caller.
#[rstest]
fn the_access_of_every_caller_is_that_of_the_table(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let issuer = Issuer::start();
    let (world, [service, untrusting]) = World::new(club, &issuer);
    check_access("portfolio-service", &world, BUILDERS, &callers(&world.club, &issuer, service, untrusting));
}

/// Takes seconds: every operation is called again for each of its conditions.
#[rstest]
fn every_operation_supports_conditions_retries_and_pages(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let issuer = Issuer::start();
    let (world, [service, untrusting]) = World::new(club, &issuer);
    let callers = callers(&world.club, &issuer, service, untrusting);
    conditions::check_all("portfolio-service", &world, BUILDERS, &callers, &[]);
}

/// A sync is as old as the directory says.
const WITHOUT_HISTORY: &[&str] = &["POST /api/v1/users/sync"];

#[rstest]
fn every_change_leaves_one_row_in_the_history(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let issuer = Issuer::start();
    let (world, [service, untrusting]) = World::new(club, &issuer);
    let callers = callers(&world.club, &issuer, service, untrusting);
    recorded::check_all("portfolio-service", &world.club, &world, BUILDERS, &callers, WITHOUT_HISTORY);
}

//! The access table of `docs/access.md`.

#[path = "../../../service-kit/tests/shared/matrix.rs"]
mod table;

#[path = "../../../service-kit/tests/shared/conditions.rs"]
mod conditions;

#[path = "../../../service-kit/tests/shared/recorded.rs"]
mod recorded;

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;
use std::sync::atomic::{AtomicI64, Ordering};

use booking_service::{
    auth::{ApiToken, Scope, TOKEN_PREFIX},
    schema::{sessions, users},
    sign_in::tokens,
};
use chrono::TimeDelta;
use diesel::prelude::*;
use serde_json::{Value, json};
use service_kit::{
    credentials,
    database::types::{DbTimestamp, DbUuid},
};

pub use self::table::Operation;
use self::table::{Builder, Caller, Fixture, check_access};
use crate::{
    builders::{self, At, event_body, merge, room_body, text},
    harness::{ALICE, BOB, CAROL, Club, DAVE, SUSAN, hours_from_now, id},
    receiver::Receiver,
    sync::{start_with_file, with_members},
    tokens::make_token,
};

// The roles of docs/access.md: BOB is the member, DAVE the stranger, CAROL the owner, ALICE the privileged user and
// SUSAN the suspended user.

/// The directory group.
const STAFF: &str = "staff";

/// The service under test, and the state of the builders.
struct World {
    club: Club,
    /// The index of the service with a directory.
    service: usize,
    next: AtomicI64,
    receiver: Receiver,
}

impl World {
    fn new(mut club: Club) -> Self {
        let staff = json!({"id": id(STAFF), "name": STAFF, "members": [BOB], "admins": [CAROL, SUSAN]});
        let service = start_with_file(&mut club, &with_members(&[], &[staff]));
        Self { club, service, next: AtomicI64::new(0), receiver: Receiver::start() }
    }

    /// A new number for each name and place.
    fn next(&self) -> i64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    fn place(&self) -> String {
        format!("Room {}", self.next())
    }

    fn span(&self) -> (i64, i64) {
        (24, 25 + self.next() % 2)
    }

    /// An unverified room of the owner.
    fn room(&self) -> Fixture {
        let body = room_body(&self.club, CAROL, &self.place(), self.span());
        let made = self.club.by(CAROL).post("/api/rooms", merge([body, both_admins()])).expect(201).json();
        Fixture::object("roomID", &text(&made["roomId"]))
    }

    fn verified_room(&self) -> Fixture {
        Fixture::object("roomID", &builders::verified_room(&self.club, CAROL, &self.place(), self.span()))
    }

    /// The id of a group of the owner that contains the member.
    fn group_id(&self, open: bool) -> String {
        let group = json!({"name": "graphics", "description": "", "open": open, "members": [id(BOB), id(SUSAN)]});
        let made = self.club.by(CAROL).post("/api/groups", merge([group, both_admins()])).expect(201).json();
        text(&made["groupId"])
    }

    fn group(&self, open: bool) -> Fixture {
        Fixture::object("groupID", &self.group_id(open)).with(both_admins())
    }

    /// The body of an event of such a group.
    fn event_body(&self) -> Value {
        let event = event_body(&self.club, CAROL, At::Place(&self.place()), self.span());
        merge([event, json!({"groupId": self.group_id(false)}), both_admins()])
    }

    fn event(&self, more: Value) -> Fixture {
        let made = self.club.by(CAROL).post("/api/events", merge([self.event_body(), more])).expect(201).json();
        Fixture::object("eventID", &text(&made["eventId"]))
    }

    /// The body of a webhook that is told of nothing that happens here.
    fn webhook_body(&self) -> Value {
        merge([crate::webhooks::body(&self.receiver.address), json!({"types": ["series.deleted"]})])
    }

    fn webhook(&self) -> Fixture {
        let made = self.club.by(ALICE).post("/api/webhooks", self.webhook_body()).expect(201).json();
        Fixture::object("webhookID", &text(&made["webhookId"]))
    }

    fn delivery(&self) -> Fixture {
        let made = self.webhook();
        let path = format!("/api/webhooks/{}/test", made.value("webhookID"));
        let delivery = self.club.by(ALICE).post(&path, json!({})).expect(201).json();
        made.and("deliveryID", &text(&delivery["deliveryId"]))
    }

    /// An event that has changed, and the first row of its history.
    fn changed_event(&self) -> Fixture {
        let made = self.event(json!({}));
        let path = format!("/api/events/{}", made.value("eventID"));
        let first = self.club.by(ALICE).get(&format!("{path}/history")).expect(200).json()[0]["historyId"].clone();
        self.club.by(ALICE).put(&path, merge([self.event_body(), json!({"name": "changed"})])).expect(200);
        made.with(json!({ "to": first }))
    }

    fn delete(&self, collection: &str, made: &Fixture, parameter: &str) {
        let answer = self.club.by(ALICE).delete(&format!("/api/{collection}/{}", made.value(parameter)));
        assert!(answer.status < 300, "{}", answer.text());
    }

    fn series_body(&self) -> Value {
        let event = merge([self.event_body(), json!({"tags": []})]);
        json!({"event": event, "rrule": "FREQ=WEEKLY;COUNT=2"})
    }

    fn series(&self) -> Fixture {
        let made = self.club.by(CAROL).post("/api/event-series", self.series_body()).expect(201).json();
        Fixture::object("seriesID", &text(&made["seriesId"]))
    }

    fn tagged(&self, locked: bool) -> Fixture {
        self.event(json!({"tags": [{"name": "rust", "locked": locked}]})).and("tagName", &"rust")
    }

    /// A poll of the owner that invites the member.
    fn poll(&self, open: bool) -> (Fixture, Vec<String>, String) {
        let invited = json!({"open": open, "invitees": [id(BOB), id(SUSAN)]});
        let (path, slots) = builders::poll(&self.club, CAROL, merge([invited, both_admins()]));
        (Fixture::object("draftEventID", &path.rsplit('/').next().unwrap()), slots, path)
    }

    /// A poll with the answers of all who may answer it.
    fn answered_poll(&self, open: bool) -> Fixture {
        let (made, slots, path) = self.poll(open);
        for by in if open { &[ALICE, BOB, CAROL, DAVE][..] } else { &[BOB, CAROL] } {
            builders::answer_poll(&self.club, by, &path, &[&slots[0]]).expect(201);
        }
        made.with(json!({"slotIds": [slots[1]]}))
    }

    /// A new session of the caller, if the caller is a user.
    fn session_of(&self, caller: &Caller<'_>) -> Fixture {
        let session = caller.name.map(|name| new_session(&self.club, name, TimeDelta::days(1)).1);
        Fixture::for_one(String::new(), session.map(|secret| format!("session={secret}")))
    }

    /// A sign-in that the caller has begun and in which a user has been chosen: the caller, or the member for anonymous
    /// callers.
    fn sign_in(&self, caller: &Caller<'_>) -> Fixture {
        let name = caller.name.unwrap_or(BOB);
        // Only active users can be chosen. A user may be suspended after that.
        set_state(&self.club, name, 1);
        let begun = caller.client.send("POST", "/api/authParams", None).expect(201);
        let cookie = begun.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        let url = text(&begun.json()["url"]);
        let page = url.strip_prefix(self.club.origin(self.service)).unwrap();
        let page = self.club.anonymous().at(self.service).get(page).expect(200).text();
        let mut links = page.split("<a href=\"").skip(1);
        let link = links.find(|link| link.contains(&format!("@{name}<"))).unwrap();
        let callback = link.split('"').next().unwrap().replace("&amp;", "&");
        set_state(&self.club, name, if name == SUSAN { 2 } else { 1 });
        Fixture::for_one(callback.strip_prefix("/api/callback").unwrap().to_owned(), Some(cookie))
    }
}

/// The owner and the suspended user as admins. The latter still has no access.
fn both_admins() -> Value {
    json!({"admins": [id(CAROL), id(SUSAN)]})
}

fn set_state(club: &Club, name: &str, state: i16) {
    diesel::update(users::table.find(id(name))).set(users::state.eq(state)).execute(&mut club.connect()).unwrap();
}

/// Creates a session with this remaining time, and returns its id and its secret.
fn new_session(club: &Club, name: &str, lasts: TimeDelta) -> (DbUuid, String) {
    let (session, now, secret) = (DbUuid::new(), club.clock.now(), credentials::random_secret().unwrap());
    let row = (
        sessions::id.eq(session),
        sessions::token_hash.eq(credentials::hash(&secret)),
        sessions::user_id.eq(id(name)),
        sessions::created_at.eq(DbTimestamp(now.plus(-TimeDelta::days(2)))),
        sessions::expires_at.eq(DbTimestamp(now.plus(lasts))),
        sessions::last_used_at.eq(DbTimestamp(now)),
    );
    diesel::insert_into(sessions::table).values(row).execute(&mut club.connect()).unwrap();
    (session, secret)
}

/// Invalid session cookies of the privileged user.
fn bad_cookies(club: &Club) -> [(&'static str, String); 5] {
    let (_, revoked) = new_session(club, ALICE, TimeDelta::days(1));
    club.anonymous().header("cookie", &format!("session={revoked}")).send("POST", "/api/logout", None).expect(204);
    let begun = club.by(ALICE).send("POST", "/api/authParams", None).expect(201);
    let sealed = begun.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    [
        ("unknown", format!("session={}", credentials::random_secret().unwrap())),
        ("expired", format!("session={}", new_session(club, ALICE, -TimeDelta::seconds(1)).1)),
        ("revoked", format!("session={revoked}")),
        ("empty", "session=".to_owned()),
        ("a sign-in under way", sealed),
    ]
}

/// Invalid `Authorization` headers of the privileged user.
fn bad_tokens(club: &Club) -> [(&'static str, String); 6] {
    let (conn, now) = (&mut club.connect(), club.clock.now());
    let before = now.plus(-TimeDelta::hours(2));
    let until = Some(now.plus(-TimeDelta::hours(1)));
    let expired = tokens::create(conn, Some(ALICE), "expired", Scope::Write, until, before).unwrap();
    let revoked = tokens::create(conn, Some(ALICE), "revoked", Scope::Write, None, before).unwrap();
    let row = tokens::list(conn, Some(ALICE)).unwrap().into_iter().find(|row| row.name == "revoked").unwrap();
    tokens::revoke(conn, row.id.0, now).unwrap();
    [
        ("unknown", format!("Bearer {}", ApiToken::generate(TOKEN_PREFIX).unwrap().reveal())),
        ("expired", format!("Bearer {}", expired.reveal())),
        ("revoked", format!("Bearer {}", revoked.reveal())),
        ("malformed", "Bearer clubbooking_x_y".to_owned()),
        ("none", "Bearer".to_owned()),
        ("of another scheme", "Basic YWxpY2U6YWxpY2U=".to_owned()),
    ]
}

fn callers(club: &Club, service: usize) -> Vec<Caller<'_>> {
    let anonymous = || club.anonymous().at(service);
    let mut callers = Vec::new();
    let mut add = |column, way, name, client, refusal| {
        callers.push(Caller { column, way, name, client, refusal, instead: None });
    };
    add("anonymous", "no credential", None, anonymous(), Some((401, "not-signed-in")));
    for (way, cookie) in bad_cookies(club) {
        add("anonymous", way, None, anonymous().header("cookie", &cookie), Some((401, "bad-credentials")));
    }
    for (way, value) in bad_tokens(club) {
        add("bad token", way, None, anonymous().header("authorization", &value), Some((401, "bad-credentials")));
    }
    let token = format!("Bearer {}", make_token(club, ALICE, "read"));
    let reader = anonymous().header("authorization", &token);
    add("read-only token", "of the privileged user", Some(ALICE), reader, Some((403, "insufficient-scope")));
    for (column, name) in [("member", BOB), ("stranger", DAVE), ("owner", CAROL), ("privileged", ALICE)] {
        add(column, "session", Some(name), club.by(name).at(service), None);
    }
    add("suspended", "session", Some(SUSAN), club.by(SUSAN).at(service), Some((403, "account-inactive")));
    let forged = anonymous().header("x-forwarded-user", ALICE).header("x-showcase-user", ALICE);
    add("anonymous", "of a proxy", None, forged, Some((401, "not-signed-in")));
    callers
}

/// First the objects of the last parameter of a path. Rows with a body or an object of their own have a builder below.
const BUILDERS: &[(&str, Builder<World>)] = &[
    ("{roomID}", |world, _| world.room()),
    ("{eventID}", |world, _| world.event(json!({}))),
    ("{seriesID}", |world, _| world.series()),
    ("{groupID}", |world, _| world.group(false)),
    ("{draftEventID}", |world, _| world.poll(false).0),
    ("{webhookID}", |world, _| world.webhook()),
    ("{deliveryID}", |world, _| world.delivery()),
    ("{invitationID}", |world, _| {
        let made = world.club.by(ALICE).post("/api/invitations", json!({})).expect(201).json();
        Fixture::object("invitationID", &text(&made["invitationId"]))
    }),
    ("{userID}", |_, _| Fixture::object("userID", &id(CAROL))),
    ("{tokenID}", |world, _| {
        let body = json!({"name": "matrix", "scope": "read"});
        let made = world.club.by(CAROL).post("/api/users/me/tokens", body).expect(201).json();
        Fixture::object("tokenID", &text(&made["tokenId"]))
    }),
    ("{sessionID}", |world, _| Fixture::object("sessionID", &new_session(&world.club, CAROL, TimeDelta::days(1)).0)),
    ("POST /api/rooms", |_, _| Fixture::body(both_admins())),
    ("DELETE /api/rooms/{roomID}/verified", |world, _| world.verified_room()),
    ("POST /api/events", |world, _| Fixture::body(world.event_body())),
    ("PUT /api/events/{eventID}", |world, _| world.event(json!({})).with(world.event_body())),
    ("POST /api/event-series", |world, _| Fixture::body(world.series_body())),
    ("PATCH /api/event-series/{seriesID}", |world, _| world.series().with(json!({"name": "changed"}))),
    ("POST /api/event-series/{seriesID}/occurrences", |world, _| world.series()),
    ("PUT /api/events/{eventID}/attendees/me, open", |world, _| world.event(json!({"open": true}))),
    ("PUT /api/events/{eventID}/attendees/me, not open", |world, _| world.event(json!({"open": false}))),
    ("POST /api/events/{eventID}/tags, tag not locked", |world, _| world.event(json!({}))),
    ("POST /api/events/{eventID}/tags, tag locked", |world, _| world.event(json!({})).with(json!({"locked": true}))),
    ("DELETE /api/events/{eventID}/tags/{tagName}, tag not locked", |world, _| world.tagged(false)),
    ("DELETE /api/events/{eventID}/tags/{tagName}, tag locked", |world, _| world.tagged(true)),
    ("POST /api/groups", |_, _| Fixture::body(merge([both_admins(), json!({"members": [id(BOB)]})]))),
    ("PUT /api/groups/{groupID}, made here", |world, _| {
        world.group(false).with(json!({"admins": [id(CAROL)], "members": [id(BOB)]}))
    }),
    ("PUT /api/groups/{groupID}, of the directory", |_, _| {
        Fixture::object("groupID", &id(STAFF)).with(json!({"admins": [id(CAROL)], "members": [id(BOB)]}))
    }),
    ("DELETE /api/groups/{groupID}, made here", |world, _| world.group(false)),
    ("DELETE /api/groups/{groupID}, of the directory", |_, _| Fixture::object("groupID", &id(STAFF))),
    ("PUT /api/groups/{groupID}/members/me, open", |world, _| world.group(true)),
    ("PUT /api/groups/{groupID}/members/me, not open", |world, _| world.group(false)),
    ("DELETE /api/groups/{groupID}/members/me, open", |world, _| world.group(true)),
    ("DELETE /api/groups/{groupID}/members/me, not open", |world, _| world.group(false)),
    ("POST /api/draft-events", |_, _| Fixture::body(merge([both_admins(), json!({"invitees": [id(BOB)]})]))),
    ("GET /api/draft-events/{draftEventID}/availability", |world, _| world.answered_poll(true)),
    ("POST /api/draft-events/{draftEventID}/availability, open", |world, _| {
        let (made, slots, _) = world.poll(true);
        made.with(json!({ "slotIds": slots }))
    }),
    ("POST /api/draft-events/{draftEventID}/availability, not open", |world, _| {
        let (made, slots, _) = world.poll(false);
        made.with(json!({ "slotIds": slots }))
    }),
    ("PUT /api/draft-events/{draftEventID}/availability, open", |world, _| world.answered_poll(true)),
    ("PUT /api/draft-events/{draftEventID}/availability, not open", |world, _| world.answered_poll(false)),
    ("GET /api/draft-events/{draftEventID}/availability/all", |world, _| world.answered_poll(true)),
    ("POST /api/draft-events/{draftEventID}/confirm", |world, _| {
        let (made, slots, _) = world.poll(false);
        made.with(json!({"slotId": slots[0], "place": world.place()}))
    }),
    ("GET /api/availability", |world, _| {
        builders::verified_room(&world.club, CAROL, &world.place(), world.span());
        let (from, to) = (hours_from_now(&world.club, 0), hours_from_now(&world.club, 48));
        Fixture::default().at(&format!("dateBegin={from}&dateEnd={to}&minutes=60"))
    }),
    ("PATCH /api/users/{userID}/privileged", |_, _| {
        Fixture::object("userID", &id(SUSAN)).with(json!({"privileged": true}))
    }),
    ("POST /api/events/{eventID}/restore", |world, _| {
        let made = world.event(json!({}));
        world.delete("events", &made, "eventID");
        made
    }),
    ("POST /api/rooms/{roomID}/restore", |world, _| {
        let made = world.room();
        world.delete("rooms", &made, "roomID");
        made
    }),
    ("POST /api/groups/{groupID}/restore", |world, _| {
        let made = world.group(false);
        world.delete("groups", &made, "groupID");
        made
    }),
    ("POST /api/draft-events/{draftEventID}/restore", |world, _| {
        let made = world.poll(false).0;
        world.delete("draft-events", &made, "draftEventID");
        made
    }),
    ("POST /api/events/{eventID}/revert", |world, _| world.changed_event()),
    ("POST /api/tags", |world, _| Fixture::body(json!({"name": format!("tag {}", world.next())}))),
    ("POST /api/webhooks", |world, _| Fixture::body(world.webhook_body())),
    ("POST /api/users/me/tokens", |_, _| Fixture::body(json!({"expiresAt": "2999-01-01T00:00:00Z"}))),
    ("GET /api/ical/v1/{icalToken}, right secret", |world, _| {
        let secret = world.club.by(CAROL).get("/api/users/me/ical").expect(200).json();
        Fixture::object("icalToken", &format!("{}{}", id(CAROL), text(&secret["secret"])))
    }),
    ("GET /api/ical/v1/{icalToken}, wrong secret", |_, _| {
        Fixture::object("icalToken", &format!("{}{}", id(CAROL), credentials::random_secret().unwrap()))
    }),
    ("GET /api/callback, begun by the caller", World::sign_in),
    ("GET /api/callback, begun by nobody", |_, _| Fixture::for_one("?code=x&state=y".to_owned(), None)),
    ("POST /api/logout", World::session_of),
];

/// Takes seconds: every operation is called by every kind of caller, some two thousand requests.
#[rstest]
fn access_matches_the_table(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let world = World::new(club);
    check_access("booking-service", &world, BUILDERS, &callers(&world.club, world.service));
}

/// Takes seconds: every operation is called again for each of its conditions.
#[rstest]
fn every_operation_supports_versions_retries_and_pages(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let world = World::new(club);
    let callers = callers(&world.club, world.service);
    conditions::check_all("booking-service", &world, BUILDERS, &callers, &["POST /api/logout"]);
}

/// Answers, and what is not an object with a history: sign-ins, sessions, tokens, feeds, and a sync, whose rows are those
/// of the directory.
const WITHOUT_HISTORY: &[&str] = &[
    "DELETE /api/users/me/sessions/{sessionID}",
    "DELETE /api/users/me/tokens/{tokenID}",
    "POST /api/authParams",
    "POST /api/draft-events/{draftEventID}/availability",
    "POST /api/logout",
    "POST /api/users/me/tokens",
    "POST /api/users/sync",
    "POST /api/webhooks/{webhookID}/deliveries/{deliveryID}/retry",
    "POST /api/webhooks/{webhookID}/test",
    "PUT /api/draft-events/{draftEventID}/availability",
    "PUT /api/events/{eventID}/attendees/me",
    "PUT /api/users/me/ical",
];

/// Takes seconds: every operation is called, with new objects each time.
#[rstest]
fn every_change_leaves_one_row_in_the_history(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let world = World::new(club);
    let callers = callers(&world.club, world.service);
    recorded::check_all("booking-service", &world.club, &world, BUILDERS, &callers, WITHOUT_HISTORY);
}

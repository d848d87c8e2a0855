//! The database of the booking-service.

use booking_service::{
    auth::Scope,
    config::Cli,
    schema::{attendees, event_admins, event_tags, events, group_members, groups, rooms, tags, users},
    server,
    sign_in::tokens,
};
use common::time::Clock;
use diesel::prelude::*;
use rstest::rstest;
use service_kit::{
    config::parse,
    database::types::{DbTimestamp, DbUuid},
};

use crate::{
    Backend::{self, Postgres, Sqlite},
    Seeded, Service, lines, number,
};

fn seeded(backend: Backend) -> Seeded {
    let seeded = Seeded::new("booking", backend);
    let output = &seeded.output;
    assert!(
        output.contains("100 users and 20 groups\n") && output.ends_with("2000 events around 2026-11-20\n"),
        "{output}"
    );
    seeded
}

/// Every row, in order.
fn rows(seeded: &Seeded) -> Vec<Vec<String>> {
    let conn = &mut seeded.connect();
    vec![
        lines(
            users::table
                .order(users::id)
                .select((
                    (users::id, users::name, users::display_name, users::icon, users::email),
                    (users::state, users::privileged, users::in_directory),
                    (users::feed_nonce, users::imported_feed_hash),
                    (users::created_at, users::updated_at, users::display_name_changed_at),
                ))
                .load::<(
                    (DbUuid, String, String, String, Option<String>),
                    (i16, bool, bool),
                    (Option<String>, Option<Vec<u8>>),
                    (DbTimestamp, DbTimestamp, DbTimestamp),
                )>(conn),
        ),
        lines(
            groups::table
                .order(groups::id)
                .select((groups::id, groups::kind, groups::name, groups::created_at))
                .load::<(DbUuid, i16, String, DbTimestamp)>(conn),
        ),
        lines(
            group_members::table
                .order((group_members::group_id, group_members::user_id))
                .load::<(DbUuid, DbUuid)>(conn),
        ),
        lines(tags::table.order(tags::id).load::<(DbUuid, String, String, DbTimestamp, DbTimestamp)>(conn)),
        lines(
            rooms::table
                .order(rooms::id)
                .select((
                    rooms::id,
                    rooms::place_key,
                    rooms::starts_at,
                    rooms::ends_at,
                    rooms::reach_from,
                    rooms::verified,
                    rooms::created_by,
                    rooms::created_at,
                ))
                .load::<(DbUuid, String, DbTimestamp, DbTimestamp, DbTimestamp, bool, Option<DbUuid>, DbTimestamp)>(
                    conn,
                ),
        ),
        lines(
            events::table
                .order(events::id)
                .select((
                    (events::id, events::name, events::shared, events::starts_at, events::ends_at),
                    (events::place, events::room_id, events::owns_room, events::group_id),
                    (events::open, events::created_by, events::created_at),
                ))
                .load::<(
                    (DbUuid, String, bool, DbTimestamp, DbTimestamp),
                    (String, DbUuid, bool, DbUuid),
                    (bool, Option<DbUuid>, DbTimestamp),
                )>(conn),
        ),
        lines(
            event_admins::table.order((event_admins::event_id, event_admins::user_id)).load::<(DbUuid, DbUuid)>(conn),
        ),
        lines(event_tags::table.order((event_tags::event_id, event_tags::tag_id)).load::<(DbUuid, DbUuid, bool)>(conn)),
        lines(
            attendees::table
                .order((attendees::event_id, attendees::user_id))
                .load::<(DbUuid, DbUuid, String, DbTimestamp)>(conn),
        ),
    ]
}

#[test]
fn every_database_and_every_run_gives_the_same_rows() {
    let [sqlite, again, postgres] = [Backend::Sqlite, Backend::Sqlite, Backend::Postgres].map(|one| rows(&seeded(one)));
    let counts: Vec<_> = sqlite.iter().map(Vec::len).collect();
    assert_eq!(counts, [100, 21, 400, 40, 500, 2_000, 4_000, 4_000, 30_000]);
    assert!(sqlite == again, "two runs on SQLite differ");
    assert!(sqlite == postgres, "the databases differ");
}

const CONFLICTS: &str = "SELECT count(*) AS n FROM events a \
    JOIN events b ON b.place_key = a.place_key AND a.id < b.id AND a.starts_at < b.ends_at AND b.starts_at < a.ends_at \
    JOIN rooms ra ON ra.id = a.room_id JOIN rooms rb ON rb.id = b.room_id \
    WHERE NOT (a.shared AND b.shared) AND (a.room_id = b.room_id OR ra.verified OR rb.verified)";

#[rstest]
fn the_rows_are_what_the_service_would_have_made(#[values(Sqlite, Postgres)] backend: Backend) {
    let seeded = seeded(backend);
    let conn = &mut seeded.connect();
    assert_eq!(number(conn, CONFLICTS), 0);
    let outside = "SELECT count(*) AS n FROM events e JOIN rooms r ON r.id = e.room_id \
        WHERE e.starts_at < r.starts_at OR e.ends_at > r.ends_at OR e.place_key <> r.place_key \
        OR e.owns_room = r.verified OR e.created_at > e.starts_at";
    assert_eq!(number(conn, outside), 0);
    // The search finds conflicts when there are some: without the word, those who share a room are in each other's way.
    diesel::update(events::table).set(events::shared.eq(false)).execute(conn).unwrap();
    assert!(number(conn, CONFLICTS) > 50);
}

#[rstest]
fn only_an_empty_database_is_seeded(#[values(Sqlite, Postgres)] backend: Backend) {
    let seeded = seeded(backend);
    seeded.refuses_another_run("events");
    assert_eq!(number(&mut seeded.connect(), "SELECT count(*) AS n FROM events"), 2_000);
}

#[rstest]
fn the_service_serves_it(#[values(Sqlite, Postgres)] backend: Backend) {
    let seeded = seeded(backend);
    let now = Clock::default().now();
    let token = |user| {
        let token = tokens::create(&mut seeded.connect(), user, "test", Scope::Read, None, now).unwrap();
        token.reveal().to_owned()
    };
    let (alice, last) = (token(Some("alice")), token(Some("u0099")));
    let arguments = ["booking-service", "--bind", "127.0.0.1:0", "--rate-limit", "0", "--workers", "1"];
    let config = parse::<Cli>(arguments.into_iter().chain(["--database-url", &seeded.url])).unwrap().config;
    let service = Service::start(move || async move { server::start(&config, Clock::default()).await });
    let length = |token: &str, path: &str| service.get(path, token).as_array().unwrap().len();
    let week = "dateBegin=2026-11-20T00:00:00Z&dateEnd=2026-11-27T00:00:00Z";
    assert_eq!(length(&alice, "/api/users"), 100);
    assert_eq!(length(&alice, "/api/groups"), 21);
    assert_eq!(length(&alice, &format!("/api/events?{week}")), 200);
    assert_eq!(length(&alice, &format!("/api/rooms?{week}")), 50);
    assert_eq!(length(&last, "/api/users/me/events?relation=attendees"), 500);
    assert_eq!(service.get("/api/users/me", &alice)["privileged"], true);
    assert_eq!(length(&alice, "/api/users/me/groups"), 6);
}

//! `seed`: a club of a given size.

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;
use std::fmt::Debug;

use booking_service::schema::{attendees, event_admins, event_tags, events, group_members, groups, rooms, tags, users};
use diesel::{prelude::*, sql_query, sql_types::BigInt};
use serde_json::Value;
use service_kit::database::{
    AnyConnection, Url,
    types::{DbTimestamp, DbUuid},
};
use tempfile::TempDir;

use crate::{
    harness::postgres_schema,
    process::{Process, program},
};

/// A database that holds a small club of 20 November 2026.
struct Seeded {
    url: String,
    _folder: TempDir,
}

/// What the command printed, what it complained of, and its exit status.
fn seed(url: &str) -> (String, String, Option<i32>) {
    let arguments = ["--log", "warn", "seed", "--size", "small", "--day", "2026-11-20", "--database-url", url];
    let output = program(&arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code())
}

impl Seeded {
    fn new(backend: Backend) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = match backend {
            Backend::Sqlite => format!("sqlite://{}/club.sqlite3", folder.path().display()),
            Backend::Postgres => postgres_schema(),
        };
        let (said, complaint, status) = seed(&url);
        assert_eq!((complaint.as_str(), status), ("", Some(0)));
        assert!(
            said.contains("100 users and 20 groups\n") && said.ends_with("2000 events around 2026-11-20\n"),
            "{said}"
        );
        Self { url, _folder: folder }
    }

    fn connect(&self) -> AnyConnection {
        self.url.parse::<Url>().unwrap().connect().unwrap()
    }
}

fn lines<T: Debug>(rows: Result<Vec<T>, diesel::result::Error>) -> Vec<String> {
    rows.unwrap().into_iter().map(|row| format!("{row:?}")).collect()
}

/// Every row, in order.
fn rows(seeded: &Seeded) -> Vec<Vec<String>> {
    let conn = &mut seeded.connect();
    vec![
        lines(users::table.order(users::id).load::<(
            DbUuid,
            String,
            String,
            String,
            i16,
            bool,
            Option<String>,
            DbTimestamp,
            DbTimestamp,
        )>(conn)),
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
                .load::<(DbUuid, String, DbTimestamp, DbTimestamp, DbTimestamp, bool, DbUuid, DbTimestamp)>(conn),
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
                    (bool, DbUuid, DbTimestamp),
                )>(conn),
        ),
        lines(
            event_admins::table.order((event_admins::event_id, event_admins::user_id)).load::<(DbUuid, DbUuid)>(conn),
        ),
        lines(event_tags::table.order((event_tags::event_id, event_tags::tag_id)).load::<(DbUuid, DbUuid, bool)>(conn)),
        lines(attendees::table.order((attendees::event_id, attendees::user_id)).load::<(DbUuid, DbUuid, String)>(conn)),
    ]
}

#[test]
fn every_database_and_every_run_gives_the_same_rows() {
    let [sqlite, again, postgres] =
        [Backend::Sqlite, Backend::Sqlite, Backend::Postgres].map(|one| rows(&Seeded::new(one)));
    let counts: Vec<_> = sqlite.iter().map(Vec::len).collect();
    assert_eq!(counts, [100, 21, 400, 40, 500, 2_000, 4_000, 4_000, 30_000]);
    assert!(sqlite == again, "two runs on SQLite differ");
    assert!(sqlite == postgres, "the databases differ");
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

const CONFLICTS: &str = "SELECT count(*) AS n FROM events a \
    JOIN events b ON b.place_key = a.place_key AND a.id < b.id AND a.starts_at < b.ends_at AND b.starts_at < a.ends_at \
    JOIN rooms ra ON ra.id = a.room_id JOIN rooms rb ON rb.id = b.room_id \
    WHERE NOT (a.shared AND b.shared) AND (a.room_id = b.room_id OR ra.verified OR rb.verified)";

fn count(conn: &mut AnyConnection, query: &str) -> i64 {
    sql_query(query).get_result::<Count>(conn).unwrap().n
}

#[rstest]
fn the_rows_are_what_the_service_would_have_made(#[values(Sqlite, Postgres)] backend: Backend) {
    let seeded = Seeded::new(backend);
    let conn = &mut seeded.connect();
    assert_eq!(count(conn, CONFLICTS), 0);
    let outside = "SELECT count(*) AS n FROM events e JOIN rooms r ON r.id = e.room_id \
        WHERE e.starts_at < r.starts_at OR e.ends_at > r.ends_at OR e.place_key <> r.place_key \
        OR e.owns_room = r.verified OR e.created_at > e.starts_at";
    assert_eq!(count(conn, outside), 0);
    // The search finds conflicts when there are some: without the word, those who share a room are in each other's way.
    diesel::update(events::table).set(events::shared.eq(false)).execute(conn).unwrap();
    assert!(count(conn, CONFLICTS) > 50);
}

#[rstest]
fn only_an_empty_database_is_seeded(#[values(Sqlite, Postgres)] backend: Backend) {
    let seeded = Seeded::new(backend);
    let (said, complaint, status) = seed(&seeded.url);
    assert_eq!((said.as_str(), complaint.lines().count(), status), ("", 1, Some(1)), "{complaint}");
    assert!(complaint.contains("is in use"), "{complaint}");
    assert_eq!(count(&mut seeded.connect(), "SELECT count(*) AS n FROM events"), 2_000);
}

fn list(process: &Process, token: &str, path: &str) -> Value {
    let mut wire = process.connect();
    wire.write(&format!(
        "GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n"
    ));
    let (status, text) = wire.read_to_end();
    assert_eq!(status, 200, "{path}: {text}");
    serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[rstest]
fn the_service_serves_it(#[values(Sqlite, Postgres)] backend: Backend) {
    let seeded = Seeded::new(backend);
    let token = |user| {
        let mut made = program(&["token", "create", "--user", user, "--name", "test", "--database-url", &seeded.url]);
        let output = made.output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let (alice, last) = (token("alice"), token("u0099"));
    let process = Process::start(&["--database-url", &seeded.url, "--rate-limit", "0"]);
    let length = |token: &str, path: &str| list(&process, token, path).as_array().unwrap().len();
    let week = "dateBegin=2026-11-20T00:00:00Z&dateEnd=2026-11-27T00:00:00Z";
    assert_eq!(length(&alice, "/api/users"), 100);
    assert_eq!(length(&alice, "/api/groups"), 21);
    assert_eq!(length(&alice, &format!("/api/events?{week}")), 200);
    assert_eq!(length(&alice, &format!("/api/rooms?{week}")), 50);
    assert_eq!(length(&last, "/api/users/me/events?relation=attendees"), 500);
    assert_eq!(list(&process, &alice, "/api/users/me")["privileged"], true);
    assert_eq!(length(&alice, "/api/users/me/groups"), 6);
}

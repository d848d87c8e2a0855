//! What a page reads does not grow with the events and rooms that it does not show.

use booking_service::schema::{event_admins, rooms};
use chrono::TimeDelta;
use diesel::{QueryableByName, prelude::*, sql_query, sql_types::BigInt};
use rstest::rstest;
use service_kit::{
    database::types::{DbTimestamp, DbUuid},
    with_connection,
};

use crate::{
    growth::{OTHERS, Owner, administer_all, delete_long},
    harness::{
        BOB,
        Backend::{self, Postgres, Sqlite},
        Club, KEY, hours_from_now,
    },
    process::{Process, until},
    sign_in::HTML,
};

const PAGES: [&str; 4] = ["/", "/events/new", "/rooms", "/me"];

/// What a new process reads for a page of Bob: the rows of PostgreSQL, or the bytes on SQLite, of which it has none in
/// memory.
fn work(club: &Club, path: &str) -> i64 {
    let separator = if club.url().contains('?') { '&' } else { '?' };
    // The tables are small, so the planner must not choose plans that are only good for small tables.
    let planner = format!("{separator}options=-c%20enable_seqscan%3Doff");
    let url = format!("{}{}", club.url(), if club.is_postgres() { planner.as_str() } else { "" });
    let mut process = Process::start(&["--database-url", &url, "--secret-key", KEY, "--time-zone", "Asia/Tokyo"]);
    let before = read_so_far(club, &process);
    let mut wire = process.connect();
    let head = format!("Host: localhost\r\nConnection: close\r\nAccept: {HTML}\r\nCookie: session=session-of-{BOB}");
    wire.write(&format!("GET {path} HTTP/1.1\r\n{head}\r\n\r\n"));
    let (status, answer) = wire.read_to_end();
    assert_eq!(status, 200, "{answer}");
    if club.is_postgres() {
        // A server process reports what it has read at its end.
        process.signal("TERM");
        process.wait();
        let others = "SELECT count(*) AS rows FROM pg_stat_activity \
            WHERE datname = current_database() AND pid <> pg_backend_pid()";
        until("connections are closed", || number(club, others) == 0);
    }
    read_so_far(club, &process) - before
}

fn number(club: &Club, query: &str) -> i64 {
    #[derive(QueryableByName)]
    struct Number {
        #[diesel(sql_type = BigInt)]
        rows: i64,
    }
    sql_query(query).get_result::<Number>(&mut club.connect()).unwrap().rows
}

fn read_so_far(club: &Club, process: &Process) -> i64 {
    if !club.is_postgres() {
        return process.bytes_read();
    }
    number(club, "SELECT coalesce(sum(seq_tup_read + idx_tup_fetch), 0)::bigint AS rows FROM pg_stat_user_tables")
}

/// Adds events and rooms of Bob, before and after the days that the pages show.
fn add(club: &Club, bob: &Owner, number: i64) {
    for (first, last) in [(-4800, -1000), (1000, 4800)] {
        bob.insert_between(club, number / 2, (first, last));
        let now = DbTimestamp(club.clock.now());
        let new = |n: i64| {
            let start = hours_from_now(club, (last - first) * n / (number / 2) + first);
            let at = |hours| DbTimestamp(start.plus(TimeDelta::hours(hours)));
            (
                (rooms::id.eq(DbUuid::new()), rooms::place.eq("bob"), rooms::place_key.eq("bob")),
                (rooms::starts_at.eq(at(0)), rooms::ends_at.eq(at(2)), rooms::is_long.eq(false)),
                (rooms::reach_from.eq(at(-24)), rooms::verified.eq(true), rooms::created_by.eq(bob.user)),
                (rooms::created_at.eq(now), rooms::updated_at.eq(now), rooms::made_for_event.eq(false)),
            )
        };
        let rows: Vec<_> = (0..number / 2).map(new).collect();
        let mut conn = club.connect();
        with_connection!(&mut conn, c => diesel::insert_into(rooms::table).values(rows).execute(c).unwrap());
    }
    delete_long(club);
    administer_all(club);
}

#[rstest]
fn a_page_reads_no_more_for_ten_times_the_events_and_rooms_of_other_months(
    #[values(Sqlite, Postgres)] backend: Backend,
) {
    let mut club = Club::start(backend);
    let bob = Owner::new(&club, BOB, 1);
    club.stop_all();
    bob.insert_between(&club, 20, (1, 100));
    add(&club, &bob, OTHERS);
    let few = PAGES.map(|path| work(&club, path));
    add(&club, &bob, 9 * OTHERS);
    let administered = event_admins::table.filter(event_admins::user_id.eq(bob.user));
    let administered: i64 = administered.count().get_result(&mut club.connect()).unwrap();
    assert!(administered > 9 * OTHERS, "{administered}");
    let many = PAGES.map(|path| work(&club, path));
    // Sometimes another connection is opened meanwhile, which reads the schema of SQLite.
    let tolerance = if club.is_postgres() { 100 } else { 80_000 };
    for ((path, few), many) in PAGES.into_iter().zip(few).zip(many) {
        // A B-tree of ten times the rows is a level deeper.
        assert!(many * 10 <= few * 15 + tolerance * 10, "{path}: {few} became {many}");
    }
}

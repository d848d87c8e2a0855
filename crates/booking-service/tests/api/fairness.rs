//! No caller holds everybody else up (contract, "Fairness").

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;
use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};

use diesel::connection::SimpleConnection;
use uuid::Uuid;

use crate::{
    builders::{At, event, text},
    harness::{BOB, CAROL, Club, id},
    process::until,
    tokens::{by_token, make_token},
};

/// Requests by token, in flight, of the caller who holds others up.
const COSTLY: usize = 16;

/// And requests for their feed.
const FEEDS: usize = 4;

/// Requests of somebody else meanwhile, one after another.
const OTHERS: usize = 50;

/// Many more events, copies of one.
fn add_events(club: &Club, count: usize) {
    event(club, BOB, At::Place("x"), (1, 2));
    let (id, numbers) = if club.is_postgres() {
        ("gen_random_uuid()", format!("generate_series(1, {count}) AS numbers"))
    } else {
        let rows = format!("SELECT 1 AS n UNION ALL SELECT n + 1 FROM numbers WHERE n < {count}");
        ("randomblob(16)", format!("(WITH RECURSIVE numbers (n) AS ({rows}) SELECT n FROM numbers) AS numbers"))
    };
    let columns = "name, description, shared, starts_at, ends_at, is_long, place, place_key, room_id, owns_room, \
                   group_id, open, sequence, created_by, created_at, updated_at";
    let copy = format!("INSERT INTO events (id, {columns}) SELECT {id}, {columns} FROM events, {numbers}");
    club.connect().batch_execute(&copy).unwrap();
}

/// A filter of 32 comparisons, all of which are made for every event.
fn costly() -> String {
    let comparisons: Vec<_> = (0..32).map(|_| format!("user!={}", Uuid::new_v4())).collect();
    format!("q={}", comparisons.join("%26%26"))
}

/// Takes seconds: each of the costly requests makes 32 comparisons for 3,000 events.
#[rstest]
fn a_user_with_many_tokens_and_a_feed_is_one_caller(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    add_events(&club, 3000);
    // None of the tokens has been seen before; the feed has.
    let tokens: Vec<_> = (0..COSTLY).map(|_| make_token(&club, BOB, "read")).collect();
    let secret = text(&club.by(BOB).get("/api/users/me/ical").expect(200).json()["secret"]);
    let feed = format!("/api/ical/v1/{}{secret}", id(BOB));
    club.anonymous().get(&format!("{feed}?q=event%3D%3D{}", Uuid::new_v4())).expect(200);
    let (stop, sent, answered) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    let repeat = |request: &dyn Fn() -> u16| {
        while !stop.load(Ordering::Relaxed) {
            sent.fetch_add(1, Ordering::Relaxed);
            // One may wait too long.
            answered.fetch_add(usize::from(request() == 200), Ordering::Relaxed);
        }
    };
    let (club, feed, repeat) = (&club, &feed, &repeat);
    thread::scope(|scope| {
        for token in &tokens {
            scope.spawn(move || {
                repeat(&|| by_token(club, token).get(&format!("/api/events?limit=1000&{}", costly())).status);
            });
        }
        for _ in 0..FEEDS {
            scope.spawn(move || repeat(&|| club.anonymous().get(&format!("{feed}?{}", costly())).status));
        }
        until("all are sent", || sent.load(Ordering::Relaxed) >= COSTLY + FEEDS);
        let before = answered.load(Ordering::Relaxed);
        let statuses: Vec<_> = (0..OTHERS).map(|_| club.by(CAROL).get("/api/users/me").status).collect();
        let meanwhile = answered.load(Ordering::Relaxed) - before;
        stop.store(true, Ordering::Relaxed);
        assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
        // If each token were a caller, each of these requests would wait for one of every token. A number and not a time:
        // a slow machine is slow for all of them.
        assert!(meanwhile < OTHERS * (COSTLY + FEEDS) / 4, "{meanwhile} answers to one caller, {OTHERS} to the other");
    });
    assert_eq!(club.by(CAROL).get("/api/users/me").expect(200).json()["userId"], id(CAROL).to_string());
}

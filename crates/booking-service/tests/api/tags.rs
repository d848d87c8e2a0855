//! Tags.

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;
use std::collections::HashSet;

use booking_service::tags::{get_or_create, load};
use chrono::TimeDelta;
use serde_json::{Value, json};
use service_kit::{
    database::{Database, JobOwner, types::DbTimestamp},
    history::{Author, By},
};

use crate::{
    harness::{ALICE, BOB, Club, SUSAN, id},
    plans,
};

/// "pâté" in the composed form (NFC) and in the decomposed form (NFD).
const COMPOSED: &str = "p\u{e2}t\u{e9}";
const DECOMPOSED: &str = "pa\u{302}te\u{301}";

#[rstest]
fn tags_are_made_and_listed_by_name(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    assert_eq!(club.by(BOB).get("/api/tags").expect(200).json(), json!([]));
    for name in ["music", "Music", "五一六", DECOMPOSED, " a "] {
        let made = club.by(BOB).post("/api/tags", json!({"name": name, "locked": true})).expect(201).json();
        assert_eq!(made["name"], name);
        assert_eq!(made["createdAt"], made["updatedAt"]);
        assert!(made["createdAt"].as_str().unwrap().ends_with("+09:00"), "{made}");
    }
    assert_eq!(names(&club), [" a ", "Music", "music", DECOMPOSED, "五一六"]);
}

#[rstest]
fn names_are_unique(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    club.by(BOB).post("/api/tags", json!({"name": COMPOSED})).expect(201);
    for name in [COMPOSED, DECOMPOSED] {
        club.by(ALICE).post("/api/tags", json!({"name": name})).refused(409, "duplicate-name");
    }
    assert_eq!(names(&club), [COMPOSED]);
}

#[rstest]
fn a_name_has_1_to_16_characters(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let post = |body: Value| club.by(BOB).post("/api/tags", body);
    post(json!({"name": "五".repeat(16)})).expect(201);
    for name in [json!("五".repeat(17)), json!(""), json!(" \u{3000}"), json!("a\u{0}"), json!(5), Value::Null] {
        assert_eq!(post(json!({"name": name})).expect(400).pointers(), ["/name"]);
    }
    assert_eq!(post(json!({})).expect(400).pointers(), ["/name"]);
    club.by(BOB)
        .header("content-type", "application/json")
        .send_bytes("POST", "/api/tags", b"{".to_vec())
        .refused(400, "malformed-json");
    club.by(BOB).header("content-type", "text/plain").send_bytes("POST", "/api/tags", b"x".to_vec()).expect(415);
    post(json!({"name": "x", "more": "x".repeat(1 << 20)})).expect(413);
}

#[rstest]
fn tags_need_sign_in(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    club.anonymous().get("/api/tags").refused(401, "not-signed-in");
    club.anonymous().post("/api/tags", json!({"name": "x"})).refused(401, "not-signed-in");
    club.by(SUSAN).post("/api/tags", json!({"name": "x"})).refused(403, "account-inactive");
}

#[rstest]
fn of_simultaneous_creations_one_succeeds(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for round in 0..10 {
        let name = format!("tag{round}");
        let mut statuses: Vec<_> = std::thread::scope(|scope| {
            let runs: Vec<_> =
                (0..6).map(|_| scope.spawn(|| club.by(BOB).post("/api/tags", json!({"name": name})).status)).collect();
            runs.into_iter().map(|run| run.join().unwrap()).collect()
        });
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 409, 409, 409, 409, 409]);
    }
}

fn author(now: DbTimestamp) -> Author {
    Author { actor: Some(id(BOB)), ..Author::new(By::Session, now) }
}

#[rstest]
fn concurrent_requests_create_a_tag_once(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let db = Database::open(&club.config.database_url().unwrap(), club.config.database.limits());
    let now = DbTimestamp(club.clock.now());
    let get = |names: Vec<String>| {
        let db = db.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime
            .block_on(async move {
                db.write(JobOwner::Internal, move |conn| get_or_create(conn, &names, &author(now), now)).await
            })
            .unwrap()
    };
    let found = get(vec![DECOMPOSED.into(), "music".into(), COMPOSED.into(), "music".into()]);
    assert_eq!((&found[0], &found[1]), (&found[2], &found[3]));
    assert_eq!((found[0].1.as_str(), found[1].1.as_str()), (DECOMPOSED, "music"));
    assert_eq!(get(vec!["music".into()]), [found[1].clone()]);
    assert_eq!(get(Vec::new()), []);

    for round in 0..10 {
        let names: Vec<_> = (0..5).map(|n| format!("new{round}-{n}")).collect();
        let all: HashSet<_> = std::thread::scope(|scope| {
            let (names, get) = (&names, &get);
            let runs: Vec<_> = (0..4)
                .map(|run| {
                    let mut names = names.clone();
                    names.rotate_left(run);
                    scope.spawn(move || get(names))
                })
                .collect();
            runs.into_iter().flat_map(|run| run.join().unwrap()).collect()
        });
        assert_eq!(all.len(), 5);
    }
    assert_eq!(names(&club).len(), 52);
}

#[rstest]
fn an_existing_tag_is_returned_unchanged(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let made = club.by(BOB).post("/api/tags", json!({"name": "music"})).expect(201).json();
    club.clock.advance(TimeDelta::hours(1));
    let now = DbTimestamp(club.clock.now());
    get_or_create(&mut club.connect(), &["music", "art"], &author(now), now).unwrap();
    let tags = club.by(BOB).get("/api/tags").expect(200).json();
    assert_eq!(tags[1], made);
    assert_ne!(tags[0]["createdAt"], made["createdAt"]);
}

fn names(club: &Club) -> Vec<String> {
    let tags = club.by(BOB).get("/api/tags").expect(200).json();
    tags.as_array().unwrap().iter().map(|tag| tag["name"].as_str().unwrap().to_owned()).collect()
}

#[rstest]
fn pages_are_not_sorted_out_of_whole_lists(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for page in plans::pages(("alice".to_owned(), id(BOB))) {
        plans::check_page(&club, |conn| {
            load(conn, &page).unwrap();
        });
    }
}

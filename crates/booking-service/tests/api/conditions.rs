//! Entity tags and `If-None-Match` (contract, "Conditional requests and retries"). The tests of `If-Match` are in
//! `editors`.

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;
use std::{
    collections::BTreeMap,
    fs::File,
    io::{Read, Write},
    net::TcpStream,
    time::SystemTime,
};

use chrono::TimeDelta;
use diesel::{RunQueryDsl, connection::SimpleConnection};
use serde_json::json;
use service_kit::database::{AnyConnection, DataVersion};

use crate::{
    builders::{At, event, event_body, group, merge, room, text},
    harness::{ALICE, Answer, BOB, CAROL, Club, DAVE, id},
    process::{PROGRAM, Process},
    tokens::by_token,
};

/// The tag of an answer.
#[track_caller]
pub fn tag(answer: &Answer) -> String {
    answer.header("etag").unwrap_or_else(|| panic!("no tag: {answer:?}")).to_owned()
}

/// The hash of the content in a tag. The fingerprint before it also changes with any other change of the database.
fn content(tag: &str) -> &str {
    let tag = tag.trim_matches('"').split(':').next().unwrap();
    tag.rsplit('.').next().unwrap()
}

/// A member's request with this tag in `If-None-Match`.
fn again(club: &Club, member: &str, path: &str, tag: &str) -> Answer {
    club.by(member).header("if-none-match", tag).get(path)
}

/// The number of statements that the services of this process have sent.
pub fn statements(club: &Club) -> u64 {
    let metrics = club.anonymous().get("/metrics").expect(200).text();
    let line = metrics.lines().find(|line| line.starts_with("db_statements_total ")).unwrap();
    line.rsplit_once(' ').unwrap().1.parse().unwrap()
}

/// Creates an event of BOB with a tag, a room, a group, a token and a feed, and returns the paths that show them.
fn everything(club: &Club) -> Vec<String> {
    let group = group(club, BOB, "g", &[BOB, CAROL]);
    let room = room(club, BOB, "S516", (0, 9));
    let body = merge([
        event_body(club, BOB, At::Room(&room), (1, 2)),
        json!({"groupId": group, "tags": [{"name": "rust", "locked": false}]}),
    ]);
    let event = text(&club.by(BOB).post("/api/events", body).expect(201).json()["eventId"]);
    club.by(BOB).post("/api/users/me/tokens", json!({"name": "bot", "scope": "read"})).expect(201);
    let user = id(BOB);
    let object_paths = [
        format!("/api/events/{event}"),
        format!("/api/rooms/{room}"),
        format!("/api/rooms/{room}/events"),
        format!("/api/groups/{group}"),
        format!("/api/groups/{group}/events"),
        format!("/api/users/{user}"),
        format!("/api/users/{user}/events"),
        format!("/api/users/{user}/groups"),
        feed(club, BOB),
    ];
    let other_paths = [
        "/api/events",
        "/api/rooms",
        "/api/groups",
        "/api/tags",
        "/api/users",
        "/api/users/me",
        "/api/users/me/events",
        "/api/users/me/groups",
        "/api/users/me/ical",
        "/api/users/me/tokens",
        "/api/activity/events",
        "/api/version",
        "/openapi.json",
    ];
    object_paths.into_iter().chain(other_paths.map(str::to_owned)).collect()
}

fn feed(club: &Club, member: &str) -> String {
    let secret = text(&club.by(member).get("/api/users/me/ical").expect(200).json()["secret"]);
    format!("/api/ical/v1/{}{secret}", id(member))
}

/// The status and the headers of an answer that may be compressed, which the client of the other tests does not
/// support.
fn get_headers(club: &Club, path: &str, headers: &[(&str, &str)]) -> (u16, BTreeMap<String, String>) {
    let mut stream = TcpStream::connect(club.origin(0).strip_prefix("http://").unwrap()).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n").unwrap();
    write!(stream, "cookie: session=session-of-{BOB}\r\n").unwrap();
    for (name, value) in headers {
        write!(stream, "{name}: {value}\r\n").unwrap();
    }
    write!(stream, "\r\n").unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.split("\r\n\r\n").next().unwrap().split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let mut headers = BTreeMap::<_, String>::new();
    for (name, value) in lines.map(|line| line.split_once(": ").unwrap()) {
        let all = headers.entry(name.to_lowercase()).or_default();
        *all = if all.is_empty() { value.to_owned() } else { format!("{all}, {value}") };
    }
    (status, headers)
}

/// The path that shows a change, the member who reads it, and the change.
type Change<'a> = (&'a str, &'a str, Box<dyn Fn() -> Answer + 'a>);

#[rstest]
fn an_unchanged_answer_is_304(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for path in everything(&club) {
        let first = club.by(BOB).get(&path).expect(200);
        let known = tag(&first);
        let one_of_two = format!("\"no.such\", W/{known}");
        for value in [known.as_str(), &format!("W/{known}"), &one_of_two, "*"] {
            let second = again(&club, BOB, &path, value).expect(304);
            assert!(second.body.is_empty(), "{path}");
            assert_eq!(content(&tag(&second)), content(&known), "{path}");
            for name in ["cache-control", "vary", "x-request-id"] {
                assert_eq!(second.header(name).is_some(), first.header(name).is_some(), "{path}: {name}");
            }
            assert_eq!(second.header("content-type"), None, "{path}");
        }
        let head = club.by(BOB).header("if-none-match", &known).send("HEAD", &path, None);
        assert_eq!((head.status, content(&tag(&head))), (304, content(&known)), "{path}");
        assert_eq!(content(&tag(&club.by(BOB).send("HEAD", &path, None).expect(200))), content(&known), "{path}");
        // Values that cannot be parsed or do not match are ignored.
        for sent in ["\"no.such\"", "no tag", "", "W/", "\"\""] {
            let second = again(&club, BOB, &path, sent).expect(200);
            assert_eq!(second.body, first.body, "{path}: {sent}");
        }
    }
}

#[rstest]
fn an_unchanged_list_is_not_read(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    everything(&club);
    // The number of statements that load the list, begin the transaction and end it. The other one looks up the caller.
    for (path, saved) in [("/api/tags", 3), ("/api/events", 4), ("/api/groups", 6), ("/api/users", 3)] {
        // On PostgreSQL all databases of the server share one data version, and other tests write to theirs.
        let mut attempts = 0..500;
        let saves_statements = attempts.any(|_| {
            let before = statements(&club);
            let known = tag(&club.by(BOB).get(path).expect(200));
            let between = statements(&club);
            again(&club, BOB, path, &known).expect(304);
            let after = statements(&club);
            assert!(after - between <= between - before + 1, "{path}");
            (between - before, after - between) == (saved + 1, 1)
        });
        assert!(saves_statements, "{path}");
        assert!(club.is_postgres() || attempts.start == 1, "{path}: on SQLite nobody else writes");
    }
    // A table that is not read may be missing.
    if let conn @ AnyConnection::Sqlite(_) = &mut club.connect() {
        let known = tag(&club.by(BOB).get("/api/tags").expect(200));
        conn.batch_execute("PRAGMA legacy_alter_table = ON; ALTER TABLE tags RENAME TO elsewhere").unwrap();
        again(&club, BOB, "/api/tags", &known).expect(304);
        club.by(BOB).get("/api/tags").expect(500);
    }
}

#[rstest]
fn a_change_through_the_service_changes_the_tag(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    everything(&club);
    let event = event(&club, BOB, At::Place("x"), (3, 4));
    let path = format!("/api/events/{event}");
    let body = event_body(&club, BOB, At::Place("x"), (3, 4));
    let changes: [Change<'_>; 8] = [
        (&path, BOB, Box::new(|| club.by(BOB).put(&path, merge([body.clone(), json!({"name": "other"})])))),
        (&path, BOB, Box::new(|| club.by(CAROL).post(&format!("{path}/tags"), json!({"name": "new"})))),
        (&path, BOB, Box::new(|| club.by(CAROL).put(&format!("{path}/attendees/me"), json!({"schedule": "absent"})))),
        ("/api/tags", CAROL, Box::new(|| club.by(BOB).post("/api/tags", json!({"name": "newer"})))),
        (
            "/api/users/me",
            DAVE,
            Box::new(|| {
                club.by(ALICE).patch(&format!("/api/users/{}/privileged", id(DAVE)), json!({"privileged": true}))
            }),
        ),
        ("/api/users/me/ical", BOB, Box::new(|| club.by(BOB).put("/api/users/me/ical", json!({})))),
        (
            "/api/users/me/tokens",
            BOB,
            Box::new(|| club.by(BOB).post("/api/users/me/tokens", json!({"name": "x", "scope": "read"}))),
        ),
        ("/api/events", CAROL, Box::new(|| club.by(BOB).delete(&path))),
    ];
    for (path, reader, change) in changes {
        let known = tag(&club.by(reader).get(path).expect(200));
        assert!(change().status < 300, "{path}");
        let now = again(&club, reader, path, &known).expect(200);
        assert_ne!(content(&tag(&now)), content(&known), "{path}");
        again(&club, reader, path, &tag(&now)).expect(304);
    }
}

#[rstest]
fn a_standby_server_has_no_data_version(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    // A standby does not report running transactions, so its snapshots look alike.
    if club.is_postgres() {
        let conn = &mut club.connect();
        let up = include_str!("../../migrations/postgres/2026-11-20-030000_conditions/up.sql");
        conn.batch_execute(
            "CREATE FUNCTION pg_is_in_recovery() RETURNS boolean LANGUAGE sql AS 'SELECT true';
                 SELECT set_config('search_path', current_schema() || ', pg_catalog', false);
                 DROP VIEW last_change",
        )
        .unwrap();
        conn.batch_execute(&up[up.find("CREATE VIEW last_change").unwrap()..]).unwrap();
        let mut data_version = || diesel::select(DataVersion).get_result::<String>(conn).unwrap();
        assert_ne!(data_version(), data_version());
        let known = tag(&club.by(BOB).get("/api/events").expect(200));
        again(&club, BOB, "/api/events", &known).expect(304);
    }
}

#[rstest]
fn a_change_by_hand_changes_the_tag(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    everything(&club);
    let conn = &mut club.connect();
    for (path, change) in [
        ("/api/users", "UPDATE users SET display_name = 'by hand' WHERE name = 'dave'"),
        ("/api/users/me/tokens", "UPDATE api_tokens SET name = 'by hand'"),
        ("/api/users/me/tokens", "DELETE FROM api_tokens"),
        ("/api/groups", "UPDATE groups SET description = 'by hand' WHERE name = 'g'"),
        (
            "/api/groups",
            "UPDATE group_members SET user_id = (SELECT id FROM users WHERE name = 'dave') \
                WHERE user_id = (SELECT id FROM users WHERE name = 'carol')",
        ),
        ("/api/groups", "DELETE FROM group_members"),
        ("/api/groups", "DELETE FROM group_admins"),
        ("/api/tags", "UPDATE tags SET name = 'by hand'"),
        ("/api/rooms", "UPDATE rooms SET verified = NOT verified"),
        ("/api/rooms", "DELETE FROM room_admins"),
        ("/api/events", "UPDATE events SET description = 'by hand'"),
        ("/api/events", "UPDATE event_tags SET locked = NOT locked"),
        ("/api/events", "DELETE FROM event_tags"),
        ("/api/events", "DELETE FROM event_admins"),
        ("/api/events", "DELETE FROM attendees"),
        ("/api/tags", "DELETE FROM tags"),
        ("/api/events", "DELETE FROM events"),
    ] {
        let known = tag(&club.by(BOB).get(path).expect(200));
        conn.batch_execute(change).unwrap();
        let now = again(&club, BOB, path, &known).expect(200);
        assert_ne!(content(&tag(&now)), content(&known), "{change}");
    }
}

#[rstest]
fn an_answer_that_time_has_changed_is_sent(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    event(&club, BOB, At::Place("x"), (1, 2));
    let feed = feed(&club, BOB);
    let in_two_days = club.clock.now().plus(TimeDelta::days(2));
    let body = json!({"name": "bot", "scope": "read", "expiresAt": in_two_days});
    let token = text(&club.by(BOB).post("/api/users/me/tokens", body).expect(201).json()["token"]);
    let (recent, calendar) = (club.by(BOB).get("/api/activity/events").expect(200), club.anonymous().get(&feed));
    let users = by_token(&club, &token).get("/api/users").expect(200);
    let by_bot = || by_token(&club, &token).header("if-none-match", &tag(&users)).get("/api/users");
    by_bot().expect(304);
    club.clock.advance(TimeDelta::days(6));
    by_bot().refused(401, "bad-credentials");
    again(&club, BOB, "/api/activity/events", &tag(&recent)).expect(304);
    club.clock.advance(TimeDelta::days(2));
    let now = again(&club, BOB, "/api/activity/events", &tag(&recent)).expect(200);
    assert_eq!(now.json(), json!([]));
    again(&club, BOB, &feed, &tag(&calendar)).expect(304);
    club.clock.advance(TimeDelta::days(100));
    assert!(!again(&club, BOB, &feed, &tag(&calendar)).expect(200).text().contains("BEGIN:VEVENT"));
}

#[rstest]
fn the_tag_of_one_caller_reveals_nothing_to_another(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let bobs_group = group(&club, BOB, "g", &[BOB]);
    let body = merge([event_body(&club, BOB, At::Place("x"), (1, 2)), json!({"groupId": bobs_group})]);
    club.by(BOB).post("/api/events", body).expect(201);
    for path in ["/api/users/me", "/api/users/me/events", "/api/users/me/groups", "/api/users/me/ical"] {
        let known = tag(&club.by(BOB).get(path).expect(200));
        let carols = again(&club, CAROL, path, &known).expect(200);
        assert_eq!(carols.body, club.by(CAROL).get(path).body, "{path}");
    }
    // Equal content has another fingerprint for each caller.
    let [bobs, carols] = [BOB, CAROL].map(|member| tag(&club.by(member).get("/api/tags").expect(200)));
    assert_eq!(content(&bobs), content(&carols));
    assert_ne!(bobs, carols);
}

#[rstest]
fn authorization_comes_before_the_tag(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let path = format!("/api/events/{}", event(&club, BOB, At::Place("x"), (1, 2)));
    let known = tag(&club.by(BOB).get(&path).expect(200));
    for sent in [known.as_str(), "*"] {
        club.anonymous().header("if-none-match", sent).get(&path).refused(401, "not-signed-in");
    }
    club.connect().batch_execute("UPDATE users SET state = 2 WHERE name = 'bob'").unwrap();
    for sent in [known.as_str(), "*"] {
        again(&club, BOB, &path, sent).refused(403, "account-inactive");
    }
    club.connect().batch_execute("UPDATE users SET state = 1 WHERE name = 'bob'").unwrap();
    again(&club, BOB, &path, &known).expect(304);
    club.by(BOB).delete(&path).expect(204);
    for sent in [known.as_str(), "*"] {
        again(&club, BOB, &path, sent).refused(404, "not-found");
    }
}

#[rstest]
fn replicas_have_the_same_tags_and_other_options_have_others(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut club = club;
    let twin = club.start_another();
    club.config.time_zone = chrono_tz::Europe::Paris;
    let elsewhen = club.start_another();
    club.config.time_zone = chrono_tz::Asia::Tokyo;
    club.config.server.public_url = Some("https://rooms.example/".parse().unwrap());
    let elsewhere = club.start_another();
    everything(&club);
    for (path, other) in [("/api/events", elsewhen), ("/api/users", elsewhere)] {
        let here = || club.by(BOB).get(path).expect(200);
        let there = |service: usize, tag: &str| club.by(BOB).at(service).header("if-none-match", tag).get(path);
        // The fingerprints are also equal. On PostgreSQL other tests may write in between.
        assert!((0..500).any(|_| tag(&here()) == tag(&club.by(BOB).at(twin).get(path))), "{path}");
        there(twin, &tag(&here())).expect(304);
        let differs = there(other, &tag(&here())).expect(200);
        assert_ne!(content(&tag(&differs)), content(&tag(&here())));
    }
}

#[rstest]
fn another_build_has_other_tags(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    // On PostgreSQL other tests change the data version.
    if !club.is_postgres() {
        let (file, url) = (club.folder().join("program"), club.config.database.url.as_ref().unwrap().reveal());
        std::fs::copy(PROGRAM, &file).unwrap();
        let known = || {
            let mut process = Process::spawn_at(&file, &["--database-url", url]);
            process.until_it_listens();
            let mut wire = process.connect();
            let head = format!("Host: localhost\r\nConnection: close\r\nCookie: session=session-of-{BOB}");
            wire.write(&format!("GET /api/events HTTP/1.1\r\n{head}\r\n\r\n"));
            let (status, answer) = wire.read_to_end();
            assert_eq!(status, 200, "{answer}");
            let tag = answer.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
            tag.to_owned()
        };
        let first = known();
        assert_eq!(known(), first, "after a restart");
        // Another time of the program's file means another build, whose answers may differ.
        File::options().write(true).open(&file).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let other = known();
        assert_eq!((content(&other), other != first), (content(&first), true));
    }
}

#[rstest]
fn a_compressed_answer_has_its_own_tag(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    everything(&club);
    // Short answers are not compressed.
    let long = json!({"description": "x".repeat(2000)});
    club.by(BOB).post("/api/events", merge([event_body(&club, BOB, At::Place("Discord"), (1, 2)), long])).expect(201);
    let plain = tag(&club.by(BOB).get("/api/events").expect(200));
    for coding in ["gzip", "br", "zstd"] {
        let (status, headers) = get_headers(&club, "/api/events", &[("accept-encoding", coding)]);
        assert_eq!((status, headers["content-encoding"].as_str()), (200, coding));
        assert!(headers["vary"].to_lowercase().contains("accept-encoding"), "{headers:?}");
        let own = &headers["etag"];
        assert!(own.ends_with(&format!(":{coding}\"")) && content(own) == content(&plain), "{own}");
        let headers = [("accept-encoding", coding), ("if-none-match", own)];
        let (status, headers) = get_headers(&club, "/api/events", &headers);
        assert_eq!((status, headers.get("content-encoding")), (304, None));
        assert!(headers["etag"].ends_with(&format!(":{coding}\"")), "{headers:?}");
        // The tag of one coding is valid for the content in any coding.
        again(&club, BOB, "/api/events", own).expect(304);
    }
}

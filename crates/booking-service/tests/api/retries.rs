//! Safe retries: `Idempotency-Key` (contract, "Conditional requests and retries").

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;
use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use booking_service::schema::{events, places, rooms};
use chrono::TimeDelta;
use diesel::{connection::SimpleConnection, dsl::sql, prelude::*, sql_types::Integer};
use serde_json::{Value, json};
use service_kit::{
    database::{AnyConnection, schema::idempotency_keys, types::DbTimestamp},
    guard::idempotency::delete_expired,
};

use crate::{
    builders::{At, each, event_body, merge, room_body, text, verified_room},
    harness::{ALICE, Answer, BOB, CAROL, Client, Club, id},
    process::until,
    sync::{start_with_file, with_members},
    tokens::{by_token, make_token},
};

const KEY: &str = "7b0f0d6e";

/// A request with a key.
fn keyed<'a>(client: Client<'a>, key: &str) -> Client<'a> {
    client.header("idempotency-key", key)
}

/// Asserts that an answer is a replay of the first one.
#[track_caller]
fn assert_replayed(first: &Answer, second: &Answer) {
    let replayed = |answer: &Answer| answer.header("idempotency-replayed").map(str::to_owned);
    assert_eq!((replayed(first), replayed(second)), (None, Some("true".to_owned())));
    assert_eq!((second.status, &second.body), (first.status, &first.body));
    for name in ["location", "content-type", "cache-control", "set-cookie"] {
        assert_eq!(second.header(name), first.header(name), "{name}");
    }
}

/// A stored answer: id, hash of the request, headers, body, whether it is encrypted.
type StoredAnswer = (Vec<u8>, Vec<u8>, Option<String>, Option<Vec<u8>>, bool);

/// The number of events, including deleted ones.
fn count_events(club: &Club) -> i64 {
    events::table.count().get_result(&mut club.connect()).unwrap()
}

fn count_keys(club: &Club) -> i64 {
    idempotency_keys::table.count().get_result(&mut club.connect()).unwrap()
}

fn body(club: &Club) -> Value {
    event_body(club, BOB, At::Place("x"), (1, 2))
}

/// Forwards connections to the service. It drops the complete answers of the first `drops` requests, so that the client
/// does not receive them although the service has processed the requests.
struct Proxy {
    address: String,
    dropped: Arc<AtomicUsize>,
}

impl Proxy {
    fn start(service: &str, drops: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (service, dropped) = (service.strip_prefix("http://").unwrap().to_owned(), Arc::new(AtomicUsize::new(0)));
        let count = dropped.clone();
        // The thread ends with the process.
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (mut from_client, mut to_client) = (client.try_clone().unwrap(), client);
                let mut upstream = TcpStream::connect(&service).unwrap();
                let mut to_service = upstream.try_clone().unwrap();
                std::thread::spawn(move || std::io::copy(&mut from_client, &mut to_service).is_ok());
                let mut answer = Vec::new();
                upstream.read_to_end(&mut answer).unwrap();
                if count.load(Ordering::SeqCst) < drops {
                    assert!(answer.starts_with(b"HTTP/1.1 201"), "{}", String::from_utf8_lossy(&answer));
                    count.fetch_add(1, Ordering::SeqCst);
                } else {
                    to_client.write_all(&answer).unwrap();
                }
                to_client.shutdown(std::net::Shutdown::Both).ok();
            }
        });
        Self { address, dropped }
    }
}

/// Repeats a request until there is an answer. Returns the status, the text and the number of requests.
fn until_answered(proxy: &Proxy, path: &str, key: Option<&str>, body: &Value) -> (u16, String, usize) {
    let body = body.to_string();
    let key = key.map_or_else(String::new, |key| format!("idempotency-key: {key}\r\n"));
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncookie: session=session-of-{BOB}\r\n{key}\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    for requests in 1..10 {
        let mut stream = TcpStream::connect(&proxy.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        // A reset connection means that there is no answer.
        if stream.read_to_string(&mut answer).is_ok() && !answer.is_empty() {
            return (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer, requests);
        }
    }
    panic!("never answered");
}

#[rstest]
fn an_answer_is_replayed(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut club = club;
    let path = "/api/events";
    let first = keyed(club.by(BOB), KEY).post(path, body(&club)).expect(201);
    assert!(first.header("location").is_some());
    assert_replayed(&first, &keyed(club.by(BOB), KEY).post(path, body(&club)));
    // By another replica that started later.
    let twin = club.start_another();
    assert_replayed(&first, &keyed(club.by(BOB).at(twin), KEY).post(path, body(&club)));
    assert_eq!(count_events(&club), 1);
    // Later changes of the event do not matter.
    club.by(BOB).delete(first.header("location").unwrap()).expect(204);
    assert_replayed(&first, &keyed(club.by(BOB), KEY).post(path, body(&club)));
    assert_eq!(count_events(&club), 1);
}

#[rstest]
fn a_key_stands_for_one_request_of_one_caller_to_one_path(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let rooms = || room_body(&club, BOB, "S516", (1, 2));
    let first = keyed(club.by(BOB), KEY).post("/api/rooms", rooms()).expect(201);
    let other = merge([rooms(), json!({"place": "S517"})]);
    keyed(club.by(BOB), KEY).post("/api/rooms", other).refused(422, "idempotency-key-reused");
    keyed(club.by(BOB), KEY).post("/api/rooms?x=1", rooms()).refused(422, "idempotency-key-reused");
    // Keys are separate for each caller and path.
    let carols = keyed(club.by(CAROL), KEY).post("/api/rooms", rooms()).expect(201);
    assert_ne!(carols.json()["roomId"], first.json()["roomId"]);
    keyed(club.by(BOB), KEY).post("/api/events", body(&club)).expect(201);
    let second = keyed(club.by(BOB), "another").post("/api/rooms", rooms()).expect(201);
    assert_ne!(second.json()["roomId"], first.json()["roomId"]);
    assert_replayed(&first, &keyed(club.by(BOB), KEY).post("/api/rooms", rooms()));
    // Other methods than POST ignore the header.
    for _ in 0..2 {
        let changed = keyed(club.by(BOB), KEY).put("/api/users/me/ical", json!({})).expect(200);
        assert_eq!(changed.header("idempotency-replayed"), None);
    }
    keyed(club.by(BOB), "").put("/api/users/me/ical", json!({})).expect(200);
}

#[rstest]
fn valid_and_invalid_keys(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let longest = "k".repeat(255);
    for good in ["k", &longest, "8e03978e-40d5-43e8-bc93-6894a57f9324", "\"quoted\"", "a b"] {
        let first = keyed(club.by(BOB), good).post("/api/rooms", room_body(&club, BOB, "S516", (1, 2))).expect(201);
        assert_replayed(&first, &keyed(club.by(BOB), good).post("/api/rooms", room_body(&club, BOB, "S516", (1, 2))));
    }
    let before = count_keys(&club);
    let too_long = "k".repeat(256);
    for bad in [keyed(club.by(BOB), ""), keyed(club.by(BOB), &too_long), keyed(keyed(club.by(BOB), "a"), "a")] {
        let refused = bad.post("/api/tags", json!({"name": "never"})).expect(400);
        assert_eq!(refused.pointers(), ["Idempotency-Key"]);
    }
    assert_eq!((club.by(BOB).get("/api/tags").json(), count_keys(&club)), (json!([]), before));
    // A request that cannot be parsed stores no key.
    keyed(club.by(BOB), KEY).post("/api/tags", json!({})).expect(400);
    keyed(club.by(BOB), KEY).post("/api/tags", json!({"name": "good"})).expect(201);
}

#[rstest]
fn duplicates_at_once_have_one_effect(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut club = club;
    let replicas = if club.is_postgres() { club.start_another() + 1 } else { 1 };
    let body = body(&club);
    let barrier = std::sync::Barrier::new(20);
    let answers: Vec<_> = std::thread::scope(|scope| {
        let (club, body, barrier) = (&club, &body, &barrier);
        let send = move |n: usize| {
            scope.spawn(move || {
                barrier.wait();
                loop {
                    let answer = keyed(club.by(BOB).at(n % replicas), KEY).post("/api/events", body.clone());
                    // A request that waited too long for the first one is repeated.
                    if answer.status != 503 {
                        return answer;
                    }
                }
            })
        };
        let threads: Vec<_> = (0..20).map(send).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let (replayed, first): (Vec<_>, Vec<_>) =
        answers.iter().partition(|answer| answer.header("idempotency-replayed").is_some());
    assert_eq!((first.len(), replayed.len()), (1, 19));
    for answer in replayed {
        assert_replayed(first[0], answer);
    }
    assert_eq!(count_events(&club), 1);
}

#[rstest]
fn a_refusal_is_replayed_and_has_no_effect(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let room = verified_room(&club, ALICE, "S516", (0, 9));
    let taken = event_body(&club, BOB, At::Room(&room), (1, 3));
    let first = club.by(CAROL).post("/api/events", taken.clone()).expect(201).json();
    // The refused request creates no tags.
    let body = merge([taken, json!({"tags": [{"name": "never"}]})]);
    let refused = keyed(club.by(BOB), KEY).post("/api/events", body.clone());
    refused.clone().refused(409, "room-conflict");
    club.by(CAROL).delete(&format!("/api/events/{}", text(&first["eventId"]))).refused(403, "forbidden");
    club.by(ALICE).delete(&format!("/api/events/{}", text(&first["eventId"]))).expect(204);
    assert_replayed(&refused, &keyed(club.by(BOB), KEY).post("/api/events", body.clone()));
    assert_eq!(club.by(BOB).get("/api/tags").json(), json!([]));
    assert_eq!(count_events(&club), 1);
    keyed(club.by(BOB), "another").post("/api/events", body).expect(201);
    // A violation that only the operation finds: the group does not exist.
    let unknown = merge([event_body(&club, BOB, At::Place("y"), (4, 5)), json!({"groupId": id("nothing")})]);
    let refused = keyed(club.by(BOB), "third").post("/api/events", unknown.clone()).expect(400);
    let again = keyed(club.by(BOB), "third").post("/api/events", unknown).expect(400);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.pointers(), refused.pointers());
    let rooms: i64 = rooms::table.filter(rooms::place.eq("y")).count().get_result(&mut club.connect()).unwrap();
    assert_eq!(rooms, 0);
    // The import inserts the place before it finds that two rows overlap.
    let table = "Subject,Start date,End date,Start time,End time,Location\n\
            x,2027/04/04,2027/04/04,18:00,21:00,Nowhere\nx,2027/04/04,2027/04/04,20:00,22:00,Nowhere\n";
    let client = keyed(club.by(ALICE), KEY).header("content-type", "text/csv");
    client.send_bytes("POST", "/api/rooms/all", table.into()).refused(400, "bad-import");
    let places: i64 = places::table.find("nowhere").count().get_result(&mut club.connect()).unwrap();
    assert_eq!(places, 0);
    let again = client.send_bytes("POST", "/api/rooms/all", table.into()).expect(400);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
}

#[rstest]
fn a_server_error_is_not_stored(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut club = club;
    let replica = start_with_file(&mut club, &with_members(&[], &[]));
    let file = club.config.directory.directory_file.clone().unwrap();
    let good = std::fs::read(&file).unwrap();
    std::fs::write(&file, "{").unwrap();
    let sync = || keyed(club.by(ALICE).at(replica), KEY).send("POST", "/api/users/sync", None);
    sync().refused(503, "unavailable");
    assert_eq!(count_keys(&club), 0);
    std::fs::write(&file, good).unwrap();
    let first = sync().expect(201);
    assert_replayed(&first, &sync());
}

#[rstest]
fn a_key_is_free_after_a_day(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let send = |name: &str| keyed(club.by(BOB), KEY).post("/api/tags", json!({ "name": name }));
    let first = send("one").expect(201);
    club.clock.advance(TimeDelta::hours(23));
    assert_replayed(&first, &send("one"));
    send("two").refused(422, "idempotency-key-reused");
    club.clock.advance(TimeDelta::hours(2));
    let second = send("two").expect(201);
    assert_eq!(second.header("idempotency-replayed"), None);
    assert_replayed(&second, &send("two"));
    club.clock.advance(TimeDelta::hours(23));
    assert_replayed(&second, &send("two"));
    assert_eq!(count_keys(&club), 1);
}

/// Adds keys of the caller of the first stored key, with answers of `size` bytes.
fn add_keys(club: &Club, keys: usize, size: i32) {
    let conn = &mut club.connect();
    let (caller, expires): (Vec<u8>, DbTimestamp) = idempotency_keys::table
        .select((idempotency_keys::caller_hash, idempotency_keys::expires_at))
        .first(conn)
        .unwrap();
    let row = |n: usize| {
        (
            idempotency_keys::id.eq(n.to_be_bytes().to_vec()),
            idempotency_keys::request_hash.eq(Vec::new()),
            idempotency_keys::expires_at.eq(expires),
            idempotency_keys::caller_hash.eq(caller.clone()),
            idempotency_keys::size.eq(size),
        )
    };
    conn.transaction(|conn| {
        (0..keys)
            .try_for_each(|n| diesel::insert_into(idempotency_keys::table).values(row(n)).execute(conn).map(|_| ()))
    })
    .unwrap();
}

/// Asserts that a request is refused because its caller has too many keys, with the time of `Retry-After`.
#[track_caller]
fn too_many_keys(answer: &Answer) {
    let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((86_000..=86_400).contains(&wait), "{wait}");
    answer.clone().refused(429, "too-many-keys");
}

#[rstest]
fn a_caller_has_at_most_1000_keys(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let send = |member: &str, n: usize| {
        keyed(club.by(member), &format!("k{n}")).post("/api/tags", json!({"name": format!("{member}{n}")}))
    };
    let first = send(BOB, 0).expect(201);
    add_keys(&club, 998, 0);
    send(BOB, 1).expect(201);
    too_many_keys(&send(BOB, 2));
    assert_eq!(count_keys(&club), 1000);
    // Stored answers are still replayed, and the refused request had no effect.
    assert_replayed(&first, &send(BOB, 0));
    assert_eq!(each(&club.by(BOB).get("/api/tags").json(), "name").len(), 2);
    // Other callers, and requests without a key, are not limited.
    send(CAROL, 0).expect(201);
    club.by(BOB).post("/api/tags", json!({"name": "bob2"})).expect(201);
    // Expired keys do not count, whether they have been deleted or not.
    club.clock.advance(TimeDelta::hours(24));
    send(BOB, 3).expect(201);
}

#[rstest]
fn an_expired_key_counts_like_a_new_one(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let send = |key: &str, name: &str| keyed(club.by(BOB), key).post("/api/tags", json!({ "name": name }));
    send("old", "one").expect(201);
    club.clock.advance(TimeDelta::hours(25));
    send("new", "two").expect(201);
    let old = idempotency_keys::table.filter(idempotency_keys::expires_at.le(DbTimestamp(club.clock.now())));
    let row: (Vec<u8>, DbTimestamp) =
        old.select((idempotency_keys::id, idempotency_keys::expires_at)).first(&mut club.connect()).unwrap();
    // The rows are made after the first one that is found, so the expired one has to be out of the way.
    let (conn, again) = (&mut club.connect(), DbTimestamp(club.clock.now().plus(TimeDelta::hours(24))));
    diesel::update(idempotency_keys::table.find(&row.0))
        .set(idempotency_keys::expires_at.eq(again))
        .execute(conn)
        .unwrap();
    add_keys(&club, 999, 0);
    diesel::update(idempotency_keys::table.find(&row.0))
        .set(idempotency_keys::expires_at.eq(row.1))
        .execute(conn)
        .unwrap();
    too_many_keys(&send("old", "three"));
}

#[rstest]
fn a_callers_answers_take_at_most_4_mib(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let send = |member: &str, n: usize| {
        keyed(club.by(member), &format!("k{n}")).post("/api/tags", json!({"name": format!("{member}{n}")}))
    };
    let first = send(BOB, 0).expect(201);
    add_keys(&club, 3, 1 << 20);
    send(BOB, 1).expect(201);
    let last = idempotency_keys::table.find(0_usize.to_be_bytes().to_vec());
    diesel::update(last).set(idempotency_keys::size.eq(2 << 20)).execute(&mut club.connect()).unwrap();
    too_many_keys(&send(BOB, 2));
    assert_replayed(&first, &send(BOB, 0));
    send(CAROL, 0).expect(201);
    club.clock.advance(TimeDelta::hours(24));
    send(BOB, 2).expect(201);
}

#[rstest]
fn a_long_refusal_is_stored_compressed_with_its_first_100_violations(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let unknown: Vec<_> = (0..3000).map(|n| id(&format!("nobody {n}"))).collect();
    let group = json!({"name": "g", "description": "", "open": false, "members": unknown, "admins": [id(BOB)]});
    let send = || keyed(club.by(BOB), KEY).post("/api/groups", group.clone());
    let first = send().expect(400);
    let problem = first.json();
    assert_eq!((problem["violations"].as_array().unwrap().len(), &problem["moreViolations"]), (100, &json!(2900)));
    assert_eq!(first.header("cache-control"), Some("no-store"));
    assert_replayed(&first, &send());
    let size: i32 = idempotency_keys::table.select(idempotency_keys::size).first(&mut club.connect()).unwrap();
    let size = usize::try_from(size).unwrap();
    assert!(size > 0 && size < first.body.len() / 2, "{size} of {}", first.body.len());
}

#[rstest]
fn expired_keys_are_deleted_in_steps(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let send = |n: usize| keyed(club.by(BOB), &format!("k{n}")).post("/api/tags", json!({"name": format!("t{n}")}));
    for n in 0..5 {
        send(n).expect(201);
    }
    club.clock.advance(TimeDelta::hours(12));
    let late = send(5).expect(201);
    club.clock.advance(TimeDelta::hours(12));
    let (conn, now) = (&mut club.connect(), club.clock.now());
    let mut delete = |limit| delete_expired(conn, now, limit).unwrap();
    assert_eq!((delete(2), delete(2), delete(2), delete(2)), (2, 2, 1, 0));
    assert_eq!(count_keys(&club), 1);
    assert_replayed(&late, &send(5));
    assert_eq!(each(&club.by(BOB).get("/api/tags").json(), "name").len(), 6);
}

#[rstest]
fn a_reused_key_is_not_deleted(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    // SQLite has only one writer.
    if club.is_postgres() {
        let send = || keyed(club.by(BOB), KEY).post("/api/tags", json!({"name": "t"}));
        send().expect(201);
        club.clock.advance(TimeDelta::hours(25));
        let (now, other) = (club.clock.now(), &mut club.connect());
        // Like a request that reuses the expired key, whose transaction commits while the row is being deleted.
        other.batch_execute("BEGIN").unwrap();
        let again = DbTimestamp(now.plus(TimeDelta::hours(24)));
        diesel::update(idempotency_keys::table).set(idempotency_keys::expires_at.eq(again)).execute(other).unwrap();
        let pid: i32 = diesel::select(sql::<Integer>("pg_backend_pid()")).get_result(other).unwrap();
        std::thread::scope(|scope| {
            let deletion = scope.spawn(|| delete_expired(&mut club.connect(), now, 200).unwrap());
            let waits = format!("SELECT 1 / count(*) FROM pg_stat_activity WHERE {pid} = ANY(pg_blocking_pids(pid))");
            until("it waits for the row", || club.connect().batch_execute(&waits).is_ok());
            other.batch_execute("COMMIT").unwrap();
            assert_eq!(deletion.join().unwrap(), 0);
        });
        assert_eq!(count_keys(&club), 1);
    }
}

#[rstest]
fn a_new_token_is_replayed_and_stored_encrypted(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let key = "a-key-that-is-nowhere";
    // Base64 has no blanks.
    let name = "of a bot";
    let send =
        |client: Client<'_>| keyed(client, key).post("/api/users/me/tokens", json!({"name": name, "scope": "write"}));
    let first = send(club.by(BOB)).expect(201);
    let token = text(&first.json()["token"]);
    let second = send(club.by(BOB));
    assert_replayed(&first, &second);
    assert_eq!(second.header("cache-control"), Some("no-store"));
    assert_eq!(each(&club.by(BOB).get("/api/users/me/tokens").json(), "name"), [name]);
    by_token(&club, &token).get("/api/users/me").expect(200);
    let secret = &token.strip_prefix("clubbooking_").unwrap()[..20];
    let kept: Vec<StoredAnswer> = idempotency_keys::table
        .select((
            idempotency_keys::id,
            idempotency_keys::request_hash,
            idempotency_keys::headers,
            idempotency_keys::body,
            idempotency_keys::sealed,
        ))
        .load(&mut club.connect())
        .unwrap();
    assert!(kept.len() == 1 && kept[0].4);
    for (id, request, headers, body, _) in &kept {
        for column in [id, request, &headers.clone().unwrap().into_bytes(), &body.clone().unwrap()] {
            let has = |text: &str| column.windows(text.len()).any(|part| part == text.as_bytes());
            assert!(!has(secret) && !has(key) && !has(name), "{}", String::from_utf8_lossy(column));
        }
    }
    // A token may not create tokens, so it also gets no replay of an answer with a token.
    send(by_token(&club, &token)).refused(403, "forbidden");
}

#[rstest]
fn a_caller_who_lost_the_right_gets_no_replay(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let token = make_token(&club, BOB, "write");
    let send = || keyed(by_token(&club, &token), KEY).post("/api/tags", json!({"name": "x"}));
    let first = send().expect(201);
    assert_replayed(&first, &send());
    let id = text(&club.by(BOB).get("/api/users/me/tokens").json()[0]["tokenId"]);
    club.by(BOB).delete(&format!("/api/users/me/tokens/{id}")).expect(204);
    send().refused(401, "bad-credentials");
    keyed(club.by(ALICE), KEY).send("POST", "/api/logout", None).expect(204);
    keyed(club.by(ALICE), KEY).send("POST", "/api/logout", None).refused(401, "bad-credentials");
    let send = || keyed(club.by(CAROL), KEY).post("/api/tags", json!({"name": "y"}));
    send().expect(201);
    club.connect().batch_execute("UPDATE users SET state = 2 WHERE name = 'carol'").unwrap();
    send().refused(403, "account-inactive");
}

#[rstest]
fn a_lost_answer_is_replayed(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let path = "/api/events";
    let (safe, unsafe_) = (Proxy::start(club.origin(0), 3), Proxy::start(club.origin(0), 1));
    let (status, answer, sent) = until_answered(&safe, path, Some(KEY), &body(&club));
    assert_eq!((status, sent, safe.dropped.load(Ordering::SeqCst)), (201, 4, 3), "{answer}");
    assert!(answer.to_lowercase().contains("idempotency-replayed: true"), "{answer}");
    assert_eq!(count_events(&club), 1);
    // Without a key, the repeated request creates a second event.
    let (status, answer, sent) = until_answered(&unsafe_, path, None, &body(&club));
    assert_eq!((status, sent, unsafe_.dropped.load(Ordering::SeqCst)), (201, 2, 1), "{answer}");
    assert_eq!(count_events(&club), 3);
}

#[rstest]
fn a_request_waits_for_an_uncommitted_key(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    // Another replica inserts the key and does not commit.
    keyed(club.by(BOB), KEY).post("/api/tags", json!({"name": "x"})).expect(201);
    let row: (Vec<u8>, DbTimestamp) = idempotency_keys::table
        .select((idempotency_keys::id, idempotency_keys::expires_at))
        .first(&mut club.connect())
        .unwrap();
    let conn = &mut club.connect();
    diesel::delete(idempotency_keys::table).execute(conn).unwrap();
    conn.batch_execute(if club.is_postgres() { "BEGIN" } else { "BEGIN IMMEDIATE" }).unwrap();
    let claim = (
        idempotency_keys::id.eq(&row.0),
        idempotency_keys::request_hash.eq(vec![1]),
        idempotency_keys::expires_at.eq(row.1),
    );
    diesel::insert_into(idempotency_keys::table).values(claim).execute(conn).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| keyed(club.by(BOB), KEY).post("/api/tags", json!({"name": "x"})));
        if let AnyConnection::Postgresql(_) = conn {
            let waits = "SELECT 1 / count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'";
            crate::process::until("it waits", || club.connect().batch_execute(waits).is_ok());
        }
        conn.batch_execute("ROLLBACK").unwrap();
        // No answer was stored, so the operation runs: the tag already exists.
        let answer = waiting.join().unwrap();
        assert_eq!(answer.header("idempotency-replayed"), None);
        answer.refused(409, "duplicate-name");
    });
}

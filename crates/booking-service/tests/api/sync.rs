//! The copy of the club directory, from files and from a traQ server.

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;
use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use booking_service::schema::{api_tokens, groups, sessions, users};
use chrono::TimeDelta;
use diesel::prelude::*;
use serde_json::{Value, json};
use service_kit::database::types::{DbTimestamp, DbUuid};

use crate::{
    harness::{ALICE, BOB, CAROL, Club, DAVE, SUSAN, id},
    tokens::{by_token, make_token},
};

#[rstest]
fn the_service_starts_with_what_the_directory_says_or_without_it(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut club = club;
    let erin = json!({"id": DbUuid::new(), "name": "erin", "displayName": "Erin"});
    start_with_file(&mut club, &with_members(&[erin], &[]));
    let erin = user(&club, "erin").expect("erin is here");
    assert_eq!((&erin["displayName"], &erin["state"]), (&json!("Erin"), &json!(1)));
    assert_eq!(erin["privileged"], false);
    assert_eq!(user(&club, ALICE).unwrap()["privileged"], true);

    let broken = start_with_text(&mut club, "broken.json", "{");
    club.by(ALICE).at(broken).get("/api/users/me").expect(200);
}

#[rstest]
fn only_privileged_users_may_sync_and_there_must_be_a_directory(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    club.anonymous().send("POST", "/api/users/sync", None).refused(401, "not-signed-in");
    club.by(BOB).send("POST", "/api/users/sync", None).refused(403, "forbidden");
    let problem = club.by(ALICE).send("POST", "/api/users/sync", None);
    assert_eq!(problem.header("retry-after"), Some("1"));
    problem.refused(503, "unavailable");
}

#[rstest]
fn users_are_added_renamed_and_changed(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut club = club;
    let replica = start_with_file(&mut club, &with_members(&[], &[]));
    let erin = DbUuid::new();
    write(
        &club,
        &json!({"users": [
            {"id": id(ALICE), "name": ALICE, "displayName": "Alice A.", "icon": "https://club.example/a.png"},
            // These two swap names.
            {"id": id(BOB), "name": CAROL, "displayName": "BOB"},
            {"id": id(CAROL), "name": BOB, "displayName": "CAROL"},
            {"id": id(DAVE), "name": "david", "displayName": "DAVE"},
            // And one takes the name that another gives up.
            {"id": erin, "name": DAVE, "displayName": "Erin"},
            {"id": id(SUSAN), "name": SUSAN, "displayName": "SUSAN", "state": 1},
        ]}),
    );
    sync(&club, replica).expect(201);
    let shown: Vec<_> = all(&club).iter().map(|user| (text(user, "name"), text(user, "userId"))).collect();
    let expected = [(ALICE, id(ALICE)), (BOB, id(CAROL)), (CAROL, id(BOB)), (DAVE, erin), ("david", id(DAVE))];
    let expected = expected.into_iter().chain([(SUSAN, id(SUSAN))]);
    assert_eq!(shown, expected.map(|(name, id)| (name.to_owned(), id.to_string())).collect::<Vec<_>>());
    let alice = user(&club, ALICE).unwrap();
    assert_eq!((&alice["displayName"], &alice["icon"]), (&json!("Alice A."), &json!("https://club.example/a.png")));
    assert_eq!(alice["privileged"], true);
    assert_eq!(user(&club, SUSAN).unwrap()["state"], 1);
}

#[rstest]
fn whoever_leaves_takes_the_privilege_along(#[values(Sqlite, Postgres)] backend: Backend) {
    let mut club = Club::start(backend);
    let all = with_members(&[], &[]);
    let replica = start_with_file(&mut club, &all);
    for name in [BOB, CAROL, DAVE] {
        club.by(ALICE).patch(&format!("/api/users/{}/privileged", id(name)), json!({"privileged": true})).expect(204);
    }
    let mut fewer = all.clone();
    fewer["users"][2]["state"] = json!("deactivated");
    fewer["users"][3]["state"] = json!("suspended");
    fewer["users"].as_array_mut().unwrap().remove(1);
    write(&club, &fewer);
    club.by(ALICE).at(replica).send("POST", "/api/users/sync?force=true", None).expect(201);
    // Whoever has one of the names next is the same user.
    write(&club, &all);
    sync(&club, replica).expect(201);
    let privileged = [ALICE, BOB, CAROL, DAVE].map(|name| user(&club, name).unwrap()["privileged"] == true);
    assert_eq!(privileged, [true, false, false, true], "who was only suspended keeps it");
    let rows = club.by(ALICE).get(&format!("/api/audit?object={}", id(BOB))).expect(200).json();
    assert_eq!((&rows[0]["by"], &rows[0]["changes"]["privileged"]), (&json!("directory"), &json!([true, false])));
}

#[rstest]
fn what_is_the_same_is_not_written(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut club = club;
    let group = json!({"name": "graphics", "description": "", "members": [ALICE, BOB], "admins": [ALICE]});
    let replica = start_with_file(&mut club, &with_members(&[], std::slice::from_ref(&group)));
    let changes = |club: &Club| -> (Changes, Changes) {
        let conn = &mut club.connect();
        let users = users::table.select((users::name, users::updated_at)).order(users::name).load(conn).unwrap();
        let groups = groups::table.select((groups::name, groups::updated_at)).order(groups::name).load(conn);
        (users, groups.unwrap())
    };
    let before = changes(&club);
    club.clock.advance(TimeDelta::hours(1));
    sync(&club, replica).expect(201);
    assert_eq!(changes(&club), before);

    let erin = json!({"id": DbUuid::new(), "name": "erin"});
    let mut directory = with_members(&[erin], &[group]);
    directory["users"][1]["displayName"] = json!("Bobby");
    write(&club, &directory);
    sync(&club, replica).expect(201);
    let mut after = changes(&club);
    after.0.retain(|user| !before.0.contains(user));
    assert_eq!(after.0.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), [BOB, "erin"]);
    assert_eq!(after.1, before.1);
}

#[rstest]
fn a_name_goes_to_whom_the_directory_gives_it(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut club = club;
    let other = DbUuid::new();
    start_with_file(&mut club, &json!({"users": [{"id": other, "name": BOB, "displayName": "Another Bob"}]}));
    assert_eq!(text(&user(&club, BOB).unwrap(), "userId"), other.to_string());
    let moved = format!("bob~{}", &id(BOB).to_string()[..8]);
    let moved = user(&club, &moved).expect("the old holder is still here");
    assert_eq!((text(&moved, "userId"), text(&moved, "displayName")), (id(BOB).to_string(), "BOB".to_owned()));
    club.by(BOB).get("/api/users/me").expect(200);
}

#[rstest]
fn who_is_not_active_any_more_loses_all_access(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut club = club;
    let conn = &mut club.connect();
    diesel::update(users::table).set(users::feed_nonce.eq("nonce")).execute(conn).unwrap();
    let tokens = [BOB, CAROL, DAVE].map(|name| make_token(&club, name, "read"));
    club.by(BOB).get("/api/users/me").expect(200);
    by_token(&club, &tokens[0]).get("/api/users/me").expect(200);
    // The directory says nothing of dave, so he stays as he is.
    let replica = start_with_file(
        &mut club,
        &json!({"users": [
            {"id": id(ALICE), "name": ALICE}, {"id": id(BOB), "name": BOB, "state": "suspended"},
            {"id": id(CAROL), "name": CAROL, "state": "deactivated"},
        ]}),
    );
    for (name, has_access) in [(ALICE, true), (BOB, false), (CAROL, false), (DAVE, true)] {
        let nonce: Option<String> = users::table.find(id(name)).select(users::feed_nonce).first(conn).unwrap();
        assert_eq!(nonce.is_some(), has_access, "{name}");
        let live: i64 = sessions::table
            .filter(sessions::user_id.eq(id(name)).and(sessions::revoked_at.is_null()))
            .count()
            .get_result(conn)
            .unwrap();
        assert_eq!(live == 1, has_access, "{name}");
        let live: i64 = api_tokens::table
            .filter(api_tokens::user_id.eq(id(name)).and(api_tokens::revoked_at.is_null()))
            .count()
            .get_result(conn)
            .unwrap();
        assert_eq!(live == 1, has_access && name != ALICE, "{name}");
    }
    club.by(BOB).get("/api/users/me").refused(403, "account-inactive");
    by_token(&club, &tokens[0]).get("/api/users/me").refused(403, "account-inactive");
    club.by(DAVE).get("/api/users/me").expect(200);
    by_token(&club, &tokens[2]).get("/api/users/me").expect(200);

    // Back in the club, but not by the old session or token.
    write(&club, &with_members(&[], &[]));
    sync(&club, replica).expect(201);
    club.by(BOB).get("/api/users/me").refused(401, "bad-credentials");
    by_token(&club, &tokens[0]).get("/api/users/me").refused(401, "bad-credentials");
}

#[rstest]
fn directory_groups_are_replaced(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut club = club;
    let (art, band) = (DbUuid::new(), DbUuid::new());
    let replica = start_with_file(
        &mut club,
        &with_members(
            &[],
            &[
                json!({"id": art, "name": "art", "description": "We draw.", "members": [ALICE, BOB], "admins": [ALICE]}),
                json!({"id": band, "name": "band", "members": [CAROL]}),
            ],
        ),
    );
    let shown = group(&club, art).expect(200).json();
    assert_eq!((text(&shown, "name"), text(&shown, "description")), ("art".into(), "We draw.".into()));
    assert_eq!((&shown["isTraQGroup"], &shown["open"]), (&json!(true), &json!(false)));
    assert_eq!(shown["createdBy"], DbUuid::nil().to_string());
    assert_eq!((&shown["members"], &shown["admins"]), (&ids(&[ALICE, BOB]), &ids(&[ALICE])));

    write(
        &club,
        &with_members(
            &[],
            &[json!({"id": art, "name": "fine art", "members": [BOB, CAROL, SUSAN], "admins": [DAVE, BOB]})],
        ),
    );
    club.clock.advance(TimeDelta::hours(1));
    sync(&club, replica).expect(201);
    let changed = group(&club, art).expect(200).json();
    assert_eq!((text(&changed, "name"), text(&changed, "description")), ("fine art".into(), String::new()));
    assert_eq!((&changed["members"], &changed["admins"]), (&ids(&[BOB, CAROL, SUSAN]), &ids(&[BOB, DAVE])));
    assert_eq!(changed["createdAt"], shown["createdAt"]);
    assert_ne!(changed["updatedAt"], shown["updatedAt"]);
    group(&club, band).refused(404, "not-found");

    write(&club, &with_members(&[], &[json!({"id": band, "name": "band", "members": [DAVE]})]));
    sync(&club, replica).expect(201);
    group(&club, art).refused(404, "not-found");
    assert_eq!(group(&club, band).expect(200).json()["members"], ids(&[DAVE]));
}

#[rstest]
fn a_group_made_here_is_never_overwritten(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut club = club;
    let body = json!({"name": "ours", "description": "", "open": false, "admins": [id(BOB)]});
    let ours = club.by(BOB).post("/api/groups", body).expect(201).json();
    let everyone = booking_service::groups::queries::EVERYONE;
    start_with_file(
        &mut club,
        &with_members(
            &[],
            &[json!({"id": ours["groupId"], "name": "theirs"}), json!({"id": everyone, "name": "nobody"})],
        ),
    );
    let path = format!("/api/groups/{}", text(&ours, "groupId"));
    assert_eq!(club.by(BOB).get(&path).expect(200).json(), ours);
    assert_eq!(group(&club, everyone).expect(200).json()["name"], "Everyone");
}

#[rstest]
fn a_directory_that_cannot_be_read_changes_nothing(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut club = club;
    let group = json!({"name": "art", "members": [ALICE]});
    let replica = start_with_file(&mut club, &with_members(&[], std::slice::from_ref(&group)));
    let state = |club: &Club| (all(club), club.by(BOB).get("/api/groups").expect(200).json());
    let before = state(&club);
    let fine = with_members(&[json!({"name": "erin"})], &[]).to_string();
    let unknown_member = with_members(&[json!({"name": "erin"})], &[json!({"name": "x", "members": ["nobody"]})]);
    let null = with_members(&[json!({"name": "erin", "displayName": "a\u{0}"})], &[]).to_string();
    for text in [String::new(), "{".into(), fine[..fine.len() - 2].into(), unknown_member.to_string(), null] {
        std::fs::write(club.folder().join("directory.json"), text).unwrap();
        let problem = sync(&club, replica).refused(503, "unavailable");
        assert!(!problem.to_string().contains("directory.json"), "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains("The club directory cannot be read"), "{problem}");
        assert_eq!(state(&club), before);
    }
    std::fs::remove_file(club.folder().join("directory.json")).unwrap();
    sync(&club, replica).refused(503, "unavailable");
    assert_eq!(state(&club), before);
}

#[rstest]
fn many_users_are_brought_in_by_few_statements(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut club = club;
    let many: Vec<_> = (0..2500).map(|n| json!({"name": format!("user{n}"), "state": n % 3})).collect();
    let names: Vec<_> = (0..2500).map(|n| format!("user{n}")).collect();
    let replica = start_with_file(&mut club, &with_members(&many, &[json!({"name": "all", "members": names})]));
    let metrics = club.anonymous().at(replica).get("/metrics").expect(200).text();
    let sent = metrics.lines().find_map(|line| line.strip_prefix("db_statements_total ")).expect(&metrics);
    assert!(sent.parse::<u32>().unwrap() < 50, "{sent} statements");
    let conn = &mut club.connect();
    assert_eq!(users::table.count().get_result::<i64>(conn).unwrap(), 2505);
    let groups = club.by(BOB).get("/api/groups").expect(200).json();
    assert_eq!(groups[1]["members"].as_array().unwrap().len(), 2500);
}

#[rstest]
fn syncs_at_the_same_time_all_succeed(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut club = club;
    let directory = with_members(&[], &[json!({"name": "art", "members": [ALICE]})]);
    let replicas = [start_with_file(&mut club, &directory), club.start_another()];
    let extra: Vec<_> = (0..50).map(|n| json!({"id": DbUuid::new(), "name": format!("user{n}")})).collect();
    for round in 0..6 {
        let members = if round % 2 == 0 { [BOB, CAROL] } else { [ALICE, DAVE] };
        let art = json!({"name": "art", "members": members, "admins": members});
        write(&club, &with_members(&extra, &[art, json!({"name": format!("band{round}"), "members": members})]));
        std::thread::scope(|scope| {
            for n in 0..8 {
                let club = &club;
                scope.spawn(move || sync(club, replicas[n % 2]).expect(201));
            }
        });
        let groups = club.by(BOB).get("/api/groups").expect(200).json();
        assert_eq!(groups.as_array().unwrap().len(), 3);
        assert!(groups.as_array().unwrap()[1..].iter().all(|group| group["members"] == ids(&members)));
    }
    assert_eq!(all(&club).len(), 55);
}

#[rstest]
fn a_traq_server_is_a_directory(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut club = club;
    let (erin, art) = (DbUuid::new(), DbUuid::new());
    let users = json!([
        {"id": id(ALICE), "name": ALICE, "displayName": "Alice", "state": 1, "bot": false},
        {"id": erin, "name": "erin", "displayName": "Erin", "state": 1, "bot": false, "iconFileId": erin},
        {"id": id(BOB), "name": BOB, "displayName": "Bob", "state": 0, "bot": false},
        {"id": DbUuid::new(), "name": "BOT_music", "displayName": "Music", "state": 1, "bot": true},
    ]);
    let groups = json!([{"id": art, "name": "art", "description": "We draw.", "type": "",
            "members": [{"id": erin, "role": ""}], "admins": [id(ALICE)]}]);
    let server = FakeTraq::start(&users, &groups);
    club.config.directory.traq_url = Some(server.base.parse().unwrap());
    club.config.directory.traq_token = Some("traq-token".parse().unwrap());
    let replica = club.start_another();
    assert_eq!(text(&user(&club, "erin").unwrap(), "icon"), format!("{}/public/icon/erin", server.base));
    assert!(user(&club, "BOT_music").is_none());
    assert_eq!(group(&club, art).expect(200).json()["members"], json!([erin]));
    club.by(BOB).get("/api/users/me").refused(403, "account-inactive");

    server.fails.store(true, Ordering::Relaxed);
    let before = all(&club);
    let problem = sync(&club, replica).refused(503, "unavailable");
    assert!(!problem.to_string().contains("secret of the server"), "{problem}");
    assert_eq!(all(&club), before);
    server.fails.store(false, Ordering::Relaxed);
    sync(&club, replica).expect(201);
}

/// Names, and when each last changed.
type Changes = Vec<(String, DbTimestamp)>;

/// The members of every test's club as the directory has them, with more users and some groups.
pub fn with_members(more: &[Value], groups: &[Value]) -> Value {
    let states = [(ALICE, 1), (BOB, 1), (CAROL, 1), (DAVE, 1), (SUSAN, 2)];
    let members = states
        .map(|(name, state)| json!({"id": id(name), "name": name, "displayName": name.to_uppercase(), "state": state}));
    json!({"users": members.iter().chain(more).collect::<Vec<_>>(), "groups": groups})
}

/// Replaces the directory of [`start_with_file`].
pub fn write(club: &Club, directory: &Value) {
    std::fs::write(club.folder().join("directory.json"), directory.to_string()).unwrap();
}

/// One more service that has this directory, by its index.
pub fn start_with_file(club: &mut Club, directory: &Value) -> usize {
    start_with_text(club, "directory.json", &directory.to_string())
}

fn start_with_text(club: &mut Club, name: &str, text: &str) -> usize {
    let file = club.folder().join(name);
    std::fs::write(&file, text).unwrap();
    club.config.directory.directory_file = Some(file);
    club.start_another()
}

fn sync(club: &Club, replica: usize) -> crate::harness::Answer {
    club.by(ALICE).at(replica).send("POST", "/api/users/sync", None)
}

fn all(club: &Club) -> Vec<Value> {
    let users = club.by(ALICE).get("/api/users?include-suspended=true").expect(200).json();
    users.as_array().unwrap().clone()
}

fn user(club: &Club, name: &str) -> Option<Value> {
    all(club).into_iter().find(|user| user["name"] == name)
}

fn group(club: &Club, id: DbUuid) -> crate::harness::Answer {
    club.by(ALICE).get(&format!("/api/groups/{id}"))
}

fn text(value: &Value, member: &str) -> String {
    value[member].as_str().unwrap().to_owned()
}

/// The ids of members, in their order.
fn ids(names: &[&str]) -> Value {
    let mut ids: Vec<_> = names.iter().map(|name| id(name)).collect();
    ids.sort();
    json!(ids)
}

/// A server that answers as traQ does, or fails. Its thread ends with the process.
struct FakeTraq {
    base: String,
    fails: Arc<AtomicBool>,
}

impl FakeTraq {
    fn start(users: &Value, groups: &Value) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}/api/v3", listener.local_addr().unwrap());
        let fails = Arc::new(AtomicBool::new(false));
        let (users, groups, failing) = (users.to_string(), groups.to_string(), fails.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let lines = BufReader::new(&stream).lines().map(Result::unwrap);
                let request: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
                let authorized =
                    request.iter().any(|line| line.eq_ignore_ascii_case("authorization: bearer traq-token"));
                let (status, body) = match request[0].as_str() {
                    _ if failing.load(Ordering::Relaxed) => ("500 Oops", "secret of the server"),
                    _ if !authorized => ("401 Unauthorized", ""),
                    "GET /api/v3/users?include-suspended=true HTTP/1.1" => ("200 OK", users.as_str()),
                    "GET /api/v3/groups HTTP/1.1" => ("200 OK", groups.as_str()),
                    _ => ("404 Not Found", ""),
                };
                let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
                stream.write_all((head + body).as_bytes()).unwrap();
            }
        });
        Self { base, fails }
    }
}

#[rstest]
fn names_that_no_sign_in_has_are_warned_of(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let names = [" alice ", "al ice", "アリス", "bob@club.example"];
    let users: Vec<_> = names.iter().map(|name| json!({ "name": name })).collect();
    write(&club, &with_members(&users, &[]));
    let file = club.folder().join("directory.json");
    for command in ["sync", "check-config"] {
        let options = [command, "--log", "warn", "--directory-file", file.to_str().unwrap()];
        let (_, err, status) = crate::commands::on(&club, &options);
        assert_eq!(status, Some(0), "{err}");
        for name in &names[..3] {
            assert!(err.contains(&format!("cannot sign in, as {name:?} is no sign-in name")), "{command}: {err}");
        }
        assert_eq!(err.matches("no sign-in name").count(), 3, "{command}: {err}");
    }
}

//! `import`, from a real MariaDB into both databases.

#[path = "../../../service-kit/tests/shared/mariadb.rs"]
mod mariadb;

use std::process::Command;

use booking_service::{
    groups::EVERYONE,
    schema::{events, users},
};
use diesel::prelude::*;
use rstest::rstest;
use serde_json::{Value, json};

use self::mariadb::{Printed, SourceDatabase, directory_file, server_without_bounds};
use crate::{
    builders::each,
    double_booking::double_bookings,
    harness::{
        ALICE, BOB,
        Backend::{self, Postgres, Sqlite},
        Club, id,
    },
    process::{PROGRAM, program},
};

const SCHEMA: &str = include_str!("import/schema.sql");
const ODD: &str = include_str!("import/odd.sql");
const SMALL: &str = include_str!("import/small.sql");
const CLUB: &str = include_str!("import/club.sql");

/// The id of a row in the source.
fn id_of(kind: u8, number: u32) -> String {
    format!("{number:08x}-0000-4000-8000-{kind:012x}")
}

/// The ids and names in the directory of the first `number` users.
fn known_users(number: u32) -> Vec<(String, String)> {
    (1..=number).map(|number| (id_of(1, number), format!("user{number}"))).collect()
}

/// Runs `import` on the database of a club, in a zone with summer time.
fn import(club: &Club, source: &SourceDatabase, users: u32, options: &[&str]) -> Printed {
    let directory = directory_file(club.folder(), &known_users(users));
    let (url, password) = (source.url(), source.password_file());
    let fixed = ["import", &url, "--password-file", &password, "--database-url", club.url()];
    let more = ["--directory-file", &directory, "--log", "warn"];
    Printed::by(program(&[&fixed[..], &more, options].concat()).env("TIME_ZONE", "Europe/Berlin"))
}

/// Everything that a member can read.
fn everything(club: &Club) -> Vec<Value> {
    let paths = ["/api/users?include-suspended=true", "/api/groups", "/api/tags", "/api/rooms", "/api/events"];
    paths.map(|path| club.by(ALICE).get(path).expect(200).json()).to_vec()
}

#[rstest]
fn a_dry_run_reports_everything_and_writes_nothing(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, source) = (Club::start(backend), SourceDatabase::new(&[SCHEMA, SMALL]));
    let before = everything(&club);
    let dry = import(&club, &source, 5, &["--dry-run"]).done();
    assert_eq!(everything(&club), before);

    assert_eq!(dry.counts("users"), [6, 6, 0, 0, 0, 0, 0]);
    assert_eq!(dry.counts("feed addresses"), [3, 3, 0, 0, 0, 0, 0]);
    assert_eq!(dry.counts("tags"), [3, 2, 0, 1, 0, 0, 0]);
    assert_eq!(dry.counts("groups"), [3, 3, 0, 0, 0, 0, 1]);
    assert_eq!(dry.counts("group_members")[5], 1);
    assert_eq!(dry.counts("rooms"), [7, 7, 0, 0, 0, 0, 0]);
    assert_eq!(dry.counts("events"), [7, 7, 0, 0, 0, 0, 0]);
    assert_eq!(dry.counts("event_attendees"), [5, 0, 0, 0, 0, 0, 0]);
    assert_eq!(dry.notes("users whom the directory"), ["ffffffff-0000-4000-8000-000000000001"]);
    assert_eq!(dry.notes("groups of events"), ["eeeeeeee-0000-4000-8000-000000000002"]);
    assert_eq!(dry.notes("rooms without administrators"), [id_of(4, 5)]);
    let pair = |a, b| format!("{} and {}, s516", id_of(6, a), id_of(6, b));
    assert_eq!(dry.notes("double bookings"), [pair(1, 3), pair(1, 2)]);
    assert_eq!(dry.notes("verified rooms"), [format!("{} and {}", id_of(4, 1), id_of(4, 2))]);
    let outside = [(4, 4), (5, 6)].map(|(event, room)| format!("{}, room {}", id_of(6, event), id_of(4, room)));
    assert_eq!(dry.notes("events outside"), outside);
    let times = dry.notes("times");
    assert_eq!(times.len(), 2, "{times:?}");
    assert!(
        times[0].contains("time_start 2026-03-29 02:30:00 does not exist")
            && times[0].ends_with("2026-03-29T03:00:00+02:00")
    );
    assert!(
        times[1].contains("time_end 2026-10-25 02:30:00 is ambiguous")
            && times[1].ends_with("2026-10-25T02:30:00+02:00")
    );
    let changed = [
        format!("rooms {}: time_end 2026-01-05 18:00:00 → 2026-01-05T18:01:00+01:00", id_of(4, 6)),
        format!("event_attendees {} {}: schedule 9 → 1", id_of(1, 4), id_of(6, 1)),
    ];
    assert_eq!(dry.notes("values"), changed);
    let unknown = format!("group_members {0} {1}: user_id {0} is no user", id_of(1, 99), id_of(2, 1));
    assert_eq!(dry.notes("left out"), [unknown]);

    // The same without `--dry-run`.
    let done = import(&club, &source, 5, &[]).done();
    assert_eq!(dry.out.replace("dry run: nothing is written\n", ""), done.out);
    assert_ne!(everything(&club), before);
}

#[rstest]
fn ids_creators_times_and_people_are_those_of_the_source(#[values(Sqlite, Postgres)] backend: Backend) {
    let (mut club, source) = (Club::start(backend), SourceDatabase::new(&[SCHEMA, SMALL]));
    club.config.everyone_group = Some("Everybody".into());
    club.start_another();
    import(&club, &source, 5, &[]).done();
    let get = |path: &str| club.by(ALICE).get(path).expect(200).json();

    // `import` runs without this option, and leaves the name as it is.
    assert_eq!(get(&format!("/api/groups/{EVERYONE}"))["name"], "Everybody");
    let users = get("/api/users?include-suspended=true");
    let user = |id: &str| users.as_array().unwrap().iter().find(|user| user["userId"] == id).unwrap();
    assert_eq!(user(&id_of(1, 1))["name"], "user1");
    assert_eq!((&user(&id_of(1, 1))["privileged"], &user(&id_of(1, 2))["privileged"]), (&json!(true), &json!(false)));
    let unknown = user("ffffffff-0000-4000-8000-000000000001");
    assert_eq!((&unknown["name"], &unknown["state"]), (&json!("ffffffff"), &json!(0)));

    let group = get(&format!("/api/groups/{}", id_of(2, 1)));
    assert_eq!(group["members"], json!([id_of(1, 2), id_of(1, 3)]));
    assert_eq!((&group["admins"], &group["createdBy"]), (&json!([id_of(1, 2)]), &json!(id_of(1, 2))));
    assert_eq!(group["open"], true);
    club.by(ALICE).get(&format!("/api/groups/{}", id_of(2, 3))).expect(404);

    let event = get(&format!("/api/events/{}", id_of(6, 1)));
    // 18:00 in Berlin in winter, shown in Tokyo's time zone.
    assert_eq!(event["timeStart"], "2026-01-06T02:00:00+09:00");
    assert_eq!((&event["createdBy"], &event["admins"]), (&json!(id_of(1, 1)), &json!([id_of(1, 1)])));
    let tags = event["tags"].as_array().unwrap();
    assert_eq!((tags.len(), &tags[0]["name"], &tags[0]["locked"]), (1, &json!("café"), &json!(true)));
    let answer = |number, schedule| json!({"userId": id_of(1, number), "schedule": schedule});
    assert_eq!(
        event["attendees"],
        json!([answer(1, "pending"), answer(2, "attendance"), answer(3, "absent"), answer(4, "pending")])
    );
    assert_eq!(get(&format!("/api/rooms/{}", id_of(4, 5)))["admins"], json!([id_of(1, 3)]));
    let seventh = get(&format!("/api/events/{}", id_of(6, 7)));
    assert_eq!(seventh["groupName"], "eeeeeeee");

    let owners = events::table.filter(events::owns_room.eq(true)).select(events::id);
    let owners: Vec<service_kit::database::types::DbUuid> = owners.load(&mut club.connect()).unwrap();
    assert_eq!(owners.iter().map(ToString::to_string).collect::<Vec<_>>(), [id_of(6, 3)]);
    let pairs = double_bookings(&club).len();
    assert_eq!(pairs, 2, "as the report says");
    assert!(get("/api/groups").as_array().unwrap().iter().any(|group| group["groupId"] == EVERYONE.to_string()));
}

#[rstest]
fn odd_rows_are_kept(#[values(Sqlite, Postgres)] backend: Backend, #[values(true, false)] has_old_creators: bool) {
    let (club, mut source) = (Club::start(backend), SourceDatabase::new(&[SCHEMA, ODD]));
    if !has_old_creators {
        source.run("ALTER TABLE rooms DROP COLUMN created_by");
    }
    let done = import(&club, &source, 2, &[]).done();
    let get = |path: &str| club.by(ALICE).get(path).expect(200).json();

    let left_out = [
        "users \"no id\": id is no id".to_owned(),
        format!("event_tags {} {}: tag_id {0} is no tag", id_of(3, 9), id_of(6, 1)),
        format!("event_attendees {0} {1}: user_id {0} is no user", id_of(1, 99), id_of(6, 1)),
        format!("events {}: its room {} is not here", id_of(6, 9), id_of(4, 9)),
    ];
    let mut found = done.notes("left out");
    found.sort_unstable();
    let mut expected: Vec<_> = left_out.iter().map(String::as_str).collect();
    expected.sort_unstable();
    assert_eq!(found, expected, "{}", done.out);
    let changed = done.notes("values");
    let has = |line: &str| assert!(changed.contains(&line), "{line}: {}", done.out);

    // Creators.
    let (nobody, first) = (uuid::Uuid::nil().to_string(), id_of(1, 1));
    let room = |number| get(&format!("/api/rooms/{}", id_of(4, number)));
    let creators = [1, 2, 3, 4, 5].map(|number| room(number)["createdBy"].as_str().unwrap().to_owned());
    let of_first_room = if has_old_creators { &first } else { &nobody };
    assert_eq!(creators.each_ref(), [of_first_room, &nobody, &nobody, &nobody, &first]);
    assert_eq!(room(1)["admins"], if has_old_creators { json!([first]) } else { json!([]) });
    if has_old_creators {
        has(&format!("rooms {}: created_by \"{}\" → nobody", id_of(4, 2), id_of(1, 99)));
    }
    has(&format!("rooms {}: created_by_refer \"{}\" → nobody", id_of(4, 4), id_of(1, 99)));
    let event = |number| get(&format!("/api/events/{}", id_of(6, number)));
    assert_eq!(
        [1, 2, 3].map(|number| event(number)["createdBy"].clone()),
        [&nobody, &nobody, &first].map(|id| json!(id))
    );

    // Times, shown in Tokyo's time zone.
    let times = |item: &Value| ["timeStart", "timeEnd"].map(|member| item[member].as_str().unwrap().to_owned());
    let evening = ["2026-01-06T02:00:00+09:00", "2026-01-06T04:00:00+09:00"];
    assert_eq!(times(&room(5)), evening);
    has(&format!("rooms {}: time_start 2026-01-05 20:00:00 → 2026-01-05T18:00:00+01:00", id_of(4, 5)));
    assert_eq!(times(&room(6)), ["2020-12-01T08:00:00+09:00", "2020-12-01T08:01:00+09:00"]);
    assert_eq!(times(&room(7)), [evening[0], "2026-01-06T02:01:00+09:00"]);
    assert_eq!(times(&room(8)), ["9999-12-31T22:59:59Z", "9999-12-31T23:00:59Z"]);
    assert_eq!((times(&event(3)), times(&event(4))), (evening.map(str::to_owned), evening.map(str::to_owned)));
    assert_eq!([&room(3)["createdAt"], &room(3)["updatedAt"]], ["2020-12-01T08:00:00+09:00"; 2]);
    assert_eq!([&room(4)["createdAt"], &event(4)["updatedAt"]], ["1970-01-01T09:00:00+09:00"; 2]);
    has(&format!("rooms {}: created_at NULL → 2020-12-01T00:00:00+01:00", id_of(4, 3)));

    // Texts, groups and answers.
    assert_eq!([&room(7)["place"], &room(8)["place"], &event(1)["name"], &event(3)["name"]], ["Café", "", "one", ""]);
    has(&format!("events {}: name \"o\\0ne\" → \"one\"", id_of(6, 1)));
    let group = get(&format!("/api/groups/{}", id_of(2, 1)));
    assert_eq!([&group["name"], &group["createdBy"], &group["description"]], ["café", &nobody, ""]);
    assert_eq!([1, 3, 4].map(|number| event(number)["groupName"].clone()), ["6c1b1f0e", "0000004d", "6c1b1f0e"]);
    assert_eq!(event(1)["tags"][0]["name"], "");
    let answer = |number| json!({"userId": id_of(1, number), "schedule": "pending"});
    assert_eq!(event(1)["attendees"], json!([answer(1), answer(2)]));

    let again = import(&club, &source, 2, &["--update"]).done();
    for table in ["users", "tags", "groups", "rooms", "events", "events with answers"] {
        let [_, added, updated, same, kept, ..] = again.counts(table)[..] else { panic!("{table}") };
        assert!(added == 0 && updated == 0 && kept == 0 && same > 0, "{table}: {}", again.out);
    }
}

#[rstest]
fn a_second_import_applies_changes_and_keeps_local_ones(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, mut source) = (Club::start(backend), SourceDatabase::new(&[SCHEMA, SMALL]));
    import(&club, &source, 5, &[]).done();
    let before = everything(&club);
    let again = import(&club, &source, 5, &["--update"]).done();
    assert_eq!(everything(&club), before);
    for table in ["users", "feed addresses", "tags", "groups", "rooms", "events", "events with answers"] {
        let [_, added, updated, same, kept, ..] = again.counts(table)[..] else { panic!("{table}") };
        assert!(added == 0 && updated == 0 && kept == 0 && same > 0, "{table}: {}", again.out);
    }

    // Local changes: a group, and the third event's room, which is verified.
    let group = json!({"name": "ours", "description": "", "open": true, "members": [id(BOB)], "admins": [id(BOB)]});
    club.by(ALICE).put(&format!("/api/groups/{}", id_of(2, 1)), group).expect(200);
    club.by(ALICE).delete(&format!("/api/events/{}", id_of(6, 2))).expect(204);
    // Changes in the source: these rows and others, a new user, and a deleted event.
    source.run(&format!(
        "UPDATE `groups` SET name = 'theirs' WHERE id = '{}'; UPDATE events SET name = 'new name' WHERE id IN ('{}', '{}'); \
         UPDATE rooms SET place = 'Hall 2' WHERE id = '{}'; INSERT INTO event_attendees VALUES ('{}', '{}', 2); \
         UPDATE events SET deleted_at = '2026-01-01' WHERE id = '{}'; INSERT INTO tags VALUES ('{}', 'new', NOW(), NOW(), NULL)",
        id_of(2, 1), id_of(6, 1), id_of(6, 2), id_of(4, 4), id_of(1, 5), id_of(6, 1), id_of(6, 7), id_of(3, 9),
    ));
    let without = import(&club, &source, 5, &[]).done();
    assert_eq!(without.notes("changed there").len(), 4, "{}", without.out);
    let name = |event| club.by(ALICE).get(&format!("/api/events/{}", id_of(6, event))).json()["name"].clone();
    assert_eq!(name(1), "one");

    let with = import(&club, &source, 5, &["--update"]).done();
    assert_eq!(name(1), "new name");
    let (groups, rooms, events) = (with.counts("groups"), with.counts("rooms"), with.counts("events"));
    assert_eq!((groups[2], groups[4]), (0, 1));
    assert_eq!((rooms[2], rooms[4]), (1, 0));
    assert_eq!((events[2], events[4]), (2, 1));
    let kept = with.notes("kept");
    let expected = [
        format!("groups {}: has been changed here and there", id_of(2, 1)),
        format!("events {}: has been changed here and there", id_of(6, 2)),
    ];
    assert_eq!(kept, expected);
    assert_eq!(club.by(ALICE).get(&format!("/api/groups/{}", id_of(2, 1))).json()["name"], "ours");
    club.by(ALICE).get(&format!("/api/events/{}", id_of(6, 2))).expect(404);
    club.by(ALICE).get(&format!("/api/events/{}", id_of(6, 7))).expect(404);
    let fourth = club.by(ALICE).get(&format!("/api/events/{}", id_of(6, 4))).expect(200).json();
    assert_eq!(fourth["place"], "Hall 2");
    let answers =
        club.by(ALICE).get(&format!("/api/events/{}", id_of(6, 1))).json()["attendees"].as_array().unwrap().len();
    assert_eq!(answers, 5);
    // There is nothing more to import, and a row that the source no longer has is deleted.
    source.run(&format!("DELETE FROM events WHERE id = '{}'", id_of(6, 4)));
    assert_eq!(import(&club, &source, 5, &[]).done().notes("no longer there"), [format!("events {}", id_of(6, 4))]);
    let last = import(&club, &source, 5, &["--update"]).done();
    assert_eq!((last.counts("events")[2], last.counts("rooms")[2]), (1, 0), "{}", last.out);
    club.by(ALICE).get(&format!("/api/events/{}", id_of(6, 4))).expect(404);
}

#[rstest]
fn imported_feed_addresses_work_until_a_new_one_is_made(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, mut source) = (Club::start(backend), SourceDatabase::new(&[SCHEMA, SMALL]));
    // Bob is a user of the source, so that he can sign in.
    source.run(&format!(
        "INSERT INTO users VALUES ('{0}', 0, 1, 'secret-of-bob'); INSERT INTO event_attendees VALUES ('{0}', '{1}', 2); \
         UPDATE events SET time_start = NOW(), time_end = NOW() + INTERVAL 1 HOUR WHERE id = '{1}'",
        id(BOB), id_of(6, 7),
    ));
    import(&club, &source, 5, &[]).done();
    let feed = |user: &str, secret: &str| club.anonymous().get(&format!("/api/ical/v1/{user}{secret}"));
    let bob = id(BOB).to_string();

    let text = feed(&bob, "secret-of-bob").expect(200).text();
    let calendar: icalendar::Calendar = text.parse().unwrap();
    let names: Vec<_> = calendar
        .components
        .iter()
        .filter_map(|component| {
            let event = component.as_event()?;
            icalendar::Component::get_summary(event).map(str::to_owned)
        })
        .collect();
    assert_eq!(names, ["seven"]);
    feed(&id_of(1, 1), "first-secret").expect(200);
    for (user, secret) in [
        (bob.as_str(), "first-secret"),
        (&bob, "secret-of-bo"),
        (&bob, ""),
        (&id_of(1, 3), ""),
        ("ffffffff-0000-4000-8000-000000000001", "secret-of-nobody"),
    ] {
        feed(user, secret).expect(404);
    }
    // The imported address and the first address of this service are both valid. A new address replaces both.
    let secret = |answer: crate::harness::Answer| answer.expect(200).json()["secret"].as_str().unwrap().to_owned();
    let ours = secret(club.by(BOB).get("/api/users/me/ical"));
    feed(&bob, &ours).expect(200);
    feed(&bob, "secret-of-bob").expect(200);
    let new = secret(club.by(BOB).put("/api/users/me/ical", json!({})));
    feed(&bob, &new).expect(200);
    for dead in [ours.as_str(), "secret-of-bob"] {
        feed(&bob, dead).expect(404);
    }
    // A later import does not restore it.
    let again = import(&club, &source, 5, &["--update"]).done();
    feed(&bob, "secret-of-bob").expect(404);
    assert_eq!(again.notes("kept"), [format!("feed addresses {bob}: has been changed here")]);
    let secrets = users::table.select(users::imported_feed_hash).load::<Option<Vec<u8>>>(&mut club.connect()).unwrap();
    assert_eq!(secrets.iter().flatten().filter(|hash| hash.len() == 32).count(), 3);
}

#[rstest]
fn a_failure_is_one_sentence_and_writes_nothing(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, mut source) = (Club::start(backend), SourceDatabase::new(&[SCHEMA, SMALL]));
    let before = everything(&club);
    let run_in = |zone: &str, url: &str, options: &[&str]| {
        let directory = directory_file(club.folder(), &known_users(5));
        let fixed = ["import", url, "--database-url", club.url(), "--log", "warn"];
        let directory = if options.contains(&"no directory") { vec![] } else { vec!["--directory-file", &directory] };
        let options: Vec<_> = options.iter().copied().filter(|option| *option != "no directory").collect();
        Printed::by(program(&[&fixed[..], &directory, &options].concat()).env("TIME_ZONE", zone))
    };
    let run = |url: &str, options: &[&str]| run_in("Europe/Berlin", url, options);
    assert!(run_in("UTC", &source.url(), &[]).err.contains("--time-zone is UTC"));
    let password = source.password_file();
    let with_password = ["--password-file", password.as_str()];
    run(&source.url(), &["no directory"]).failed(78, "--directory-file");
    run(&source.url().replace('@', ":hunter2@"), &[]).failed(78, "--password-file");
    run("postgres://x@y/z", &[]).failed(78, "mysql://USER@HOST");
    run(&source.url(), &[]).failed(1, "Access denied");
    run(&source.url_at(1), &with_password).failed(1, "cannot connect");
    // A limit that suffices for the connection and the table definitions, but not for all rows.
    for bytes in [8_000, 12_000] {
        let port = source.behind_a_proxy_that_breaks_off_after(bytes);
        run(&source.url_at(port), &with_password).failed(1, "nothing is written");
    }
    source.run("ALTER TABLE events DROP COLUMN allow_together; DROP TABLE room_admins");
    let wrong = run(&source.url(), &with_password);
    wrong.failed(1, "the table room_admins, the column events.allow_together");
    assert_eq!(everything(&club), before);
}

/// The answers of a server to a query: `None` for endless rows of two columns, or a number of columns.
#[rstest]
#[case(None, "more than 10000 columns")]
#[case(Some(1 << 20), "it answers with 1048576 columns")]
#[case(Some(1 << 40), "it answers with 1099511627776 columns")]
#[case(Some(u64::MAX), "columns")]
fn a_server_without_bounds_is_refused(#[case] columns: Option<u64>, #[case] words: &str) {
    let club = Club::start(Sqlite);
    let directory = directory_file(club.folder(), &known_users(5));
    let url = format!("mysql://reader@127.0.0.1:{}/x", server_without_bounds(columns));
    // 2 GB of address space.
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 2000000; exec \"$@\"", "sh", PROGRAM, "import", &url]);
    command.args(["--database-url", club.url(), "--directory-file", &directory, "--log", "warn"]);
    Printed::by(command.env("TIME_ZONE", "Europe/Berlin")).failed(1, words);
}

/// A server of its own that says it is of this version.
#[rstest]
#[case("10.5.9-MariaDB", "is version 10.5.9-MariaDB: MariaDB 10.6 or MySQL 8.0 is the oldest that can be read")]
#[case("5.7.44", "is version 5.7.44: MariaDB 10.6 or MySQL 8.0 is the oldest that can be read")]
#[case("8.0.36", "lacks the table ")]
fn an_old_server_is_refused(#[case] version: &str, #[case] words: &str) {
    let club = Club::start(Sqlite);
    let directory = directory_file(club.folder(), &known_users(5));
    let mut command = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/mariadb"));
    command.args(["run", "sh", "-c", r#"exec "$0" import "${TEST_MARIADB_URL}mysql" "$@""#, PROGRAM]);
    command.args(["--database-url", club.url(), "--directory-file", &directory, "--log", "warn"]);
    command.env("TIME_ZONE", "Europe/Berlin").env("MARIADB_OPTIONS", format!("--version={version}"));
    Printed::by(&mut command).failed(1, words);
}

/// Asserts that the source and the service have the same lines, in any order.
fn assert_same(mut source: Vec<String>, mut service: Vec<String>) {
    source.sort();
    service.sort();
    assert_eq!(source.len(), service.len());
    let different = source.iter().zip(&service).find(|(a, b)| a != b);
    assert_eq!(different, None);
}

/// Takes seconds: 75,000 answers are imported, and the client validates every page of events.
#[rstest]
fn five_thousand_events_with_their_answers(#[values(Sqlite, Postgres)] backend: Backend) {
    let (club, mut source) = (Club::start(backend), SourceDatabase::new(&[SCHEMA, CLUB]));
    let done = import(&club, &source, 295, &["--time-zone", "Asia/Tokyo"]).done();
    assert_eq!(done.counts("event_attendees")[0], 75_000);
    assert_eq!(done.notes("users whom").len(), 5);
    assert!(done.notes("double bookings").is_empty() && done.notes("left out").is_empty(), "{}", done.out);

    // The client validates each page against the OpenAPI document, which takes long.
    let all = |path: &str| {
        let mut all = Vec::new();
        let mut next = Some(format!("{path}?limit=1000"));
        while let Some(page) = next {
            let answer = club.by(ALICE).get(&page).expect(200);
            all.extend(answer.json().as_array().unwrap().clone());
            next = answer.header("link").map(|link| link[1..].split('>').next().unwrap().to_owned());
        }
        all
    };
    let (events, rooms) = (all("/api/events"), all("/api/rooms"));
    let text = |item: &Value, member: &str| item[member].as_str().unwrap().to_owned();
    let at = "DATE_FORMAT({}, '%Y-%m-%dT%H:%i:%s+09:00')";
    let at = |column: &str| at.replace("{}", column);
    let lines = events.iter().map(|it| {
        let people = each_id(&it["attendees"]).join(" ");
        let tags = each(&it["tags"], "name").join(" ");
        ["eventId", "name", "description", "timeStart", "timeEnd", "place", "roomId", "groupId", "createdBy"]
            .map(|member| text(it, member))
            .join("|")
            + &format!("|{}|{}|{people}|{tags}", it["sharedRoom"], it["open"])
    });
    let query = format!(
        "SELECT CONCAT_WS('|', e.id, e.name, e.description, {}, {}, r.place, r.id, e.group_id, e.created_by_refer, \
         IF(e.allow_together, 'true', 'false'), IF(e.open, 'true', 'false'), \
         (SELECT GROUP_CONCAT(user_id ORDER BY user_id SEPARATOR ' ') FROM event_attendees WHERE event_id = e.id), \
         (SELECT GROUP_CONCAT(t.name SEPARATOR ' ') FROM event_tags x JOIN tags t ON t.id = x.tag_id WHERE x.event_id = e.id)) \
         FROM events e JOIN rooms r ON r.id = e.room_id",
        at("e.time_start"),
        at("e.time_end"),
    );
    assert_same(source.rows(&query), lines.collect());
    let lines = rooms.iter().map(|it| {
        ["roomId", "place", "timeStart", "timeEnd", "createdBy"].map(|member| text(it, member)).join("|")
            + &format!("|{}|{}", it["verified"], each_id(&it["admins"]).join(" "))
    });
    let query = format!(
        "SELECT CONCAT_WS('|', id, place, {}, {}, created_by_refer, IF(verified, 'true', 'false'), \
         (SELECT user_id FROM room_admins WHERE room_id = r.id)) FROM rooms r",
        at("time_start"),
        at("time_end"),
    );
    assert_same(source.rows(&query), lines.collect());
    let groups = all("/api/groups");
    let lines = groups.iter().filter(|group| group["isTraQGroup"] == false).map(|it| {
        ["groupId", "name", "createdAt", "updatedAt"].map(|member| text(it, member)).join("|")
            + "|"
            + &each_id(&it["members"]).join(" ")
    });
    let query = "SELECT CONCAT_WS('|', id, name, DATE_FORMAT(created_at, '%Y-%m-%dT%H:%i:%s.%f+09:00'), \
         DATE_FORMAT(updated_at, '%Y-%m-%dT%H:%i:%s.%f+09:00'), \
         (SELECT GROUP_CONCAT(user_id ORDER BY user_id SEPARATOR ' ') FROM group_members WHERE group_id = g.id)) FROM `groups` g";
    assert_same(source.rows(query), lines.collect());
    // Only the detail of an event has the answers.
    for number in [4_u32, 2_500, 4_003] {
        let path = format!("/api/events/{}", id_of(6, number));
        let event = club.by(ALICE).get(&path).expect(200).json();
        let lines =
            event["attendees"].as_array().unwrap().iter().map(|it| text(it, "userId") + " " + &text(it, "schedule"));
        let query = format!(
            "SELECT CONCAT(user_id, ' ', ELT(schedule, 'pending', 'attendance', 'absent')) FROM event_attendees \
             WHERE event_id = '{}'",
            id_of(6, number),
        );
        assert_same(source.rows(&query), lines.collect());
    }
    let feed = club.anonymous().get(&format!("/api/ical/v1/{}secret-of-1", id_of(1, 1))).expect(200);
    assert!(feed.text().parse::<icalendar::Calendar>().is_ok());
}

fn each_id(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()).collect()
}

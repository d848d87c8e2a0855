//! The calendar feed.

use crate::harness::Backend::{self, Postgres, Sqlite};
use booking_service::{
    events::{parse_filter, queries::Row, selection::Criterion},
    groups::EVERYONE,
    ical::queries,
    schema::{attendees, event_admins, event_tags, events, group_members, groups, places, rooms, tags, users},
};
use chrono::{DateTime, TimeDelta};
use common::time::Timestamp;
use diesel::prelude::*;
use rstest::rstest;
use serde_json::{Value, json};
use service_kit::database::types::{DbTimestamp, DbUuid};

use crate::{
    builders::{At, event_body, merge, room, text},
    harness::{ALICE, Answer, BOB, CAROL, Club, DAVE, SUSAN, id},
    plans,
    sync::start_with_file,
};

/// Where a member's feed is, as front ends build it.
pub fn feed_path(club: &Club, member: &str) -> String {
    let secret = club.by(member).get("/api/users/me/ical").expect(200).json()["secret"].as_str().unwrap().to_owned();
    format!("/api/ical/v1/{}{secret}", id(member))
}

pub fn feed(club: &Club, path: &str) -> Answer {
    club.anonymous().get(path).expect(200)
}

/// The hash in the tag of a feed. The rest changes with the address, the day and the database.
fn hash(answer: &Answer) -> &str {
    answer.header("etag").unwrap().split_once('.').unwrap().1
}

/// The lines of a feed, unfolded.
fn lines(feed: &Answer) -> Vec<String> {
    feed.text().replace("\r\n ", "").split("\r\n").map(str::to_owned).collect()
}

/// The values of a property, in the order of the feed.
pub fn all(feed: &Answer, property: &str) -> Vec<String> {
    let lines = lines(feed);
    lines.iter().filter_map(|line| line.strip_prefix(&format!("{property}:"))).map(str::to_owned).collect()
}

fn everyone(club: &Club) -> DbUuid {
    let known: i64 = groups::table.find(EVERYONE).count().get_result(&mut club.connect()).unwrap();
    if known == 0 {
        add_group(club, EVERYONE, "traP", &[]);
    }
    EVERYONE
}

fn group(club: &Club, name: &str, members: &[&str]) -> DbUuid {
    let group = DbUuid::new();
    add_group(club, group, name, members);
    group
}

fn add_group(club: &Club, group: DbUuid, name: &str, members: &[&str]) {
    let (conn, now) = (&mut club.connect(), DbTimestamp(club.clock.now()));
    diesel::insert_into(groups::table)
        .values((
            groups::id.eq(group),
            groups::kind.eq(0_i16),
            groups::name.eq(name),
            groups::description.eq(""),
            groups::open.eq(false),
            groups::created_by.eq(id(ALICE)),
            groups::created_at.eq(now),
            groups::updated_at.eq(now),
        ))
        .execute(conn)
        .unwrap();
    for member in members {
        let row = (group_members::group_id.eq(group), group_members::user_id.eq(id(member)));
        diesel::insert_into(group_members::table).values(row).execute(conn).unwrap();
    }
}

/// An event of Alice's that ends `ended` ago and lasted an hour.
fn event_that_ended(club: &Club, name: &str, group: DbUuid, ended: TimeDelta) -> DbUuid {
    let (conn, now, event, room) = (&mut club.connect(), club.clock.now(), DbUuid::new(), DbUuid::new());
    let ends = now.plus(-ended);
    let starts = ends.plus(-TimeDelta::hours(1));
    let known: i64 = places::table.count().get_result(conn).unwrap();
    if known == 0 {
        diesel::insert_into(places::table).values(places::key.eq("s516")).execute(conn).unwrap();
    }
    let changed = DbTimestamp("2026-01-02T03:04:05.678Z".parse::<Timestamp>().unwrap());
    let period = (rooms::starts_at.eq(DbTimestamp(starts)), rooms::ends_at.eq(DbTimestamp(ends)));
    diesel::insert_into(rooms::table)
        .values((
            rooms::id.eq(room),
            rooms::place.eq("S516"),
            rooms::place_key.eq("s516"),
            period,
            rooms::is_long.eq(false),
            rooms::reach_from.eq(DbTimestamp(starts.plus(-TimeDelta::days(1)))),
            rooms::verified.eq(false),
            rooms::created_by.eq(id(ALICE)),
            rooms::created_at.eq(changed),
            rooms::updated_at.eq(changed),
        ))
        .execute(conn)
        .unwrap();
    let span =
        (events::starts_at.eq(DbTimestamp(starts)), events::ends_at.eq(DbTimestamp(ends)), events::is_long.eq(false));
    diesel::insert_into(events::table)
        .values((
            (events::id.eq(event), events::name.eq(name), events::description.eq("About, this")),
            (events::shared.eq(true), span, events::place.eq("S516"), events::place_key.eq("s516")),
            (events::room_id.eq(room), events::owns_room.eq(true), events::group_id.eq(group)),
            (events::open.eq(false), events::sequence.eq(3), events::created_by.eq(id(ALICE))),
            (events::created_at.eq(changed), events::updated_at.eq(changed)),
        ))
        .execute(conn)
        .unwrap();
    event
}

fn event(club: &Club, name: &str, group: DbUuid) -> DbUuid {
    event_that_ended(club, name, group, TimeDelta::days(-1))
}

/// So many more events like this one, with bob's answer.
fn more_of(club: &Club, event: DbUuid, number: usize) {
    let conn = &mut club.connect();
    let of: Row = events::table.find(event).select(Row::as_select()).first(conn).unwrap();
    let ids: Vec<_> = (0..number).map(|_| DbUuid::new()).collect();
    for ids in ids.chunks(500) {
        let row = |id: &DbUuid| {
            (
                (events::id.eq(*id), events::name.eq(&of.name), events::description.eq("")),
                (events::starts_at.eq(of.starts_at), events::ends_at.eq(of.ends_at), events::is_long.eq(false)),
                (events::place.eq(&of.place), events::place_key.eq(&of.place_key), events::room_id.eq(of.room_id)),
                (events::shared.eq(true), events::owns_room.eq(false), events::group_id.eq(of.group_id)),
                (events::open.eq(false), events::sequence.eq(0), events::created_by.eq(of.created_by)),
                (events::created_at.eq(of.created_at), events::updated_at.eq(of.updated_at)),
            )
        };
        let rows: Vec<_> = ids.iter().map(row).collect();
        service_kit::with_connection!(&mut *conn, c => diesel::insert_into(events::table).values(rows).execute(c))
            .unwrap();
        let answer = |event: &DbUuid| {
            (attendees::event_id.eq(*event), attendees::user_id.eq(id(BOB)), attendees::schedule.eq("absent"))
        };
        let answers: Vec<_> = ids.iter().map(answer).collect();
        service_kit::with_connection!(&mut *conn, c => diesel::insert_into(attendees::table).values(answers).execute(c))
            .unwrap();
    }
}

fn answered(club: &Club, event: DbUuid, member: &str, schedule: &str) {
    let row = (attendees::event_id.eq(event), attendees::user_id.eq(id(member)), attendees::schedule.eq(schedule));
    diesel::insert_into(attendees::table).values(row).execute(&mut club.connect()).unwrap();
}

fn delete(club: &Club, event: DbUuid, ago: TimeDelta) {
    let at = DbTimestamp(club.clock.now().plus(-ago));
    let set = (events::deleted_at.eq(at), events::updated_at.eq(at));
    diesel::update(events::table.find(event)).set(set).execute(&mut club.connect()).unwrap();
}

fn tag(club: &Club, event: DbUuid, name: &str) -> DbUuid {
    let (conn, now, tag) = (&mut club.connect(), DbTimestamp(club.clock.now()), DbUuid::new());
    let row = (
        tags::id.eq(tag),
        tags::name.eq(name),
        tags::name_key.eq(name),
        tags::created_at.eq(now),
        tags::updated_at.eq(now),
    );
    diesel::insert_into(tags::table).values(row).execute(conn).unwrap();
    let row = (event_tags::event_id.eq(event), event_tags::tag_id.eq(tag), event_tags::locked.eq(false));
    diesel::insert_into(event_tags::table).values(row).execute(conn).unwrap();
    tag
}

#[rstest]
fn the_secret_is_made_on_first_use_and_stays(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let first = club.by(BOB).get("/api/users/me/ical").expect(200);
    assert_eq!(first.header("cache-control"), Some("no-store"));
    let secret = first.json()["secret"].as_str().unwrap().to_owned();
    assert_eq!(secret.len(), 43);
    assert_eq!(club.by(BOB).get("/api/users/me/ical").json(), first.json());
    assert_ne!(club.by(CAROL).get("/api/users/me/ical").json(), first.json());
    // The database alone does not tell it.
    let nonce: Option<String> =
        users::table.find(id(BOB)).select(users::feed_nonce).first(&mut club.connect()).unwrap();
    assert_ne!(nonce.unwrap(), secret);
    club.anonymous().get("/api/users/me/ical").refused(401, "not-signed-in");
    club.by(SUSAN).get("/api/users/me/ical").refused(403, "account-inactive");
    club.anonymous().put("/api/users/me/ical", json!({})).refused(401, "not-signed-in");
    club.by(SUSAN).put("/api/users/me/ical", json!({})).refused(403, "account-inactive");
}

#[rstest]
fn a_token_that_may_only_read_may_make_it_but_not_replace_it(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let body = json!({"name": "x", "scope": "read"});
    let token = club.by(DAVE).post("/api/users/me/tokens", body).expect(201).json()["token"].clone();
    let dave = club.anonymous().header("authorization", &format!("Bearer {}", token.as_str().unwrap()));
    let secret = dave.get("/api/users/me/ical").expect(200).json();
    assert_eq!(club.by(DAVE).get("/api/users/me/ical").json(), secret);
    dave.put("/api/users/me/ical", json!({})).refused(403, "insufficient-scope");
    assert_eq!(club.by(DAVE).get("/api/users/me/ical").json(), secret);
}

#[rstest]
fn many_first_uses_at_once_give_one_secret(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let secrets: Vec<_> = std::thread::scope(|scope| {
        let get = || club.by(BOB).get("/api/users/me/ical").expect(200).text();
        let all: Vec<_> = (0..8).map(|_| scope.spawn(get)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(secrets.iter().all(|secret| *secret == secrets[0]), "{secrets:?}");
}

#[rstest]
fn a_new_secret_kills_the_old_address_at_once(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let old = feed_path(&club, BOB);
    feed(&club, &old);
    let secret = club.by(BOB).put("/api/users/me/ical", json!({})).expect(200).json()["secret"].clone();
    club.anonymous().get(&old).refused(404, "not-found");
    let new = feed_path(&club, BOB);
    assert!(new.ends_with(secret.as_str().unwrap()));
    feed(&club, &new);
}

#[rstest]
fn a_long_feed_has_every_event_once(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let first = event(&club, "meeting", group(&club, "g", &[BOB]));
    let (path, known) = (feed_path(&club, BOB), |feed: &Answer| {
        let mut ids = all(feed, "UID");
        ids.sort();
        ids.dedup();
        ids.len()
    });
    for (more, whole) in [(998, 999), (1, 1000), (1, 1001), (1000, 2001)] {
        more_of(&club, first, more);
        let feed = feed(&club, &path);
        assert_eq!((known(&feed), all(&feed, "BEGIN").len()), (whole, whole + 1));
        let named = |property: &str, name: &str| {
            lines(&feed).iter().filter(|line| line.starts_with(property) && line.contains(name)).count()
        };
        assert_eq!((named("ORGANIZER;", "CN=\"ALICE\":"), named("ATTENDEE;", "CN=\"BOB\";")), (whole, whole - 1));
    }
}

#[rstest]
fn a_wrong_address_does_not_tell_what_is_wrong_with_it(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (bob, carol) = (feed_path(&club, BOB), feed_path(&club, CAROL));
    let (_, bobs) = bob.split_at(bob.len() - 43);
    let path = |user: String, secret: &str| format!("/api/ical/v1/{user}{secret}");
    feed(&club, &path(id(BOB).to_string().to_uppercase(), bobs));
    let wrong = [
        path(id(CAROL).to_string(), bobs),
        path(id(ALICE).to_string(), bobs),
        path(id(BOB).to_string(), &bobs[1..]),
        path(id(BOB).to_string(), &format!("{bobs}x")),
        path(id(BOB).to_string(), ""),
        path(DbUuid::new().to_string(), bobs),
        path(DbUuid::nil().to_string(), bobs),
        path(String::new(), bobs),
        path("%C3%A9".repeat(40), bobs),
        path("%FF%00".to_owned(), bobs),
    ];
    let refused = |path: &str| {
        let mut problem = club.anonymous().get(path).refused(404, "not-found");
        problem["instance"].take();
        problem
    };
    let first = refused(&wrong[0]);
    assert!(wrong.iter().all(|path| refused(path) == first));
    // What the filter says is for those who have the address.
    assert_eq!(refused(&format!("{}?q=bad", wrong[0])), first);
    for state in [0_i16, 2] {
        let user = users::table.find(id(CAROL));
        diesel::update(user).set(users::state.eq(state)).execute(&mut club.connect()).unwrap();
        assert_eq!(refused(&carol), first);
    }
}

#[rstest]
fn the_feed_has_what_the_user_belongs_to_administers_or_answered(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (bobs, carols) = (group(&club, "bob's", &[BOB]), group(&club, "carol's", &[CAROL]));
    event(&club, "member", bobs);
    event(&club, "everyone", everyone(&club));
    let administered = event(&club, "admin", carols);
    let row = (event_admins::event_id.eq(administered), event_admins::user_id.eq(id(BOB)));
    diesel::insert_into(event_admins::table).values(row).execute(&mut club.connect()).unwrap();
    answered(&club, event(&club, "attends", carols), BOB, "attendance");
    answered(&club, event(&club, "absent", carols), BOB, "absent");
    answered(&club, event(&club, "pending", carols), BOB, "pending");
    event(&club, "other", carols);
    let path = feed_path(&club, BOB);
    let found = feed(&club, &path);
    let mut names = all(&found, "SUMMARY");
    names.sort();
    assert_eq!(names, ["absent", "admin", "attends", "everyone", "member"]);
    assert_eq!(all(&found, "NAME"), ["Everyone events"]);
    assert_eq!(all(&feed(&club, &feed_path(&club, DAVE)), "SUMMARY"), ["everyone"]);
}

#[rstest]
fn the_calendar_has_the_name_of_the_club(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start_with(backend, &["--club-name", "Digital club"]);
    assert_eq!(all(&feed(&club, &feed_path(&club, BOB)), "NAME"), ["Digital club events"]);
}

#[rstest]
fn an_event_has_its_tags_people_and_dates(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let group = group(&club, "g", &[BOB]);
    let (one, two) = (event(&club, "one", group), event(&club, "two", group));
    tag(&club, one, "進捗");
    tag(&club, one, "a");
    answered(&club, one, BOB, "pending");
    answered(&club, one, CAROL, "attendance");
    answered(&club, one, DAVE, "absent");
    let path = feed_path(&club, BOB);
    let of_owner = lines(&feed(&club, &path)).into_iter().filter(|line| line.starts_with("ATTENDEE"));
    assert_eq!(
        of_owner.collect::<Vec<_>>(),
        [format!("ATTENDEE;CN=\"BOB\";PARTSTAT=NEEDS-ACTION:urn:uuid:{}", id(BOB))]
    );
    let found = feed(&club, &format!("{path}?attendees=true"));
    let lines = lines(&found);
    let has = |line: &str| assert!(lines.iter().any(|found| found == line), "{line} is not in {lines:#?}");
    has("CATEGORIES:a");
    has("CATEGORIES:進捗");
    has(&format!("ORGANIZER;CN=\"ALICE\":urn:uuid:{}", id(ALICE)));
    has(&format!("ATTENDEE;CN=\"BOB\";PARTSTAT=NEEDS-ACTION:urn:uuid:{}", id(BOB)));
    has(&format!("ATTENDEE;CN=\"CAROL\";PARTSTAT=ACCEPTED:urn:uuid:{}", id(CAROL)));
    has(&format!("ATTENDEE;CN=\"DAVE\";PARTSTAT=DECLINED:urn:uuid:{}", id(DAVE)));
    has("DTSTAMP:20260102T030405Z");
    has("SEQUENCE:3");
    has("STATUS:CONFIRMED");
    has("LOCATION:S516");
    has(&format!("UID:{one}"));
    let address = |event: &DbUuid| format!("{}/events/{event}", club.config.server.public_origin());
    assert_eq!(all(&found, "URL"), [address(&one), address(&two)]);
    assert_eq!(all(&found, "UID"), [one.to_string(), two.to_string()]);
    assert_eq!(lines.iter().filter(|line| line.starts_with("ATTENDEE")).count(), 3);
}

#[rstest]
fn an_event_links_to_the_front_end(#[values(Sqlite, Postgres)] backend: Backend) {
    let files = tempfile::tempdir().unwrap();
    std::fs::write(files.path().join("index.html"), "").unwrap();
    let club = Club::start_with(backend, &["--static", files.path().to_str().unwrap()]);
    let one = event(&club, "one", group(&club, "g", &[BOB]));
    let found = feed(&club, &feed_path(&club, BOB));
    assert!(all(&found, "URL")[0].ends_with(&format!("/events/{one}")), "{}", found.text());
    assert!(all(&found, "DESCRIPTION")[0].ends_with(&all(&found, "URL")[0]));
}

#[rstest]
fn what_the_owner_declined_takes_no_time(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let group = group(&club, "g", &[BOB, CAROL]);
    answered(&club, event(&club, "one", group), BOB, "absent");
    answered(&club, event(&club, "two", group), CAROL, "absent");
    for query in ["", "?attendees=true"] {
        let transparent = |member: &str| {
            let found = feed(&club, &format!("{}{query}", feed_path(&club, member)));
            let text = found.text();
            let events = text.split("BEGIN:VEVENT").filter(|event| event.contains("TRANSP:TRANSPARENT"));
            events.map(|event| event.split("SUMMARY:").nth(1).unwrap()[..3].to_owned()).collect::<Vec<_>>()
        };
        assert_eq!((transparent(BOB), transparent(CAROL)), (vec!["one".to_owned()], vec!["two".to_owned()]));
    }
}

#[rstest]
fn the_address_may_end_in_ics(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    event(&club, "one", group(&club, "g", &[BOB]));
    let path = feed_path(&club, BOB);
    let plain = feed(&club, &path);
    let with_ending = feed(&club, &format!("{path}.ics"));
    assert_eq!(with_ending.body, plain.body);
    assert_eq!(hash(&with_ending), hash(&plain));
    assert_eq!(plain.header("x-robots-tag"), Some("noindex"));
    for wrong in [".ics.ics", ".ical", "x.ics"] {
        club.anonymous().get(&format!("{path}{wrong}")).refused(404, "not-found");
    }
}

#[rstest]
fn the_feed_goes_back_ninety_days_and_keeps_deleted_events_for_thirty(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let at_three = club.clock.now().midnight().plus(TimeDelta::hours(27));
    club.clock.advance(at_three - club.clock.now());
    let group = group(&club, "g", &[BOB]);
    event_that_ended(&club, "recent", group, TimeDelta::days(90) - TimeDelta::hours(1));
    event_that_ended(&club, "old", group, TimeDelta::days(90) + TimeDelta::hours(4));
    let long = event_that_ended(&club, "long", group, TimeDelta::days(89));
    let start = DbTimestamp(club.clock.now().plus(-TimeDelta::days(200)));
    let set = (events::is_long.eq(true), events::starts_at.eq(start));
    diesel::update(events::table.find(long)).set(set).execute(&mut club.connect()).unwrap();
    delete(&club, event(&club, "cancelled", group), TimeDelta::days(30) - TimeDelta::hours(1));
    delete(&club, event(&club, "gone", group), TimeDelta::days(30) + TimeDelta::hours(4));
    let path = feed_path(&club, BOB);
    let found = feed(&club, &path);
    assert_eq!(all(&found, "SUMMARY"), ["long", "recent", "cancelled"]);
    assert_eq!(all(&found, "STATUS"), ["CONFIRMED", "CONFIRMED", "CANCELLED"]);
    // The day begins at midnight, UTC.
    club.clock.advance(TimeDelta::hours(20));
    assert_eq!(feed(&club, &path).body, found.body);
    club.clock.advance(TimeDelta::hours(1));
    assert_eq!(all(&feed(&club, &path), "SUMMARY"), ["long"]);
}

#[rstest]
fn a_feed_that_has_not_changed_is_not_sent_again(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let group = group(&club, "g", &[BOB]);
    let first = event(&club, "e", group);
    let path = feed_path(&club, BOB);
    let found = feed(&club, &path);
    assert_eq!(found.header("content-type"), Some("text/calendar; charset=utf-8"));
    assert_eq!(found.header("cache-control"), Some("private, no-cache"));
    assert_eq!(found.header("last-modified"), Some("Fri, 02 Jan 2026 03:04:05 GMT"));
    let etag = found.header("etag").unwrap().to_owned();
    assert!(etag.starts_with('"') && etag.ends_with('"'), "{etag}");
    // The bytes are the same at each fetch.
    club.clock.advance(TimeDelta::minutes(5));
    assert_eq!(feed(&club, &path).body, found.body);
    let status = |headers: &[(&str, &str)]| {
        let mut client = club.anonymous();
        for (name, value) in headers {
            client = client.header(name, value);
        }
        client.get(&path).status
    };
    assert_eq!(status(&[("if-none-match", &etag)]), 304);
    assert_eq!(status(&[("if-none-match", &format!("\"x\", W/{etag}"))]), 304);
    assert_eq!(status(&[("if-none-match", "*")]), 304);
    assert_eq!(status(&[("if-none-match", "\"x\"")]), 200);
    // A feed also changes when somebody joins a group or time passes, and no event does, so that time decides nothing.
    assert_eq!(status(&[("if-modified-since", "Fri, 02 Jan 2026 03:04:05 GMT")]), 200);
    assert_eq!(status(&[("if-none-match", "\"x\""), ("if-modified-since", "Fri, 02 Jan 2026 03:04:05 GMT")]), 200);
    let same = club.anonymous().header("if-none-match", &etag).get(&path).expect(304);
    assert_eq!((hash(&same), same.body.len()), (hash(&found), 0));
    assert_eq!(same.header("cache-control"), Some("private, no-cache"));
    let head = club.anonymous().send("HEAD", &path, None).expect(200);
    assert_eq!((hash(&head), head.body.len()), (hash(&found), 0));
    assert_eq!(head.header("content-length").unwrap(), found.body.len().to_string());
    // It is the same address with another secret that decides, not what the caller has.
    let old = path.clone();
    club.by(BOB).put("/api/users/me/ical", json!({})).expect(200);
    club.anonymous().header("if-none-match", &etag).get(&old).refused(404, "not-found");
    let path = feed_path(&club, BOB);
    answered(&club, first, BOB, "attendance");
    assert_ne!(hash(&feed(&club, &path)), hash(&found));
    let empty = feed(&club, &feed_path(&club, DAVE));
    assert_eq!(empty.header("last-modified"), None);
    let since = DateTime::from_timestamp(4_000_000_000, 0).unwrap().format("%a, %d %b %Y %T GMT").to_string();
    club.anonymous().header("if-modified-since", &since).get(&feed_path(&club, DAVE)).expect(200);
}

#[rstest]
fn a_change_of_time_place_or_status_counts_in_the_sequence_and_others_do_not(
    #[values(Sqlite, Postgres)] backend: Backend,
) {
    let club = Club::start(backend);
    let body = |at, hours| event_body(&club, BOB, at, hours);
    let made = club.by(BOB).post("/api/events", body(At::Place("x"), (1, 2))).expect(201).json();
    let (path, feed_path) = (format!("/api/events/{}", text(&made["eventId"])), feed_path(&club, BOB));
    let mut stamp = String::new();
    let mut shows = |sequence: &str, status: &str| {
        let found = feed(&club, &feed_path);
        assert_eq!((all(&found, "SEQUENCE"), all(&found, "STATUS")), (vec![sequence.into()], vec![status.into()]));
        assert_eq!(all(&found, "UID"), [text(&made["eventId"])]);
        assert_eq!(all(&found, "DTSTAMP"), all(&found, "LAST-MODIFIED"));
        assert_ne!(all(&found, "DTSTAMP"), [&*stamp], "each change has its time");
        stamp = all(&found, "DTSTAMP").remove(0);
        club.clock.advance(TimeDelta::seconds(2));
    };
    shows("0", "CONFIRMED");
    let renamed = merge([body(At::Place("x"), (1, 2)), json!({"name": "new", "sharedRoom": true, "open": true})]);
    club.by(BOB).put(&path, renamed).expect(200);
    shows("0", "CONFIRMED");
    club.by(BOB).post(&format!("{path}/tags"), json!({"name": "t"})).expect(204);
    shows("0", "CONFIRMED");
    club.by(BOB).put(&path, body(At::Place("x"), (1, 3))).expect(200);
    shows("1", "CONFIRMED");
    club.by(BOB).put(&path, body(At::Place("y"), (1, 3))).expect(200);
    shows("2", "CONFIRMED");
    let room = room(&club, BOB, "y", (0, 4));
    club.by(BOB).put(&path, body(At::Room(&room), (1, 3))).expect(200);
    shows("3", "CONFIRMED");
    club.by(BOB).delete(&format!("/api/rooms/{room}?force=true")).expect(200);
    shows("4", "CANCELLED");
}

#[rstest]
fn an_answer_changes_the_times_of_its_event_and_of_the_feed(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let make = |hours, name: &str| {
        let body = merge([event_body(&club, BOB, At::Place("x"), hours), json!({"name": name, "open": true})]);
        let made = club.by(BOB).post("/api/events", body).expect(201).json();
        format!("/api/events/{}", text(&made["eventId"]))
    };
    let (one, two) = (make((1, 2), "one"), make((3, 4), "two"));
    let path = feed_path(&club, BOB);
    let answer = |event: &str, schedule: &str| {
        club.clock.advance(TimeDelta::seconds(2));
        club.by(BOB).put(&format!("{event}/attendees/me"), json!({"schedule": schedule})).expect(204);
    };
    let now = || club.clock.now().utc();
    // `DTSTAMP` of both events, after what has to agree with it.
    let stamps = || {
        let found = feed(&club, &path);
        let stamps = all(&found, "DTSTAMP");
        assert_eq!(stamps, all(&found, "LAST-MODIFIED"));
        let latest = DateTime::parse_from_rfc2822(found.header("last-modified").unwrap()).unwrap();
        assert_eq!(stamps.iter().max().unwrap(), &latest.format("%Y%m%dT%H%M%SZ").to_string());
        (stamps, hash(&found).to_owned(), found.body)
    };
    let at = |time: DateTime<chrono::Utc>| time.format("%Y%m%dT%H%M%SZ").to_string();
    let (made, tag, _) = stamps();

    answer(&one, "attendance");
    let (answered, answered_tag, bytes) = stamps();
    assert!(answered[0] > made[0] && answered[0] <= at(now()), "{answered:?}");
    assert_eq!(answered[1], made[1]);
    assert_ne!(answered_tag, tag);
    // The event itself has not changed.
    let shown = club.by(BOB).get(&one).json();
    assert_eq!(shown["createdAt"], shown["updatedAt"]);
    // The same answer once more changes nothing.
    answer(&one, "attendance");
    assert_eq!(stamps(), (answered.clone(), answered_tag, bytes));

    answer(&two, "absent");
    let (other, ..) = stamps();
    assert!(other[0] == answered[0] && other[1] > answered[0], "{other:?}");
    answer(&one, "absent");
    let (again, ..) = stamps();
    assert!(again[0] > other[1] && again[1] == other[1], "{again:?}");
    // A later change of the event counts as before.
    club.clock.advance(TimeDelta::seconds(2));
    club.by(BOB).post(&format!("{one}/tags"), json!({"name": "t"})).expect(204);
    let (tagged, ..) = stamps();
    assert!(tagged[0] > again[0], "{tagged:?}");
    // Somebody else's answer changes the entries that show it, and no others.
    let shown =
        ["", "?attendees=true"].map(|query| (format!("{path}{query}"), feed(&club, &format!("{path}{query}")).body));
    club.clock.advance(TimeDelta::seconds(2));
    club.by(CAROL).put(&format!("{one}/attendees/me"), json!({"schedule": "attendance"})).expect(204);
    for (path, before) in shown {
        let after = feed(&club, &path);
        let shows_answer = after.text().contains("CN=\"CAROL\";PARTSTAT=ACCEPTED");
        assert_eq!(after.body != before, shows_answer, "{path}");
        assert_eq!(all(&after, "DTSTAMP")[0] > tagged[0], shows_answer, "{path}");
    }
}

#[rstest]
fn another_name_of_the_organizer_changes_the_times_of_an_event(#[values(Sqlite, Postgres)] backend: Backend) {
    let mut club = Club::start(backend);
    let path = {
        event(&club, "e", group(&club, "g", &[BOB]));
        feed_path(&club, BOB)
    };
    let before = feed(&club, &path);
    club.clock.advance(TimeDelta::seconds(2));
    let directory = |alice: &Value| {
        let others =
            [BOB, CAROL, DAVE].map(|name| json!({"id": id(name), "name": name, "displayName": name.to_uppercase()}));
        let users = [&[alice.clone()][..], &others].concat();
        json!({"users": users, "groups": []})
    };
    let alice = json!({"id": id(ALICE), "name": ALICE, "displayName": "ALICE"});
    let pictured = merge([alice.clone(), json!({"icon": "https://club.example/alice.png"})]);
    let replica = start_with_file(&mut club, &directory(&pictured));
    let file = club.config.directory.directory_file.clone().unwrap();
    // The feed does not show the picture.
    assert_eq!(feed(&club, &path).body, before.body);
    club.clock.advance(TimeDelta::seconds(2));
    std::fs::write(&file, directory(&merge([alice, json!({"displayName": "Alice"})])).to_string()).unwrap();
    club.by(ALICE).at(replica).send("POST", "/api/users/sync", None).expect(201);
    let after = feed(&club, &path);
    assert_eq!(all(&after, "DTSTAMP"), all(&after, "LAST-MODIFIED"));
    assert!(all(&after, "DTSTAMP") > all(&before, "DTSTAMP"), "{}", after.text());
}

#[rstest]
fn a_filter_chooses_among_all_events(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (bobs, carols) = (group(&club, "bob's", &[BOB]), group(&club, "carol's", &[CAROL]));
    let (one, two) = (event(&club, "one", bobs), event(&club, "two", carols));
    let three = event(&club, "three", carols);
    answered(&club, one, DAVE, "pending");
    answered(&club, two, DAVE, "attendance");
    answered(&club, three, DAVE, "absent");
    let tagged = tag(&club, three, "t");
    let path = feed_path(&club, BOB);
    let names = |q: &str| {
        let q: String = url::form_urlencoded::byte_serialize(q.as_bytes()).collect();
        let mut names = all(&feed(&club, &format!("{path}?q={q}")), "SUMMARY");
        names.sort();
        names
    };
    assert_eq!(all(&feed(&club, &path), "SUMMARY"), ["one"]);
    // An empty parameter counts as absent.
    assert_eq!(names(""), ["one"]);
    assert_eq!(names(" "), ["one", "three", "two"]);
    assert_eq!(names(&format!("user=={}", id(DAVE))), ["one", "two"]);
    assert_eq!(names(&format!("user != {}", id(DAVE))), ["three"]);
    assert_eq!(names(&format!("tag=={tagged}")), ["three"]);
    assert_eq!(names(&format!("group=={carols} && tag!={tagged}")), ["two"]);
    assert_eq!(names(&format!("event=={one} || (group=={carols} && tag=={tagged})")), ["one", "three"]);
    let problem = club.anonymous().get(&format!("{path}?q=user%3D%3Dx")).refused(400, "bad-filter");
    assert_eq!(problem["position"], 6, "{problem}");
    club.anonymous().get(&format!("{path}?q=a&q=b")).refused(400, "invalid-parameter");
}

#[rstest]
fn queries_use_indexes(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    feed_path(&club, BOB);
    let (owner, today) = (id(BOB), club.clock.now().midnight());
    plans::check(&club, |conn| {
        assert!(queries::nonce(conn, owner).unwrap().is_some());
        queries::set_first_nonce(conn, owner, "unused").unwrap();
    });
    club.by(BOB).post("/api/events", event_body(&club, BOB, At::Place("S516"), (24, 26))).expect(201);
    let filter = parse_filter(&format!("user=={owner}")).unwrap();
    for criterion in [Criterion::ForFeed(owner), Criterion::Matching(filter)] {
        for all in [false, true] {
            plans::check(&club, |conn| {
                let (selection, mut count) = (queries::selection(criterion.clone(), today), 0);
                queries::each(conn, &selection, queries::Answers { owner, all }, |_| count += 1).unwrap();
                assert_eq!(count, 1);
            });
        }
    }
}

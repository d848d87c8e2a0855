//! Pages of lists: `limit`, `cursor` and `Link` (contract, "Lists").

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;
use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
};

use actix_web::{FromRequest, http::header, test::TestRequest};
use booking_service::schema::{tags, users};
use diesel::{connection::SimpleConnection, prelude::*};
use proptest::{
    collection::vec,
    option,
    test_runner::{Config, TestRunner},
};
use serde_json::{Value, json};
use service_kit::{
    database::types::{DbTimestamp, DbUuid},
    http::Page,
};

use crate::{
    builders::{At, answer_poll, each, event, event_body, group, merge, poll, room, verified_room},
    conditions::statements,
    harness::{ALICE, Answer, BOB, CAROL, Client, Club, DOCUMENT, hours_from_now, id},
    process::until,
    receiver::Receiver,
    webhooks,
};

/// Who may read a list with the rows of BOB.
fn reader(path: &str) -> &'static str {
    if ["/api/audit", "/api/webhooks", "/api/invitations"].iter().any(|one| path.starts_with(one)) {
        ALICE
    } else {
        BOB
    }
}

/// The path of the next page, from the answer's `Link` header.
fn next(answer: &Answer) -> Option<String> {
    let link = answer.header("link")?;
    let path = link.strip_prefix('<').and_then(|link| link.strip_suffix(">; rel=\"next\""));
    Some(path.unwrap_or_else(|| panic!("{link}")).to_owned())
}

/// The path with one more parameter.
pub fn with(path: &str, parameter: &str) -> String {
    format!("{path}{}{parameter}", if path.contains('?') { '&' } else { '?' })
}

/// Reads all pages and returns their rows. Calls `between` after each page.
pub fn walk(client: &Client<'_>, path: &str, limit: usize, mut between: impl FnMut()) -> Vec<Value> {
    let (mut rows, mut path) = (Vec::new(), with(path, &format!("limit={limit}")));
    loop {
        let answer = client.get(&path).expect(200);
        let page = answer.json().as_array().unwrap().clone();
        assert!(page.len() <= limit, "{path}");
        let next = next(&answer);
        assert!(next.is_none() || page.len() == limit, "{path}: a page that is not full has a next one");
        rows.extend(page);
        between();
        match next {
            Some(next) => path = next,
            None => return rows,
        }
    }
}

/// A list whose rows can be created and removed.
struct List {
    path: &'static str,
    member: &'static str,
    make: fn(&Club, usize) -> String,
    remove: fn(&Club, &str),
}

const LISTS: [List; 5] = [
    List {
        path: "/api/events",
        member: "eventId",
        // Only two different starts, so that many events have the same.
        make: |club, n| event(club, BOB, At::Place(&format!("place {n}")), if n % 3 == 0 { (1, 2) } else { (3, 4) }),
        remove: |club, id| {
            club.by(BOB).delete(&format!("/api/events/{id}")).expect(204);
        },
    },
    List {
        path: "/api/rooms",
        member: "roomId",
        make: |club, n| {
            room(club, BOB, if n % 3 == 0 { "S516" } else { "Ω" }, if n % 2 == 0 { (1, 2) } else { (3, 4) })
        },
        remove: |club, id| {
            club.by(BOB).delete(&format!("/api/rooms/{id}")).expect(200);
        },
    },
    List {
        path: "/api/groups",
        member: "groupId",
        make: |club, n| group(club, BOB, if n % 2 == 0 { "graphics" } else { "音楽" }, &[BOB]),
        remove: |club, id| {
            club.by(BOB).delete(&format!("/api/groups/{id}")).expect(204);
        },
    },
    List {
        path: "/api/users?include-suspended=true",
        member: "userId",
        make: |club, n| {
            let (id, now) = (DbUuid::new(), DbTimestamp(club.clock.now()));
            let names = (users::id.eq(id), users::name.eq(format!("{}{id}", n % 5)), users::display_name.eq("x"));
            let rest = (users::icon.eq(""), users::state.eq(1_i16), users::privileged.eq(false));
            diesel::insert_into(users::table)
                .values((names, rest, users::created_at.eq(now), users::updated_at.eq(now)))
                .execute(&mut club.connect())
                .unwrap();
            id.to_string()
        },
        remove: |club, id| {
            diesel::delete(users::table.find(DbUuid(id.parse().unwrap()))).execute(&mut club.connect()).unwrap();
        },
    },
    List {
        path: "/api/tags",
        member: "tagId",
        make: |club, n| {
            let (id, now) = (DbUuid::new(), DbTimestamp(club.clock.now()));
            // The database allows two tags with one name if their keys differ.
            let name = (tags::id.eq(id), tags::name.eq(format!("t{}", n % 3)), tags::name_key.eq(id.to_string()));
            diesel::insert_into(tags::table)
                .values((name, tags::created_at.eq(now), tags::updated_at.eq(now)))
                .execute(&mut club.connect())
                .unwrap();
            id.to_string()
        },
        remove: |club, id| {
            diesel::delete(tags::table.find(DbUuid(id.parse().unwrap()))).execute(&mut club.connect()).unwrap();
        },
    },
];

/// Reads a list in pages. After each page, each odd number of `changes` creates a row and each even one removes a row.
fn check_pages_while_rows_change(club: &Club, list: &List, first: usize, limit: usize, changes: &[Vec<usize>]) {
    let mut present: Vec<String> = (0..first).map(|n| (list.make)(club, n)).collect();
    let mut permanent: BTreeSet<String> = present.iter().cloned().collect();
    let mut changes = changes.iter();
    let rows = walk(&club.by(BOB), list.path, limit, || {
        for change in changes.next().into_iter().flatten() {
            if change % 2 == 1 {
                present.push((list.make)(club, change / 2));
            } else if !present.is_empty() {
                let removed = present.remove(change / 2 % present.len());
                (list.remove)(club, &removed);
                permanent.remove(&removed);
            }
        }
    });
    let paged = each(&json!(rows), list.member);
    let distinct: BTreeSet<_> = paged.iter().cloned().collect();
    assert_eq!(distinct.len(), paged.len(), "shown twice: {paged:?}");
    assert!(permanent.is_subset(&distinct), "skipped: {:?}", permanent.difference(&distinct));
    let all = each(&club.by(BOB).get(list.path).expect(200).json(), list.member);
    let order: Vec<_> = paged.iter().filter(|id| all.contains(id)).collect();
    let expected: Vec<_> = all.iter().filter(|id| distinct.contains(*id)).collect();
    assert_eq!(order, expected, "another order than that of the whole list");
    // The pages of an unchanged list are the whole list.
    for limit in [1, limit, 1000] {
        assert_eq!(each(&json!(walk(&club.by(BOB), list.path, limit, || ())), list.member), all, "limit {limit}");
    }
    for id in present {
        (list.remove)(club, &id);
    }
}

/// The path and the documentation of every `GET` operation whose answer is a list.
fn lists() -> BTreeMap<&'static str, &'static Value> {
    let paths = DOCUMENT["paths"].as_object().unwrap().iter();
    let lists = paths.map(|(path, item)| (path.as_str(), &item["get"]));
    let is_list = |get: &Value| {
        let schema = &get["responses"]["200"]["content"]["application/json"]["schema"];
        schema["type"] == "array" || schema["$ref"] == "#/components/schemas/UUIDs"
    };
    lists.filter(|(_, get)| is_list(get)).collect()
}

#[rstest]
fn pages_contain_every_row_once(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut runner = TestRunner::new(Config { cases: 4, failure_persistence: None, ..Config::default() });
    let changes = vec(vec(0..40_usize, 0..3), 0..6);
    for list in LISTS {
        let run = |(first, limit, changes): (usize, usize, Vec<Vec<usize>>)| {
            check_pages_while_rows_change(&club, &list, first, limit, &changes);
            Ok(())
        };
        runner.run(&(0..9_usize, 1..5_usize, changes.clone()), run).unwrap();
    }
}

/// The ends of a span, in hours from now.
type Span = (Option<i64>, Option<i64>);

/// Short and long rows are read apart for a page.
#[rstest]
fn the_pages_of_a_span_are_its_whole_list(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut runner = TestRunner::new(Config { cases: 16, failure_persistence: None, ..Config::default() });
    let count = Cell::new(0);
    let run = |(starts_and_lengths, (from, to), limit): (Vec<(i64, i64)>, Span, usize)| {
        for (start, length) in starts_and_lengths {
            count.set(count.get() + 1);
            // Each has a room of its own.
            event(&club, BOB, At::Place(&format!("place {}", count.get())), (start, start + length));
        }
        let to = to.map(|to| from.map_or(to, |from| to.max(from + 1)));
        let ends = [("dateBegin", from), ("dateEnd", to)];
        let ends = ends.iter().filter_map(|(name, at)| at.map(|at| format!("{name}={}", hours_from_now(&club, at))));
        let query = ends.collect::<Vec<_>>().join("&");
        for path in ["/api/events", "/api/rooms"].map(|path| format!("{path}?{query}")) {
            let whole = club.by(BOB).get(&path).expect(200).json();
            assert_eq!(json!(walk(&club.by(BOB), &path, limit, || ())), whole, "{path} by {limit}");
        }
        Ok(())
    };
    let end = || option::of(0..72_i64);
    runner.run(&(vec((1..24_i64, 1..48_i64), 0..6), (end(), end()), 1..6_usize), run).unwrap();
}

#[rstest]
fn a_long_list_is_streamed(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (conn, now) = (&mut club.connect(), DbTimestamp(club.clock.now()));
    let rows: Vec<_> = (0..2500)
        .map(|n| {
            let name = format!("member {n:04}");
            (
                users::id.eq(DbUuid::new()),
                users::name.eq(name.clone()),
                users::display_name.eq(name),
                users::icon.eq(""),
                users::state.eq(1),
                users::created_at.eq(now),
                users::updated_at.eq(now),
            )
        })
        .collect();
    for rows in rows.chunks(500) {
        service_kit::with_connection!(&mut *conn, c => diesel::insert_into(users::table).values(rows).execute(c))
            .unwrap();
    }
    let client = club.by(BOB);
    let whole = client.get("/api/users").expect(200);
    let rows = whole.json().as_array().unwrap().clone();
    assert_eq!(rows.len(), 2504);
    // HEAD reads only the first rows.
    let statements = |method: &str| {
        let before = statements(&club);
        client.send(method, "/api/users", None).expect(200);
        statements(&club) - before
    };
    assert!(statements("HEAD") < statements("GET"));
    assert_eq!(walk(&client, "/api/users", 400, || ()), rows);
    // A number of rows with which the last chunk is full.
    let shown = client.get("/api/users?include-suspended=true").expect(200).json().as_array().unwrap().len();
    assert_eq!(shown, 2505);
    diesel::delete(users::table.filter(users::name.ge("member 1996"))).execute(conn).unwrap();
    let even = client.get("/api/users").expect(200);
    assert_eq!(even.json().as_array().unwrap().len(), 2000);
    // The tag of a streamed list has only a fingerprint and no hash.
    let tag = even.header("etag").unwrap().to_owned();
    assert!(tag.ends_with(".\""), "{tag}");
    let again = || client.clone().header("if-none-match", &tag).get("/api/users");
    assert!(club.is_postgres() || again().status == 304);
    diesel::update(users::table.find(id(CAROL))).set(users::display_name.eq("C")).execute(conn).unwrap();
    again().expect(200);
}

#[rstest]
fn many_tags_are_streamed(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (conn, now) = (&mut club.connect(), DbTimestamp(club.clock.now()));
    let tag =
        |n| (tags::id.eq(DbUuid::new()), tags::name.eq(format!("tag {n}")), tags::name_key.eq(format!("tag {n}")));
    let rows: Vec<_> = (0..1001).map(|n| (tag(n), tags::created_at.eq(now), tags::updated_at.eq(now))).collect();
    service_kit::with_connection!(&mut *conn, c => diesel::insert_into(tags::table).values(&rows).execute(c)).unwrap();
    let whole = club.by(BOB).get("/api/tags").expect(200);
    assert_eq!(whole.json().as_array().unwrap().len(), 1001);
    assert!(whole.header("etag").unwrap().ends_with(".\""));
}

/// Takes seconds: every list is read as a whole, in pages and with wrong parameters.
#[rstest]
fn every_list_has_pages(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let group = group(&club, BOB, "g", &[BOB, CAROL]);
    let room = verified_room(&club, BOB, "S516", (0, 9));
    let fields = json!({"name": "h", "description": "", "open": false, "admins": [id(BOB)]});
    club.by(BOB).put(&format!("/api/groups/{group}"), fields).expect(200);
    for hours in [(1, 2), (3, 4), (5, 6)] {
        let body = merge([event_body(&club, BOB, At::Room(&room), hours), json!({"groupId": group})]);
        club.by(BOB).post("/api/events", body).expect(201);
    }
    event(&club, BOB, At::Room(&room), (7, 8));
    let changed = event(&club, BOB, At::Place("x"), (1, 2));
    club.by(BOB).post(&format!("/api/events/{changed}/tags"), json!({"name": "changed"})).expect(204);
    for name in ["a", "b", "c"] {
        club.by(BOB).post("/api/tags", json!({ "name": name })).expect(201);
        club.by(BOB).post("/api/users/me/tokens", json!({"name": name, "scope": "read"})).expect(201);
    }
    crate::sign_in::Browser::new(&club).sign_in(BOB);
    let invited = || json!({"invitees": [id(BOB), id(CAROL)]});
    poll(&club, BOB, invited());
    let (answered, slots) = poll(&club, BOB, invited());
    club.by(BOB).put(&answered, json!({"name": "changed"})).expect(200);
    for by in [BOB, CAROL] {
        answer_poll(&club, by, &answered, &[&slots[0]]).expect(201);
    }
    let answered = answered.rsplit('/').next().unwrap();
    let receiver = Receiver::start();
    let webhooks = ["first", "second"].map(|name| {
        let more = json!({"name": name, "types": ["series.deleted"]});
        let made = club.by(ALICE).post("/api/webhooks", merge([webhooks::body(&receiver.address), more])).expect(201);
        made.header("location").unwrap().to_owned()
    });
    for _ in 0..2 {
        club.by(ALICE).post(&format!("{}/test", webhooks[0]), json!({})).expect(201);
        club.by(ALICE).post("/api/invitations", json!({})).expect(201);
    }
    until("both have arrived", || webhooks::statuses(&club, &webhooks[0]) == ["delivered"; 2]);
    let webhook = webhooks[0].rsplit('/').next().unwrap();
    let (begin, end) = (hours_from_now(&club, 0), hours_from_now(&club, 9));
    let lists = lists();
    assert!(lists.len() >= 18, "{:?}", lists.keys());
    let mut cursors = Vec::new();
    for (template, get) in &lists {
        let named = |name: &str| get["parameters"].as_array().unwrap().iter().any(|it| it["name"] == name);
        assert!(named("limit") && named("cursor"), "{template}");
        assert!(!get["responses"]["200"]["headers"]["Link"].is_null(), "{template}");
        let values = [
            ("{roomID}", room.as_str()),
            ("{groupID}", &group),
            ("{userID}", &id(BOB).to_string()),
            ("{draftEventID}", answered),
            ("{eventID}", &changed),
            ("{webhookID}", webhook),
        ];
        let mut path = values.iter().fold((*template).to_owned(), |path, (name, value)| path.replace(name, value));
        assert!(!path.contains('{'), "{path}: add its parameter to `values`");
        if *template == "/api/availability" {
            path = format!("{path}?dateBegin={begin}&dateEnd={end}&minutes=30&onlyVerified=false");
        }
        let client = club.by(reader(template));
        let whole = client.get(&path).expect(200);
        assert_eq!(next(&whole), None, "{path}");
        let rows = whole.json().as_array().unwrap().clone();
        assert!(rows.len() >= 2, "{path} is too short to tell: create two rows above");
        for limit in [1, 2, rows.len(), 1000] {
            assert_eq!(walk(&client, &path, limit, || ()), rows, "{path} by {limit}");
        }
        let page = client.get(&with(&path, "limit=1")).expect(200);
        let linked = next(&page).unwrap_or_else(|| panic!("{path} has no link"));
        // Each page has its own tag.
        let tags = [&whole, &page, &client.get(&linked)].map(|answer| answer.header("etag").unwrap().to_owned());
        assert!(tags[0] != tags[1] && tags[1] != tags[2], "{path}");
        cursors.push((path, linked.split("cursor=").nth(1).unwrap().to_owned()));
    }
    for (n, (path, cursor)) in cursors.iter().enumerate() {
        let client = club.by(reader(path));
        client.get(&with(path, &format!("cursor={cursor}"))).expect(200);
        for limit in ["0", "1001", "-1", "x", "1.5", "99999999999999999999"] {
            let refused = client.get(&with(path, &format!("limit={limit}"))).expect(400);
            assert_eq!(refused.pointers(), ["limit"], "{path} {limit}");
        }
        let foreign = &cursors[(n + 1) % cursors.len()].1;
        let damaged = [
            foreign.clone(),
            format!("A{cursor}"),
            format!("{cursor}A"),
            cursor[1..].to_owned(),
            cursor[..cursor.len() - 1].to_owned(),
            cursor[..4].to_owned(),
            "%00".to_owned(),
            "%F0%9F%A6%80".to_owned(),
            "A".repeat(5000),
        ];
        for bad in damaged.iter().filter(|bad| *bad != cursor) {
            let refused = client.get(&with(path, &format!("cursor={bad}"))).expect(400);
            assert_eq!(refused.pointers(), ["cursor"], "{path} {bad}");
        }
        let twice = client.get(&with(path, &format!("cursor={cursor}&cursor={cursor}"))).expect(400);
        assert_eq!(twice.pointers(), ["cursor"]);
    }
}

#[rstest]
fn a_cursor_is_valid_for_one_filter(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for hours in [(1, 2), (3, 4), (5, 6)] {
        event(&club, BOB, At::Place("x"), hours);
    }
    let get = |query: &str| club.by(BOB).get(&format!("/api/events?{query}"));
    let q = format!("q=user%3D%3D{}", id(BOB));
    let first = get(&format!("{q}&limit=1")).expect(200);
    let link = next(&first).unwrap();
    assert!(link.starts_with("/api/events?") && link.contains("q=user"), "{link}");
    assert_eq!(walk(&club.by(BOB), &format!("/api/events?{q}"), 1, || ()).len(), 3);
    let cursor = link.split("cursor=").nth(1).unwrap();
    // A cursor does not depend on the limit.
    assert_eq!(get(&format!("{q}&limit=7&cursor={cursor}")).expect(200).json().as_array().unwrap().len(), 2);
    let (others, later) = (format!("q=user%21%3D{}", id(BOB)), format!("{q}&dateBegin=2020-01-01T00:00:00Z"));
    for other in [String::new(), others, later] {
        let refused = get(&format!("{other}&limit=1&cursor={cursor}")).expect(400);
        assert_eq!(refused.pointers(), ["cursor"], "{other}");
    }
}

#[rstest]
fn the_rest_of_a_list_may_follow_a_page(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    // More rows than the number of values that a statement can bind.
    let (id, now) = if club.is_postgres() { ("md5(n::text)::uuid", "now()") } else { ("randomblob(16)", "0") };
    let rows = format!(
        "INSERT INTO groups (id, kind, name, description, open, created_at, updated_at)
             WITH RECURSIVE all_n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM all_n WHERE n < 33000)
             SELECT {id}, 0, 'g', '', false, {now}, {now} FROM all_n"
    );
    club.connect().batch_execute(&rows).unwrap();
    let page = club.by(BOB).get("/api/groups?limit=1").expect(200);
    let link = next(&page).unwrap();
    let rest = club.by(BOB).get(&link.replace("limit=1&", "")).expect(200);
    // The groups and the everyone group, without the first page.
    assert_eq!(rest.json().as_array().unwrap().len(), 33_000);
}

#[rstest]
fn a_forged_cursor_is_never_a_500(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    // A cursor can contain a name that no database accepts.
    let request = TestRequest::with_uri("/api/tags?limit=1").to_http_request();
    let page = Page::extract(&request).into_inner().unwrap();
    let reply = page.first().rows(vec![1, 2], |_| ("a\0b", DbUuid::nil()), Ok).unwrap().into_reply();
    let link = reply.header(&header::LINK).unwrap().strip_prefix('<').unwrap();
    let answer = club.by(ALICE).get(link.split('>').next().unwrap());
    assert!(matches!(answer.status, 200 | 400), "{}", answer.text());
}

//! The board: what it shows, to whom, and what a kiosk token can do.

use std::path::Path;

use booking_service::{
    auth::Scope,
    board::queries,
    schema::{events, groups},
};
use chrono::TimeDelta;
use diesel::prelude::*;
use rstest::rstest;
use serde_json::{Value, json};
use service_kit::database::types::{DbTimestamp, DbUuid};

use crate::{
    builders::{At, EVERYONE, declare_shared, event, verified_room},
    front_page::page::links,
    harness::{
        ALICE, Answer, BOB,
        Backend::{self, Postgres, Sqlite},
        CAROL, Club, SUSAN, hours_from_now, id,
    },
    plans,
    real_sign_in::real::browser_node,
    static_files::front_end,
    tokens::{by_token, make_token},
};

/// The day of the club, some hours from now.
fn day(club: &Club, hours: i64) -> chrono::NaiveDate {
    hours_from_now(club, hours).utc().with_timezone(&chrono_tz::Tz::Asia__Tokyo).date_naive()
}

/// Holds a page to what every page promises, except for its size.
#[track_caller]
fn board(answer: &Answer) -> String {
    let policy = answer.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    let page = answer.text();
    assert!(!page.contains("<script") && !page.contains("style=\""), "{page}");
    page
}

#[rstest]
fn whoever_is_signed_in_sees_rooms_and_events(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let room = verified_room(&club, ALICE, "S516", (1, 9));
    let own = event(&club, BOB, At::Room(&room), (2, 4));
    declare_shared(&club, CAROL, At::Room(&room), (5, 6)).expect(201);
    event(&club, CAROL, At::Place("Discord & <b>co</b>"), (3, 5));
    let conn = &mut club.connect();
    let named = |name: &str| events::name.eq(name.to_owned());
    diesel::update(events::table.find(DbUuid(own.parse().unwrap())))
        .set(named("<i>\"Rust\"</i>"))
        .execute(conn)
        .unwrap();
    let everyone = groups::table.find(DbUuid(EVERYONE.parse().unwrap()));
    diesel::update(everyone).set(groups::name.eq("a&b")).execute(conn).unwrap();

    // The week of each day that the events may be on.
    let shown: String = [1, 9, 24]
        .map(|hours| board(&club.by(BOB).get(&format!("/board?view=week&day={}", day(&club, hours))).expect(200)))
        .concat();
    for text in [
        "S516",
        "Discord &amp; &lt;b&gt;co&lt;/b&gt;",
        "&lt;i&gt;&quot;Rust&quot;&lt;/i&gt;",
        "a&amp;b",
        "bar shared",
        "bar instant",
        "class=\"free\"",
        "class=\"held\"",
        "place not held",
        &format!("href=\"#e-{own}\""),
        &format!("<tr id=\"e-{own}\">"),
    ] {
        assert!(shown.contains(text), "{text} in {shown}");
    }
    assert!(!shown.contains("<i>") && !shown.contains("<b>co") && !shown.contains("http-equiv"), "{shown}");

    let one = board(&club.by(BOB).get(&format!("/board?view=week&day={}&place=%20s516", day(&club, 2))).expect(200));
    assert!(one.contains(">S516<") && !one.contains("Discord"), "{one}");
    let none = board(&club.by(BOB).get("/board?day=2001-02-03&place=nowhere").expect(200));
    assert!(none.contains("Saturday, 3 February 2001") && none.contains("No room and no event."), "{none}");
    assert!(board(&club.by(BOB).get("/board?day=&view=&place=").expect(200)).contains(&day(&club, 0).to_string()));
    by_token(&club, &make_token(&club, BOB, "read")).get("/board").expect(200);
}

#[rstest]
fn links_lead_to_the_days_around(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let today = day(&club, 0);
    let shown = board(&club.by(BOB).get("/board?day=2026-03-31&place=S%26516").expect(200));
    for link in [
        "/board?day=2026-03-30&amp;place=S%26516".to_owned(),
        "/board?day=2026-04-01&amp;place=S%26516".to_owned(),
        format!("/board?day={today}&amp;place=S%26516"),
        "/board?day=2026-03-31&amp;view=week&amp;place=S%26516".to_owned(),
        "/board?day=2026-03-31".to_owned(),
    ] {
        assert!(links(&shown).contains(&link.as_str()), "{link} in {:?}", links(&shown));
        club.by(BOB).get(&link.replace("&amp;", "&")).expect(200);
    }
    let week = board(&club.by(BOB).get("/board?day=2026-03-31&view=week").expect(200));
    assert!(week.contains("30 March to 5 April 2026"), "{week}");
    for link in ["/board?day=2026-03-24&amp;view=week", "/board?day=2026-04-07&amp;view=week", "/board?day=2026-03-31"]
    {
        assert!(links(&week).contains(&link), "{link} in {:?}", links(&week));
    }
    // Dates at the ends of the calendar are answered, if only by a refusal.
    for (bad, status) in [("day=9999-12-31", 200), ("day=0000-01-01", 400), ("day=9998-12-01&view=week", 200)] {
        club.by(BOB).get(&format!("/board?{bad}")).expect(status);
    }
    for bad in ["day=today", "day=2026-02-30", "view=month", "day=2026-01-01&day=2026-01-02", "place=%00"] {
        let refused = board(&club.by(BOB).get(&format!("/board?{bad}")).expect(400));
        assert!(refused.contains("href=\"/board\""), "{refused}");
        assert!(refused.contains(&format!("<p>{} ", bad.split('=').next().unwrap())), "{refused}");
    }
    club.by(BOB).post("/board", json!({})).refused(405, "method-not-allowed");
}

#[rstest]
fn nobody_else_sees_it(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    verified_room(&club, ALICE, "S516", (1, 2));
    let week = "/board?view=week";
    for (who, status) in [
        (club.anonymous(), 401),
        (club.anonymous().header("cookie", "session=nothing"), 401),
        (by_token(&club, "clubbooking_nothing"), 401),
        (club.by(SUSAN), 403),
    ] {
        let refused = board(&who.get(week).expect(status));
        assert!(!refused.contains("S516"), "{refused}");
        assert_eq!(
            refused.contains("<a href=\"/sign-in?to=%2Fboard%3Fview%3Dweek\">Sign in to see the board</a>"),
            status == 401,
            "{refused}"
        );
    }
    // The front end has its own way to sign in, and pages of events.
    let folder = front_end();
    let club = Club::start_with(backend, &["--static", folder.path().to_str().unwrap()]);
    assert!(board(&club.anonymous().get(week).expect(401)).contains("<a href=\"/\">Sign in to see the board</a>"));
    let event = event(&club, BOB, At::Place("Discord"), (0, 1));
    let shown = board(&club.by(BOB).get(&format!("/board?day={}", day(&club, 0))).expect(200));
    assert!(links(&shown).contains(&format!("/events/{event}").as_str()), "{shown}");
}

#[rstest]
fn a_kiosk_token_sees_the_board_and_nothing_else(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let room = verified_room(&club, ALICE, "S516", (0, 1));
    let token = make_token(&club, BOB, Scope::Board.word());
    let kiosk = format!("/board?kiosk={token}");
    let answer = club.anonymous().get(&kiosk).expect(200);
    assert_eq!(answer.header("cache-control"), Some("private, no-cache"));
    let shown = board(&answer);
    assert!(shown.contains("<meta http-equiv=\"refresh\" content=\"60\">"), "{shown}");
    assert!(!shown.contains(&token) && !shown.contains("<a ") && !shown.contains("<form"), "{shown}");
    by_token(&club, &token).get("/board").expect(200);
    club.anonymous().get(&format!("{kiosk}&view=week&place=S516")).expect(200);

    for path in [
        "/api/users/me",
        "/api/events",
        "/api/rooms",
        &format!("/api/rooms/{room}"),
        "/api/groups",
        "/api/users/me/ical",
        "/api/users/me/tokens",
        "/api/activity/events",
        "/api/availability?dateBegin=2026-01-01T00:00:00Z&dateEnd=2026-01-02T00:00:00Z&minutes=15",
    ] {
        by_token(&club, &token).get(path).refused(403, "insufficient-scope");
        let separator = if path.contains('?') { '&' } else { '?' };
        club.anonymous().get(&format!("{path}{separator}kiosk={token}")).refused(401, "not-signed-in");
    }
    by_token(&club, &token).post("/api/tags", json!({"name": "x"})).refused(403, "insufficient-scope");
    by_token(&club, &token).delete(&format!("/api/rooms/{room}")).refused(403, "insufficient-scope");
    // Before it learns what else is wrong with a request.
    for path in ["/api/events?limit=x", "/api/rooms?dateBegin=x", "/api/rooms/x", "/api/availability"] {
        by_token(&club, &token).get(path).refused(403, "insufficient-scope");
    }
    by_token(&club, &token).post("/api/events", json!({})).refused(403, "insufficient-scope");
    assert_eq!(answer.header("x-robots-tag"), Some("noindex"));

    // A token that can do more does not belong in an address.
    for scope in ["read", "write"] {
        let refused =
            board(&club.anonymous().get(&format!("/board?kiosk={}", make_token(&club, BOB, scope))).expect(403));
        assert!(!refused.contains("S516") && refused.contains("http-equiv"), "{refused}");
    }
    // A session beside it changes nothing.
    club.by(BOB).get("/board?kiosk=clubbooking_nothing").expect(401);
    let tokens = club.by(BOB).get("/api/users/me/tokens").expect(200).json();
    assert_eq!(tokens[0]["scope"], "board");
    let path = format!("/api/users/me/tokens/{}", tokens[0]["tokenId"].as_str().unwrap());
    club.by(BOB).delete(&path).expect(204);
    let refused = board(&club.anonymous().get(&kiosk).expect(401));
    // The screen goes on asking, in case that it was a fault.
    assert!(refused.contains("http-equiv") && !refused.contains(&token), "{refused}");
}

#[rstest]
fn a_screen_is_sent_only_what_has_changed(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    // The line at the present time stands still for five minutes.
    let minute = club.clock.now().utc().timestamp() % 300;
    club.clock.advance(TimeDelta::seconds(300 - minute));
    let kiosk = format!("/board?kiosk={}", make_token(&club, BOB, "board"));
    let first = club.anonymous().get(&kiosk).expect(200);
    let tag = first.header("etag").unwrap().to_owned();
    let again = || club.anonymous().header("if-none-match", &tag).get(&kiosk);
    club.clock.advance(TimeDelta::minutes(4));
    let same = again().expect(304);
    // A browser gives the policy of the 304 to the page that it has.
    let policy = |answer: &Answer| answer.header("content-security-policy").map(str::to_owned);
    assert_eq!((same.text(), policy(&same)), (String::new(), policy(&first)));
    // Two hours, because advancing the clock may have reached the next day.
    event(&club, BOB, At::Place("Discord"), (0, 2));
    let other = again().expect(200);
    assert_ne!(other.header("etag"), Some(tag.as_str()));
}

#[rstest]
fn a_board_has_an_end(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let day = day(&club, 0);
    let rows = (0..1000).map(|n| format!("x,{0},{0},10:00,11:00,place {n:03}\n", day.format("%Y/%m/%d")));
    let table = format!("Subject,Start date,End date,Start time,End time,Location\n{}", rows.collect::<String>());
    let client = club.by(ALICE).header("content-type", "text/csv");
    client.send_bytes("POST", "/api/rooms/all", table.into_bytes()).expect(201);
    let all = board(&club.by(BOB).get(&format!("/board?day={day}")).expect(200));
    assert!(all.contains("place 999") && !all.contains("There is more than fits here."), "{} bytes", all.len());
    let at = |time: &str| format!("{day}T{time}:00+09:00");
    let room = json!({"place": "one more", "timeStart": at("12:00"), "timeEnd": at("13:00"), "admins": [id(BOB)]});
    club.by(BOB).post("/api/rooms", room).expect(201);
    let cut = board(&club.by(BOB).get(&format!("/board?day={day}")).expect(200));
    assert!(cut.contains("There is more than fits here."), "{} bytes", cut.len());
    let one = board(&club.by(BOB).get(&format!("/board?day={day}&place=one%20more")).expect(200));
    assert!(one.contains("one more") && !one.contains("There is more than fits here."), "{one}");
}

#[test]
fn a_browser_shows_it_to_everybody() {
    let club = Club::start(Sqlite);
    let room = verified_room(&club, ALICE, "S516", (0, 3));
    event(&club, BOB, At::Room(&room), (0, 1));
    declare_shared(&club, CAROL, At::Room(&room), (1, 2)).expect(201);
    event(&club, CAROL, At::Place("Discord"), (0, 1));
    declare_shared(&club, CAROL, At::Place("Lounge"), (0, 1)).expect(201);
    let mut node = browser_node(include_str!("../../../service-kit/tests/real/board.mjs"));
    let shots = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("screenshots").join(env!("CARGO_PKG_NAME"));
    let home = tempfile::tempdir().unwrap();
    node.env("PATH", std::env::var("PATH").unwrap()).env("HOME", home.path()).env("FOLDER", &shots);
    node.env("ORIGIN", club.origin(0)).env("DAY", day(&club, 0).to_string());
    node.env("COOKIE", format!("session=session-of-{BOB}")).env("KIOSK", make_token(&club, BOB, "board"));
    let done = node.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    eprintln!("screenshots of the board are in {}", shots.display());
    let seen: Value = serde_json::from_slice(&done.stdout).unwrap();

    assert_eq!(seen["errors"], json!([]), "{seen}");
    assert!(seen["statuses"].as_array().unwrap().iter().all(|status| status == 200), "{seen}");
    for (name, overflow) in seen["overflow"].as_object().unwrap() {
        assert!(overflow.as_i64().unwrap() <= 0, "{name} has to be scrolled sideways");
    }
    for (name, bytes) in seen["shots"].as_object().unwrap() {
        assert!(bytes.as_u64().unwrap() > 5_000, "{name} shows nothing");
    }
    for scheme in ["light", "dark"] {
        assert!(seen["contrast"][scheme][0].as_f64().unwrap() >= 4.5, "{scheme}: {}", seen["contrast"]);
    }
    let stops = seen["stops"].as_array().unwrap();
    for stop in stops {
        assert!(stop["label"].as_str().is_some_and(|label| !label.is_empty()) && stop["outline"] == true, "{stop}");
    }
    assert!(stops.iter().any(|stop| stop["label"] == "Timetable"), "the timetable can be scrolled by keyboard: {seen}");
    assert_eq!((&seen["target"], &seen["style"]), (&json!("Rust evening"), &json!("auto")), "{seen}");
    let kiosk = &seen["kiosk"];
    assert_eq!((&kiosk["links"], &kiosk["refresh"], &kiosk["overflow"]), (&json!(0), &json!("60"), &json!("hidden")));
}

#[rstest]
fn queries_use_indexes(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    event(&club, BOB, At::Room(&verified_room(&club, ALICE, "S516", (0, 9))), (1, 2));
    let at = |hours| DbTimestamp(hours_from_now(&club, hours));
    for place_key in [None, Some("s516")] {
        plans::check(&club, |conn| {
            let content = queries::load(conn, (at(-10), at(100)), place_key).unwrap();
            assert_eq!((content.rooms.len(), content.events.len()), (1, 1));
        });
    }
}

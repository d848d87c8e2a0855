//! The board: what it shows, to whom, and what a kiosk token can do.

use std::path::Path;

use booking_service::{
    auth::Scope,
    board::queries,
    schema::{events, groups},
};
use chrono::{Days, TimeDelta};
use common::time::Clock;
use diesel::prelude::*;
use rstest::rstest;
use serde_json::{Value, json};
use service_kit::database::types::{DbTimestamp, DbUuid};

use crate::{
    builders::{At, EVERYONE, declare_shared, event, event_body, merge, room as make_room, verified_room},
    front_page::page::links,
    harness::{
        ALICE, Answer, BOB,
        Backend::{self, Postgres, Sqlite},
        CAROL, Club, SUSAN, hours_from_now, id,
    },
    plans,
    real_sign_in::real::browser_node,
    sign_in::HTML,
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
        "bar free",
        "\"held x",
        &format!("<a href=\"/events/{own}\" class=\"bar "),
        " title=\"&lt;i&gt;&quot;Rust&quot;&lt;/i&gt;, ",
    ] {
        assert!(shown.contains(text), "{text} in {shown}");
    }
    assert!(!shown.contains("<i>") && !shown.contains("<b>co") && !shown.contains("http-equiv"), "{shown}");

    let day_of_event = board(&club.by(BOB).get(&format!("/board?day={}", day(&club, 3))).expect(200));
    assert!(day_of_event.contains("place not held"), "{day_of_event}");

    let one = board(&club.by(BOB).get(&format!("/board?view=week&day={}&place=%20s516", day(&club, 2))).expect(200));
    assert!(one.contains(&own) && !one.contains("Discord"), "{one}");
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
        let refused = board(&club.by(BOB).header("accept", HTML).get(&format!("/board?{bad}")).expect(400));
        assert!(refused.contains("href=\"/board\""), "{refused}");
        assert!(refused.contains(&format!("class=\"mute\">{} ", bad.split('=').next().unwrap())), "{refused}");
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
        let refused = board(&who.header("accept", HTML).get(week).expect(status));
        assert!(!refused.contains("S516"), "{refused}");
        assert_eq!(
            refused.contains("href=\"/sign-in?to=%2Fboard%3Fview%3Dweek\">Sign in</a>"),
            status == 401,
            "{refused}"
        );
    }
    // The front end has its own way to sign in, and pages of events.
    let folder = front_end();
    let club = Club::start_with(backend, &["--static", folder.path().to_str().unwrap()]);
    assert!(
        board(&club.anonymous().header("accept", HTML).get(week).expect(401))
            .contains("href=\"/\">To the start page</a>")
    );
}

/// At noon of the club's next day, so that the hours of a test are on one day. The clock is stopped.
pub fn start_at_noon(backend: Backend) -> Club {
    let club = Club::start_by(Clock::stopped(), backend, &[]);
    let now = club.clock.now().utc().with_timezone(&chrono_tz::Tz::Asia__Tokyo).naive_local();
    let noon = (now.date() + Days::new(1)).and_hms_opt(12, 0, 0).unwrap();
    club.clock.advance(noon - now);
    club
}

#[rstest]
fn free_times_lead_to_their_booking(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = start_at_noon(backend);
    let today = day(&club, 0);
    let room = verified_room(&club, ALICE, "S&516", (-3, 9));
    declare_shared(&club, BOB, At::Room(&room), (2, 4)).expect(201);
    event(&club, BOB, At::Room(&verified_room(&club, ALICE, "S517", (1, 2))), (1, 2));
    let later = verified_room(&club, ALICE, "S518", (20, 30));
    let shown = board(&club.by(BOB).get(&format!("/board?day={today}")).expect(200));
    let book = |date, from: &str, until: &str, room: &str| {
        let time = |text: &str| text.replace(':', "%3A");
        format!("/events/new?date={date}&amp;from={}&amp;until={}&amp;room={room}", time(from), time(until))
    };
    let booked: Vec<_> = links(&shown).into_iter().filter(|link| link.starts_with("/events/new")).collect();
    let expected = [
        // What is left of the time before the event.
        book(today, "12:00", "14:00", &room),
        book(today, "16:00", "21:00", &room),
        format!("{}&amp;sharedRoom=true", book(today, "14:00", "16:00", &room)),
    ];
    assert_eq!(booked, expected, "{shown}");
    assert!(shown.contains("<b>free for shared events</b> <small>14:00–16:00</small>"), "{shown}");
    assert!(shown.contains("14:00–16:00 (shared events only)") && shown.contains("fully booked"), "{shown}");
    // Its part of a free time that goes on over midnight, and the rest on the next day. Nothing of the past.
    let on = |days| {
        let page = board(&club.by(BOB).get(&format!("/board?day={}&place=S518", today + Days::new(days))).expect(200));
        links(&page).into_iter().filter(|link| link.starts_with("/events/new")).map(str::to_owned).collect::<Vec<_>>()
    };
    let next = today + Days::new(1);
    assert_eq!((on(0), on(1)), (vec![], vec![book(next, "08:00", "18:00", &later)]));
    club.clock.advance(TimeDelta::days(2));
    assert_eq!(on(1), Vec::<String>::new());
}

#[rstest]
fn a_week_has_its_days_below_each_other(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = start_at_noon(backend);
    let room = verified_room(&club, ALICE, "S516", (1, 3));
    event(&club, BOB, At::Room(&room), (1, 2));
    let today = day(&club, 0);
    let week = |place: &str| {
        let page = board(&club.by(BOB).get(&format!("/board?view=week&day={today}{place}")).expect(200));
        (page.matches("<h2 class=\"day\">").count(), page.matches("<div class=\"row hours").count(), page)
    };
    let (days, heads, page) = week("");
    assert_eq!((days, heads), (7, 1), "{page}");
    assert_eq!(page.matches("No room and no event.").count(), 6);
    // The days of one place are its rows.
    let (days, heads, page) = week("&place=S516");
    assert_eq!((days, heads, page.matches("<div class=\"lane\">").count()), (0, 1, 7), "{page}");
    assert!(links(&page).contains(&format!("/board?day={today}&amp;place=S516").as_str()), "{page}");
}

#[rstest]
fn a_day_opens_at_the_first_hour_that_is_held(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = start_at_noon(backend);
    for (day, from, until) in [("13", "18", "21"), ("17", "10", "21")] {
        let at = |hour: &str| format!("2031-05-{day}T{hour}:00:00+09:00");
        let room = json!({"place": "S516", "timeStart": at(from), "timeEnd": at(until), "admins": [id(BOB)]});
        club.by(BOB).post("/api/rooms", room).expect(201);
    }
    let begins_at = |shown: &str, hour: &str| shown.contains(&format!("<span class=\"hour x0\">{hour}</span>"));
    let week = board(&club.by(BOB).get("/board?view=week&day=2031-05-14").expect(200));
    let of_day = |name: &str| {
        let days = week.split("<h2 class=\"day\">");
        days.skip(1).find(|day| day.starts_with(name)).unwrap_or_else(|| panic!("{name} in {week}")).to_owned()
    };
    assert!(begins_at(&of_day("Tuesday"), "18:00") && begins_at(&of_day("Saturday"), "10:00"), "{week}");
    // The rows of one table have the same hours.
    let one = board(&club.by(BOB).get("/board?view=week&day=2031-05-14&place=S516").expect(200));
    assert!(begins_at(&one, "10:00") && one.matches("<div class=\"row hours").count() == 1, "{one}");
    // The present hour is always there.
    verified_room(&club, ALICE, "S517", (6, 9));
    let today = board(&club.by(BOB).get(&format!("/board?day={}", day(&club, 0))).expect(200));
    assert!(begins_at(&today, "12:00"), "{today}");
}

#[rstest]
fn a_week_is_no_longer_than_other_pages(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = start_at_noon(backend);
    let longest = |n: i64| format!("{n:02}{}", "講".repeat(30));
    for n in 0..40 {
        let times = json!({"name": longest(n), "sharedRoom": true});
        for place in [longest(n), longest(0)] {
            let body = merge([event_body(&club, BOB, At::Place(&place), (n % 5, 6 + n % 5)), times.clone()]);
            club.by(BOB).post("/api/events", body).expect(201);
        }
    }
    let today = day(&club, 0);
    let one_place: String = url::form_urlencoded::byte_serialize(longest(0).as_bytes()).collect();
    for place in [String::new(), format!("&place={one_place}")] {
        let week = board(&club.by(BOB).get(&format!("/board?view=week&day={today}{place}")).expect(200));
        assert!(week.len() <= 60_000, "{place}: {} bytes", week.len());
        // The row of the one place fits.
        let has_more = week.contains(&format!("<p><a href=\"/board?day={today}"));
        assert!(has_more == place.is_empty() && !week.contains("<tbody"), "{place}: {week}");
    }
}

#[test]
fn the_hour_that_comes_twice_is_there_twice() {
    let club = Club::start_with(Sqlite, &["--time-zone", "Europe/Berlin"]);
    let times = json!({"timeStart": "2026-10-25T02:30:00+02:00", "timeEnd": "2026-10-25T02:15:00+01:00"});
    let body = merge([event_body(&club, BOB, At::Place("Discord"), (0, 1)), times]);
    club.by(BOB).post("/api/events", body).expect(201);
    for view in ["day", "week&place=Discord"] {
        let shown = board(&club.by(BOB).get(&format!("/board?day=2026-10-25&view={view}")).expect(200));
        for text in [">2:00 CEST<", ">2:00 CET<", "2:30 CEST–2:15 CET", "{--hours:7.00}"] {
            assert!(shown.contains(text), "{text} in {shown}");
        }
        // The hours are written again for a day that has others.
        assert_eq!(shown.matches("<div class=\"row hours").count(), if view == "day" { 1 } else { 2 });
    }
}

#[rstest]
fn a_kiosk_pages_through_what_does_not_fit(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = start_at_noon(backend);
    for n in 0..10 {
        let room = verified_room(&club, ALICE, &format!("S{n}"), (-2, 4));
        event(&club, BOB, At::Room(&room), if n == 9 { (-1, 4) } else { (0, 2) });
    }
    // More lanes than a screen has.
    for _ in 0..10 {
        event(&club, BOB, At::Place("Discord"), (0, 1));
    }
    let kiosk = format!("/board?kiosk={}&day={}", make_token(&club, BOB, "board"), day(&club, 0));
    let mut seen = Vec::new();
    for _ in 0..4 {
        let page = board(&club.anonymous().get(&kiosk).expect(200));
        assert!(page.contains("<meta http-equiv=\"refresh\" content=\"20\">"), "{page}");
        let lanes = page.matches("<div class=\"lane\">").count();
        let number = (1..=4).find(|n| page.contains(&format!("<p>{n} of 4</p>"))).unwrap();
        seen.push((number, lanes, page.matches("free from 14:00").count(), page.matches("fully booked").count()));
        club.clock.advance(TimeDelta::seconds(20));
    }
    let numbers: Vec<_> = seen.iter().map(|(number, ..)| *number).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] % 4 + 1 == pair[1]), "{numbers:?}");
    seen.sort_unstable();
    // Ten rooms, and the lanes of the place.
    assert_eq!(seen, [(1, 7, 7, 0), (2, 3, 2, 1), (3, 7, 0, 0), (4, 3, 0, 0)]);
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
    assert!(refused.contains("<h1>This screen is not connected any more</h1>"), "{refused}");
    assert!(!refused.contains("<code>") && !refused.contains("token") && !refused.contains("<a "), "{refused}");
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
    assert!(all.contains("place 999") && !all.contains("fit here"), "{} bytes", all.len());
    let at = |time: &str| format!("{day}T{time}:00+09:00");
    let room = json!({"place": "one more", "timeStart": at("12:00"), "timeEnd": at("13:00"), "admins": [id(BOB)]});
    club.by(BOB).post("/api/rooms", room).expect(201);
    let cut = board(&club.by(BOB).get(&format!("/board?day={day}")).expect(200));
    let left_out = "Only 1000 of 1001 rooms fit here, those that begin first. To see the others, choose a place.";
    assert!(cut.contains(left_out), "{} bytes", cut.len());
    let week = board(&club.by(BOB).get(&format!("/board?view=week&day={day}")).expect(200));
    assert!(week.contains("Show one day</a>"), "{} bytes", week.len());
    let one = board(&club.by(BOB).get(&format!("/board?day={day}&place=one%20more")).expect(200));
    assert!(one.contains("one more") && !one.contains("fit here"), "{one}");
}

/// Takes seconds: a browser checks the accessibility of the board in each theme and size.
#[test]
fn a_browser_shows_it_to_everybody() {
    let club = start_at_noon(Sqlite);
    let named = |by, at, hours, name: &str| {
        let body = merge([event_body(&club, by, at, hours), json!({ "name": name })]);
        club.by(by).post("/api/events", body).expect(201);
    };
    let longest = "新入生歓迎プログラミング講習会(第一回)入門編とその後の懇親会！";
    let room = verified_room(&club, ALICE, "S516", (-3, 9));
    event(&club, BOB, At::Room(&room), (-1, 1));
    named(BOB, At::Room(&room), (4, 5), longest);
    declare_shared(&club, CAROL, At::Room(&room), (1, 3)).expect(201);
    let hall = verified_room(&club, ALICE, "西講義棟１号館三階多目的ホールの奥の大きな部屋とその隣の準備室", (0, 12));
    named(CAROL, At::Room(&hall), (11, 12), longest);
    event(&club, BOB, At::Room(&verified_room(&club, ALICE, "S517", (2, 4))), (2, 4));
    make_room(&club, BOB, "Library", (0, 3));
    declare_shared(&club, CAROL, At::Place("Lounge"), (0, 1)).expect(201);
    named(CAROL, At::Place("Camp"), (-40, 40), "Camp in the mountains");
    for n in 0..9 {
        event(&club, CAROL, At::Place("Discord"), (n % 2, 2 + n % 3));
    }
    let mut node = browser_node(include_str!("../../../service-kit/tests/real/board.mjs"));
    let shots = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("screenshots").join(env!("CARGO_PKG_NAME"));
    let home = tempfile::tempdir().unwrap();
    node.env("PATH", std::env::var("PATH").unwrap()).env("HOME", home.path()).env("FOLDER", &shots);
    node.env("ORIGIN", club.origin(0)).env("DAY", day(&club, 0).to_string()).env("BUSY", "Discord");
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
    for (page, found) in seen["axe"].as_object().unwrap() {
        assert_eq!(found, &json!([]), "{page}");
    }
    for (page, contrast) in seen["contrast"].as_object().unwrap() {
        assert!(contrast.as_f64().unwrap() >= 4.5, "{page}: {contrast}");
    }
    assert_eq!((&seen["edges"], &seen["style"]), (&json!([0, 0]), &json!("auto")));
    let ellipsis = seen["ellipsis"].as_array().unwrap();
    assert!(!ellipsis.is_empty() && ellipsis.iter().all(|style| style == "ellipsis"), "{ellipsis:?}");
    assert!(
        seen["tall"].as_array().unwrap().iter().all(|less| less.as_f64().unwrap().abs() <= 1.0),
        "{}",
        seen["tall"]
    );
    let stops = seen["stops"].as_array().unwrap();
    for stop in stops {
        assert!(stop["label"].as_str().is_some_and(|label| !label.is_empty()) && stop["outline"] == true, "{stop}");
    }
    let reaches = |href: &str| {
        stops.iter().any(|stop| {
            stop["href"].as_str().is_some_and(|to| to.starts_with(href)) && !stop["title"].as_str().unwrap().is_empty()
        })
    };
    assert!(reaches("/events/new?") && reaches("/events/0"), "{stops:?}");
    assert!(stops.iter().any(|stop| stop["label"] == "Timetable"), "the timetable can be scrolled by keyboard: {seen}");
    let kiosk = &seen["kiosk"];
    assert_eq!((&kiosk["links"], &kiosk["refresh"], &kiosk["overflow"]), (&json!(0), &json!("20"), &json!("hidden")));
    assert_eq!((&kiosk["axe"], &kiosk["cut"]), (&json!([]), &json!([])), "everything is shown in full");
    assert!(kiosk["below"].as_array().unwrap().iter().all(|below| below.as_i64().unwrap() <= 0), "{kiosk}");
    assert!(kiosk["place"].as_str().unwrap().contains("free from 15:00"), "{kiosk}");
    assert!(kiosk["refused"].as_str().unwrap().starts_with("This screen is not connected any more"), "{kiosk}");
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

#[rstest]
fn the_board_and_a_screen_have_a_language(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    verified_room(&club, ALICE, "S516", (1, 5));
    event(&club, BOB, At::Place("Discord"), (1, 2));
    let path = format!("/board?view=week&day={}", day(&club, 1));
    let japanese = || club.by(BOB).header("accept", HTML).header("accept-language", "ja");
    let shown = board(&japanese().get(&path).expect(200));
    for text in ["<html lang=\"ja\">", "月", "空き", "の時間表", "サークルの部屋", "aria-current=\"page\">予約状況</a>"]
    {
        assert!(shown.contains(text), "{text} in {shown}");
    }
    let english = ["Timetable", "free", "Place", "Show<", "held by", "No event", "Mon", "until"];
    let style = shown.split("</style>").nth(1).unwrap();
    assert!(english.iter().all(|text| !style.contains(&format!(">{text}"))), "{shown}");
    // The language link leads back to the same board.
    let to = format!("to=%2Fboard%3Fview%3Dweek%26day%3D{}", day(&club, 1));
    assert!(shown.contains(&format!("/language?set=en&amp;{to}")), "{shown}");
    let refused = club.anonymous().header("accept", HTML).header("accept-language", "ja").get("/board?kiosk=nothing");
    assert!(refused.expect(401).text().contains("この画面の接続は切れています"));
}

//! The pages on which members act: every page, in both languages, for everybody.

use std::{collections::BTreeSet, path::Path};

use booking_service::server::INFO;
use rstest::rstest;
use serde_json::json;

use crate::{
    builders::{At, answer_poll, each, event, event_body, group, merge, poll, text, verified_room},
    front_page::{forms::open, page},
    harness::{
        ALICE, Answer, BOB,
        Backend::{self, Postgres, Sqlite},
        Club, hours_from_now,
    },
    real_sign_in::real::chromium,
    series::series,
    sign_in::HTML,
};

/// The paths of the pages of members, with objects that exist and that the caller may change.
fn paths(club: &Club, by: &str) -> Vec<String> {
    let long = "長い名前".repeat(8);
    let group = group(club, by, &"部".repeat(32), &[by]);
    let details = json!({"name": "n".repeat(32), "description": "d".repeat(400), "groupId": group});
    let event = merge([event_body(club, by, At::Place(&long), (20, 21)), details.clone()]);
    let event = text(&club.by(by).post("/api/events", event).expect(201).json()["eventId"]);
    let (poll, slots) = poll(club, by, details);
    answer_poll(club, by, &poll, &[&slots[0]]).expect(201);
    let poll = poll.rsplit('/').next().unwrap().to_owned();
    let room = verified_room(club, by, &"r".repeat(32), (1, 9));
    let webhook =
        json!({"name": "w".repeat(64), "url": "https://chat.example/", "format": "discord", "types": ["digest"]});
    let webhook = text(&club.by(by).post("/api/webhooks", webhook).expect(201).json()["webhookId"]);
    let dates = text(&series(club, by, "S518", "FREQ=WEEKLY;COUNT=2").1["seriesId"]);
    let values = [
        ("eventID", &event),
        ("seriesID", &dates),
        ("draftEventID", &poll),
        ("groupID", &group),
        ("roomID", &room),
        ("webhookID", &webhook),
    ];
    let skipped = ["/sign-in", "/callback", "/events/{eventID}/calendar.ics"];
    let paths = INFO.front_page_paths.iter().filter(|path| !skipped.contains(path));
    paths
        .map(|path| values.iter().fold((*path).to_owned(), |path, (name, id)| path.replace(&format!("{{{name}}}"), id)))
        .collect()
}

fn check(answer: &Answer, language: &str) -> String {
    let shown = page::check(answer);
    assert!(shown.contains(&format!("<html lang=\"{language}\">")), "{answer:?}");
    assert_eq!(shown.matches("<h1>").count(), 1, "{shown}");
    shown
}

#[rstest]
fn every_page_is_there_in_both_languages_and_only_for_members(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for path in paths(&club, ALICE) {
        for language in ["en", "ja"] {
            let by = club.by(ALICE).header("accept", HTML).header("accept-language", language);
            let shown = check(&by.get(&path).expect(200), language);
            assert!(shown.contains("/language?set="), "{shown}");
        }
        let nobody = club.anonymous().header("accept", HTML).get(&path);
        if ["/", "/sign-out"].contains(&path.as_str()) {
            nobody.expect(200);
            continue;
        }
        let shown = check(&nobody.expect(401), "en");
        assert!(shown.contains("href=\"/sign-in?to=%2F"), "{shown}");
        // A program gets what it reads.
        club.anonymous().get(&path).refused(401, "not-signed-in");
    }
    // The page of a form stays open during the sign-in, so that it can be sent again.
    let form = club.anonymous().header("accept", HTML).header("content-type", "application/x-www-form-urlencoded");
    let refused = check(&form.send_bytes("POST", "/events/new", b"name=Tea".to_vec()).expect(401), "en");
    assert!(refused.contains("href=\"/sign-in?to=%2F\" target=\"_blank\">Sign in</a>"), "{refused}");
}

#[rstest]
fn a_person_gets_a_page_for_every_refusal(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let nothing = "/events/0198c0de-0000-7000-8000-000000000020";
    for (method, path, status) in [
        ("GET", "/nowhere", 404),
        ("GET", "/api/nowhere", 404),
        ("GET", nothing, 404),
        ("GET", "/events/x", 400),
        ("GET", "/privileges", 403),
        ("GET", "/me/feed", 405),
        ("POST", "/events", 405),
        ("GET", "/api/events?limit=x", 400),
        ("DELETE", "/api/users/me", 405),
    ] {
        let answer = club.by(BOB).header("accept", HTML).send(method, path, None);
        let shown = check(&answer.expect(status), "en");
        assert!(shown.contains("href=\"/\""), "{shown}");
        let japanese = club.anonymous().header("accept", HTML).header("cookie", "session=session-of-bob; language=ja");
        let japanese = japanese.send(method, path, None);
        check(&japanese.expect(status), "ja");
        let problem = club.by(BOB).send(method, path, None).expect(status);
        assert_eq!(problem.header("content-type"), Some("application/problem+json"));
    }
    let shown = check(&club.anonymous().header("accept", HTML).get("/problems").expect(200), "en");
    assert!(shown.contains("room-conflict") && shown.contains("href=\"/problems/not-found\""), "{shown}");
    check(&club.anonymous().header("accept", HTML).get("/problems/not-found").expect(200), "en");
    check(&club.anonymous().header("accept", HTML).get("/developers").expect(200), "en");
}

/// Takes seconds: every path is called with every method, some thousand requests.
#[rstest]
fn no_refusal_to_a_person_is_raw(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start_with(backend, &["--rate-limit", "0", "--sign-in-rate-limit", "0"]);
    let statuses = page::refusals(&club, BOB, &INFO);
    assert_eq!(statuses, BTreeSet::from([400, 401, 403, 404, 405, 415]));
    let by =
        |kind: &str| club.by(BOB).header("accept", HTML).header("accept-language", "ja").header("content-type", kind);
    let large = by("application/json").send_bytes("POST", "/api/events", vec![b' '; 3 << 20]);
    assert!(check(&large.expect(413), "ja").contains("大きすぎます"));
    verified_room(&club, ALICE, "S516", (1, 9));
    let taken = event_body(&club, BOB, At::Place("S516"), (2, 3)).to_string().into_bytes();
    by("application/json").send_bytes("POST", "/api/events", taken.clone()).expect(201);
    let conflict = by("application/json").send_bytes("POST", "/api/events", taken);
    assert!(check(&conflict.expect(409), "ja").contains("部屋がすでに使われています"));
}

#[test]
fn every_page_is_listed() {
    page::check_lists(include_str!("../../src/pages/mod.rs"), &INFO);
}

/// Takes seconds: a browser checks the accessibility of each page four times.
#[test]
fn every_page_can_be_read_on_each_screen() {
    let club = Club::start(Sqlite);
    let mut pages: Vec<_> = paths(&club, ALICE).into_iter().map(|path| (path, 200)).collect();
    let others = ["/callback", "/board", "/board?view=week", "/dev/sign-in", "/developers", "/problems"];
    pages.extend(others.map(|path| (path.to_owned(), 200)));
    // A date of a series; a time at which no room is free; what has just been deleted.
    let (_, made) = series(&club, ALICE, "S516", "FREQ=WEEKLY;COUNT=4");
    let date = format!("/events/{}", each(&made["events"], "eventId")[1]);
    let at = |hours| hours_from_now(&club, hours).in_zone(chrono_tz::Tz::Asia__Tokyo).to_string();
    let (start, end) = (at(9), at(10));
    let full = format!("/events/new?date={}&from={}&until={}", &start[..10], &start[11..16], &end[11..16]);
    let deleted = "/events?notice=deleted&deleted=0198c0de-0000-7000-8000-000000000020".to_owned();
    pages.extend([date.clone(), format!("{date}/delete"), full, deleted].map(|path| (path, 200)));
    for (path, status) in [("/nowhere", 404), ("/rooms/x", 400), ("/me/feed", 405), ("/api/callback?state=x", 400)] {
        pages.push((path.to_owned(), status));
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("screenshots").join("booking-pages");
    let variables = [
        ("ORIGIN", club.origin(0)),
        ("COOKIE", "session=session-of-alice"),
        ("PAGES", &json!(pages).to_string()),
        ("FOLDER", folder.to_str().unwrap()),
    ];
    let wrong = chromium(include_str!("../../../service-kit/tests/real/pages.mjs"), &variables);
    assert_eq!(wrong, json!([]), "pictures are in {}", folder.display());
}

#[test]
fn a_page_says_how_long_to_wait() {
    let club = Club::start_with(Sqlite, &["--rate-limit", "2"]);
    let by = || club.by(BOB).header("accept", HTML).get("/groups");
    let limited = (0..10).map(|_| by()).find(|answer| answer.status == 429).expect("a refusal");
    let seconds: u32 = limited.header("retry-after").unwrap().parse().unwrap();
    assert!(seconds > 1);
    assert!(limited.text().contains(&format!("in {seconds} seconds")), "{limited:?}");
}

#[test]
fn the_language_is_chosen_by_a_link_of_this_service() {
    let club = Club::start(Sqlite);
    let chosen = club.anonymous().get("/language?set=ja&to=%2Fgroups%3Fa%3Db").expect(303);
    assert_eq!(chosen.header("location"), Some("/groups?a=b"));
    assert!(chosen.header("set-cookie").unwrap().starts_with("language=ja; Path=/; "), "{chosen:?}");
    for elsewhere in ["https://evil.example/", "//evil.example", "/%5Cevil.example"] {
        let answer = club.anonymous().get(&format!("/language?set=ja&to={elsewhere}")).expect(303);
        assert_eq!(answer.header("location"), Some("/"), "{elsewhere}");
    }
    assert_eq!(club.anonymous().get("/language?set=xx").expect(303).header("set-cookie"), None);
}

#[test]
fn the_pages_show_the_club() {
    let club = Club::start_with(Sqlite, &["--club-name", "Tea & <Cake>", "--club-url", "https://tea.example/"]);
    let shown = page::check(&club.by(BOB).get("/").expect(200));
    assert!(shown.contains("Tea &amp; &lt;Cake&gt;") && shown.contains("href=\"https://tea.example/\""), "{shown}");
}

#[test]
fn the_pages_have_the_colour_and_the_logo_of_the_club() {
    let folder = tempfile::tempdir().unwrap();
    let logo = folder.path().join("logo.SVG");
    let drawing = "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 1 1'><path d='M0 0h1v1z'/></svg>";
    std::fs::write(&logo, drawing).unwrap();
    let club = Club::start_with(Sqlite, &["--club-color", "#ffdd00", "--club-logo", logo.to_str().unwrap()]);
    let shown = page::check(&club.anonymous().header("accept", HTML).get("/").expect(200));
    assert!(shown.contains(":root{--brand:#ffdd00;--on-brand:#000}"), "{shown}");
    assert!(
        shown.contains("<link rel=\"icon\" href=\"/club-logo\">") && shown.contains("<img src=\"/club-logo\""),
        "{shown}"
    );
    let answer = club.anonymous().get("/club-logo").expect(200);
    assert_eq!((answer.header("content-type"), answer.text()), (Some("image/svg+xml"), drawing.to_owned()));
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    // A drawing that is opened by itself runs no script.
    assert!(answer.header("content-security-policy").unwrap().contains("default-src 'none'"), "{answer:?}");
    Club::start(Sqlite).anonymous().get("/club-logo").expect(404);
}

#[test]
fn a_front_end_takes_the_place_of_the_pages() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("index.html"), "the front end").unwrap();
    let club = Club::start_with(Sqlite, &["--static", folder.path().to_str().unwrap()]);
    for path in paths(&club, ALICE).iter().map(String::as_str).chain(["/developers", "/language"]) {
        assert_eq!(club.by(ALICE).header("accept", HTML).get(path).expect(200).text(), "the front end", "{path}");
    }
    // A refusal of an operation is a page all the same.
    let refused = club.by(ALICE).header("accept", HTML).get("/api/nowhere").expect(404);
    assert!(page::check(&refused).contains("There is nothing here"), "{refused:?}");
}

#[test]
fn a_page_is_returned_to_with_its_parameters_but_without_others() {
    let club = Club::start(Sqlite);
    let links = |path: &str| {
        let shown = page::check(&club.anonymous().header("accept", HTML).get(path).expect(401));
        ["/sign-in?", "/language?set=ja&amp;"].map(|link| {
            let address = shown.split(&format!("href=\"{link}")).nth(1).unwrap_or_else(|| panic!("{link} in {shown}"));
            let address = address.split('"').next().unwrap().replace("&amp;", "&");
            url::form_urlencoded::parse(address.as_bytes()).find(|(name, _)| name == "to").unwrap().1.into_owned()
        })
    };
    let form = "/events/new?date=2026-04-04&from=18%3A00&room=x&sharedRoom=true";
    for (path, to) in [
        ("/events", "/events"),
        (form, form),
        ("/events?search=%E5%90%88%E5%AE%BF&month=2026-04", "/events?search=%E5%90%88%E5%AE%BF&month=2026-04"),
        ("/events?token=secret&month=2026-04&code=secret", "/events?month=2026-04"),
        ("/events?Token=secret&TAG=secret", "/events"),
        (&format!("/events?search={}", "a".repeat(600)), "/events"),
    ] {
        assert_eq!(links(path), [to, to], "{path}");
    }
}

#[test]
fn a_day_of_another_year_has_its_year() {
    let club = Club::start(Sqlite);
    // In the time zone of the club, Tokyo.
    let year = |hours| hours_from_now(&club, hours + 9).utc().format(" %Y, ").to_string();
    for hours in [1, 24 * 400] {
        let event = event_body(&club, BOB, At::Place("Discord"), (hours, hours + 1));
        let event = text(&club.by(BOB).post("/api/events", event).expect(201).json()["eventId"]);
        let shown = club.by(BOB).header("accept", HTML).get(&format!("/events/{event}")).expect(200).text();
        let when = shown.split("<b>").nth(1).unwrap().split("</b>").next().unwrap();
        assert_eq!(when.contains(&year(hours)), year(hours) != year(0), "{when}");
    }
    // In a list as well, and in the same form as the days of this year.
    let day = hours_from_now(&club, 24 * 400 + 9).utc();
    let listed = open(&club, BOB, &format!("/events?month={}", day.format("%Y-%m")));
    assert!(listed.contains(&format!(">{}</time>", day.format("%a %-d %b %Y"))), "{listed}");
}

#[test]
fn every_one_of_many_rooms_is_on_a_page() {
    let club = Club::start(Sqlite);
    for n in 0..130 {
        let begin = n / 45 * 24 + 1;
        verified_room(&club, ALICE, &format!("R{n}"), (begin, begin + 1));
    }
    let (mut path, mut found) = ("/rooms".to_owned(), std::collections::BTreeSet::new());
    for _ in 0..3 {
        let shown = club.by(ALICE).header("accept", HTML).get(&path).expect(200).text();
        assert!(shown.len() < 60_000, "{}", shown.len());
        found.extend(
            shown
                .split("\">R")
                .skip(1)
                .map(|rest| rest.split('<').next().unwrap().to_owned())
                .filter(|name| name.parse::<u8>().is_ok()),
        );
        let (before, _) = shown.split_once("\" rel=\"next\"").unwrap();
        path = before.rsplit('"').next().unwrap().to_owned();
    }
    assert_eq!(found.len(), 130);
}

#[rstest]
fn a_month_is_whole_and_every_event_is_on_a_page(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    // The middle of a month.
    let now = club.clock.now().utc();
    let middle = now.date_naive().checked_add_months(chrono::Months::new(1)).unwrap();
    let middle = chrono::Datelike::with_day(&middle, 15).unwrap().and_hms_opt(12, 0, 0).unwrap().and_utc();
    let before = middle - chrono::TimeDelta::days(10);
    let hour = |at: chrono::DateTime<chrono::Utc>| (at - now).num_hours();
    let past = event(&club, BOB, At::Place("Park"), (hour(before), hour(before) + 1));
    for number in 0..205 {
        event(&club, BOB, At::Place(&format!("Hall {number}")), (hour(middle) + 24, hour(middle) + 25));
    }
    club.clock.advance(middle - now);
    let mut page = open(&club, BOB, "/events");
    assert!(page.contains(&past), "what was earlier in this month");
    // “Today” leads to the first event that has not ended.
    let today = page.find("id=\"today\"").unwrap_or_else(|| panic!("{page}"));
    assert!(page.contains("href=\"/events#today\"") && page.matches("id=\"today\"").count() == 1, "{page}");
    let (hall, over) = (page.find("Hall").unwrap(), page.find("<summary>Already over").unwrap());
    assert!(today < hall && hall < over && over < page.rfind(&past).unwrap(), "{page}");
    let links = |page: &str| page.matches("<a href=\"/events/0").count();
    let mut all = links(&page);
    assert_eq!(all, 200);
    while let Some(next) = page.split("href=\"").find(|link| link.contains("after=")) {
        page = open(&club, BOB, &next.split('"').next().unwrap().replace("&amp;", "&"));
        all += links(&page);
    }
    assert_eq!(all, 206);
    // A search says which months it was about, those around its own, and goes on before and after them.
    let found = open(&club, BOB, "/events?search=park&month=2020-01");
    assert!(found.contains("Searched from January 2019 to December 2020.") && !found.contains(&past), "{found}");
    let link = |text: &str| {
        let before = found.split(text).next().unwrap().rsplit("href=\"").next().unwrap();
        before.split('"').next().unwrap().replace("&amp;", "&")
    };
    assert_eq!(link("Search earlier months"), "/events?month=2018-01&search=park");
    assert_eq!(link("Search later months"), "/events?month=2022-01&search=park");
}

#[rstest]
fn a_search_shows_what_is_to_come_and_below_it_what_is_over(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let named = |name: &str, hours: (i64, i64)| {
        let body = merge([event_body(&club, BOB, At::Place(name), hours), json!({ "name": name })]);
        text(&club.by(BOB).post("/api/events", body).expect(201).json()["eventId"])
    };
    let days = 40;
    let first = named("Lightning talks #1", (1, 2));
    let second = named("Lightning talks #2", (24 * 7, 24 * 7 + 1));
    let going_on = named("Lightning talks #3", (24 * days - 1, 24 * days + 2));
    let late = named("Lightning talks #5", (24 * days + 48, 24 * days + 49));
    let early = named("Lightning talks #4", (24 * days + 3, 24 * days + 4));
    let other = named("Tea", (2, 3));
    club.clock.advance(chrono::TimeDelta::days(days));
    // Also from a list of another month, which the form of the search names.
    let next_month = hours_from_now(&club, 24 * 31).utc().format("%Y-%m").to_string();
    for month in [String::new(), format!("&month={next_month}")] {
        let found = open(&club, BOB, &format!("/events?search=lightning{month}"));
        let place = |text: &str| found.find(text).unwrap_or_else(|| panic!("{text} in {found}"));
        let event = |id: &String| place(&format!("href=\"/events/{id}\""));
        let coming = [event(&going_on), event(&early), event(&late)];
        let over = [place("<h2>Already over</h2>"), event(&second), event(&first)];
        assert!(coming.is_sorted() && over.is_sorted() && coming[2] < over[0], "{coming:?} {over:?} in {found}");
        assert!(!found.contains(&other), "{found}");
        assert!(found.contains("Search earlier months") && found.contains("Search later months"), "{found}");
    }
    // Nothing is told apart by an id that is there twice.
    let found = open(&club, BOB, "/events?search=lightning");
    assert_eq!(found.matches(" id=\"d-").count(), 0, "{found}");
}

#[rstest]
fn every_event_that_a_search_finds_is_on_a_page(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for number in 0..105 {
        event(&club, BOB, At::Place(&format!("Hall {number}")), (1, 2));
        event(&club, BOB, At::Place(&format!("Yard {number}")), (24 * 20 + 1, 24 * 20 + 2));
    }
    club.clock.advance(chrono::TimeDelta::days(20));
    let found = open(&club, BOB, "/events?search=evening");
    let rest = |page: &str, name: &str| {
        let mut links = page.split("href=\"").skip(1).map(|link| link.split('"').next().unwrap().replace("&amp;", "&"));
        links.find(|link| link.contains(&format!("{name}=")))
    };
    let links = |page: &str| page.matches("<a href=\"/events/0").count();
    assert_eq!(links(&found), 200);
    for (name, place, other) in [("after", "Yard", "Hall"), ("before", "Hall", "Yard")] {
        let next = rest(&found, name).unwrap_or_else(|| panic!("{name} in {found}"));
        let next = open(&club, BOB, &next);
        assert!(links(&next) == 5 && next.contains(place) && !next.contains(other), "{next}");
        assert_eq!(rest(&next, name), None);
    }
}

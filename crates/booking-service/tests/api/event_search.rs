//! The text search over events (contract, "Search").

use booking_service::{
    events::{
        latest::load_latest,
        queries::{Order, load_page, load_versions},
        search::{find, recompute, words},
        selection::{Criterion, Selection},
    },
    schema::events,
};
use diesel::prelude::*;
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use rstest::rstest;
use serde_json::{Value, json};
use service_kit::database::{PageBounds, types::DbTimestamp};

use crate::{
    builders::{At, each, event_body, group, merge, text},
    harness::{
        BOB,
        Backend::{self, Postgres, Sqlite},
        CAROL, Club, hours_from_now,
    },
    plans,
};

fn add(club: &Club, place: &str, hours: (i64, i64), members: Value) -> String {
    let body = merge([event_body(club, BOB, At::Place(place), hours), members]);
    text(&club.by(BOB).post("/api/events", body).expect(201).json()["eventId"])
}

/// The address of the events of the next three days, with further parameters.
fn address(club: &Club, parameters: &[(&str, &str)]) -> String {
    let (begin, end) = (hours_from_now(club, 0).to_string(), hours_from_now(club, 72).to_string());
    let all = [("dateBegin", begin.as_str()), ("dateEnd", end.as_str())].into_iter().chain(parameters.iter().copied());
    service_kit::page::address("/api/events", &all.collect::<Vec<_>>())
}

fn found(club: &Club, search: &str) -> Vec<String> {
    each(&club.by(CAROL).get(&address(club, &[("search", search)])).expect(200).json(), "name")
}

#[rstest]
fn events_are_found_by_each_of_their_texts(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let art = group(&club, BOB, "Ｇraphics班", &[]);
    let first = add(
        &club,
        "Ｓ516",
        (1, 2),
        json!({"name": "Ｒust Evening", "description": "新入生ガイダンス\n100% free", "groupId": art}),
    );
    add(&club, "Park", (3, 4), json!({"name": "夏合宿", "tags": [{"name": "Summer"}, {"name": "ﾗｲﾌﾞ"}]}));
    for (search, expected) in [
        ("rust", &["Ｒust Evening"][..]),
        ("ＲＵＳＴ", &["Ｒust Evening"]),
        ("ｶﾞｲﾀﾞﾝｽ", &["Ｒust Evening"]),
        ("イダン", &["Ｒust Evening"]),
        ("s516", &["Ｒust Evening"]),
        ("graphics班", &["Ｒust Evening"]),
        ("evening 新入生 s516 GRAPHICS", &["Ｒust Evening"]),
        ("100%", &["Ｒust Evening"]),
        ("合宿", &["夏合宿"]),
        ("SUMMER", &["夏合宿"]),
        ("ライブ park", &["夏合宿"]),
        ("ー", &[]),
        ("e", &["Ｒust Evening", "夏合宿"]),
        (" 　", &["Ｒust Evening", "夏合宿"]),
        ("rust 合宿", &[]),
        ("1_0", &[]),
        ("%合宿", &[]),
        ("\\", &[]),
    ] {
        let expected: Vec<_> = expected.iter().map(|name| (*name).to_owned()).collect();
        // Both are events of the everyone group or of `art`, whose names have no `e`.
        assert_eq!(found(&club, search), expected, "{search}");
    }
    // What is changed is found by its new texts only.
    let path = format!("/api/events/{first}");
    club.by(BOB).put(&path, event_body(&club, BOB, At::Place("Lab"), (1, 2))).expect(200);
    assert_eq!((found(&club, "ガイダンス").len(), found(&club, "rust lab").len()), (0, 1));
    club.by(BOB).post(&format!("{path}/tags"), json!({"name": "new"})).expect(204);
    assert_eq!(found(&club, "NEW"), ["Rust evening"]);
    let body = json!({"name": "Painters", "description": "", "open": false, "members": [], "admins": [crate::harness::id(BOB)]});
    let moved = merge([event_body(&club, BOB, At::Place("Lab"), (1, 2)), json!({ "groupId": art })]);
    club.by(BOB).put(&path, moved).expect(200);
    club.by(BOB).put(&format!("/api/groups/{art}"), body).expect(200);
    assert_eq!((found(&club, "painter").len(), found(&club, "graphics").len()), (1, 0));
    // The step of the migration.
    let conn = &mut club.connect();
    diesel::update(events::table).set(events::text_key.eq("")).execute(conn).unwrap();
    assert_eq!(found(&club, "合宿"), Vec::<String>::new());
    recompute(conn).unwrap();
    assert_eq!(found(&club, "合宿"), ["夏合宿"]);
}

#[rstest]
fn a_search_has_pages_and_goes_with_a_filter(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let art = group(&club, BOB, "art", &[]);
    for n in 0..6 {
        let group = if n < 3 { json!({ "groupId": art }) } else { json!({}) };
        let name = json!({"name": format!("{} {n}", if n % 2 == 0 { "even" } else { "odd" })});
        add(&club, &format!("S{n}"), (n + 1, n + 2), merge([name, group]));
    }
    let both = address(&club, &[("search", "odd"), ("q", &format!("group!={art}"))]);
    assert_eq!(each(&club.by(BOB).get(&both).expect(200).json(), "name"), ["odd 3", "odd 5"]);
    let of_group = address(&club, &[("search", "even"), ("q", &format!("group=={art}"))]);
    assert_eq!(each(&club.by(BOB).get(&of_group).expect(200).json(), "name"), ["even 0", "even 2"]);
    let mut next = Some(address(&club, &[("search", "even"), ("limit", "2")]));
    let mut names = Vec::new();
    while let Some(path) = next {
        let page = club.by(BOB).get(&path).expect(200);
        names.push(each(&page.json(), "name"));
        let link = page.header("link").map(str::to_owned);
        next = link.and_then(|link| Some(link.split_once('<')?.1.split_once('>')?.0.to_owned()));
    }
    assert_eq!(names, [vec!["even 0", "even 2"], vec!["even 4"]]);
}

#[rstest]
fn a_search_needs_no_span(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for (name, hours) in [("far away", (9000, 9001)), ("far", (1, 2)), ("near", (3, 4))] {
        add(&club, "S516", hours, json!({ "name": name }));
    }
    let get = |query: &str| club.by(BOB).get(&format!("/api/events?{query}"));
    assert_eq!(each(&get("search=FAR").expect(200).json(), "name"), ["far", "far away"]);
    let from = hours_from_now(&club, 100);
    assert_eq!(each(&get(&format!("search=far&dateBegin={from}")).expect(200).json(), "name"), ["far away"]);
    assert_eq!(each(&get(&format!("search=far&dateEnd={from}")).expect(200).json(), "name"), ["far"]);
    for search in ["a+b+c+d+e+f+g+h+i".to_owned(), "a".repeat(65)] {
        get(&format!("search={search}")).refused(400, "invalid-parameter");
    }
}

/// Letters that a search folds by their case alone, and those that `LIKE` and SQL give a meaning.
const LETTERS: &str = "[aAbB1%_'\"\\\\夏合宿カ]";

#[rstest]
fn a_search_finds_the_events_whose_texts_contain_each_word(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (name, word, place) = (format!("{LETTERS}{{1,8}}"), format!("{LETTERS}{{1,5}}"), format!("{LETTERS}{{1,4}}"));
    let description = format!("({LETTERS}| |\n){{0,20}}");
    let events = prop::collection::vec((&*name, &*description, &*place), 6);
    let searches = prop::collection::vec((&*word, "|[ab夏合]"), 30);
    let config = Config { cases: 4, failure_persistence: None, max_shrink_iters: 0, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let outcome = runner.run(&(events, searches), |(events, searches)| {
        diesel::update(events::table)
            .set(events::deleted_at.eq(DbTimestamp(club.clock.now())))
            .execute(&mut club.connect())
            .unwrap();
        for (n, (name, description, place)) in (1..).zip(&events) {
            add(&club, &format!("{place}{n}"), (n, n + 1), json!({ "name": name, "description": description }));
        }
        for (first, second) in searches {
            let has = |n: usize, word: &str| {
                let (name, description, place) = &events[n];
                let texts = [name.clone(), description.clone(), format!("{place}{}", n + 1)];
                texts.iter().any(|text| text.to_lowercase().contains(&word.to_lowercase()))
            };
            let expected = (0..events.len()).filter(|n| has(*n, &first) && has(*n, &second));
            let expected: Vec<_> = expected.map(|n| events[n].0.clone()).collect();
            prop_assert_eq!(found(&club, &format!("{first} {second}")), expected, "{:?} {:?}", first, second);
        }
        Ok(())
    });
    outcome.unwrap();
}

#[rstest]
fn queries_use_indexes(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    add(&club, "S516", (1, 2), json!({"tags": [{"name": "rust"}]}));
    let words = words("rust evening").unwrap();
    plans::check_page(&club, |conn| {
        find(conn, &words).unwrap();
    });
    let at = |hours| Some(DbTimestamp(hours_from_now(&club, hours)));
    let found = find(&mut club.connect(), &words).unwrap();
    let selection = Selection::new(Criterion::All).between((at(0), at(24))).containing(found);
    plans::check(&club, |conn| {
        assert_eq!(load_page(conn, &selection, Order::Start, &PageBounds { after: None, rows: 10 }).unwrap().len(), 1);
        load_versions(conn, &selection, Order::Start, &PageBounds { after: None, rows: 10 }).unwrap();
        assert_eq!(load_latest(conn, &selection, None, 10).unwrap().rows.len(), 1);
    });
}

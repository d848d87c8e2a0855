//! The Atom feeds (RFC 4287).

use crate::harness::Backend::{self, Postgres, Sqlite};
use chrono::{DateTime, FixedOffset, TimeDelta};
use portfolio_service::feeds;
use roxmltree::{Document, Node};
use rstest::rstest;
use serde_json::json;

use crate::{
    builders::{contest, contest_body, project, project_body, text, with},
    harness::{ALICE, BOB, Club},
    objects::Objects,
    plans,
};

const ATOM: &str = "http://www.w3.org/2005/Atom";
const ORIGIN: &str = "http://localhost:3001";
const FEEDS: [&str; 2] = ["/feeds/projects.atom", "/feeds/contests.atom"];

/// The child elements of this name.
fn children<'a, 'input>(of: Node<'a, 'input>, name: &'static str) -> Vec<Node<'a, 'input>> {
    of.children().filter(|child| child.has_tag_name((ATOM, name))).collect()
}

/// The text of the only child element of this name.
fn only(of: Node<'_, '_>, name: &'static str) -> String {
    let found = children(of, name);
    assert_eq!(found.len(), 1, "{name}");
    found[0].text().unwrap_or_default().to_owned()
}

/// The address of the link of a relation.
fn link(of: Node<'_, '_>, relation: &str) -> Option<String> {
    let links = children(of, "link");
    let found = links.into_iter().find(|link| link.attribute("rel") == Some(relation));
    Some(found?.attribute("href").unwrap().to_owned())
}

/// The titles of the entries, after checking what RFC 4287 demands of a feed and its entries.
fn titles(club: &Club, path: &str) -> Vec<String> {
    let answer = club.anonymous().get(path).expect(200);
    assert_eq!(answer.header("content-type"), Some("application/atom+xml"));
    assert_eq!(answer.header("cache-control"), Some("public, no-cache"));
    let body = answer.text();
    let document = Document::parse(&body).unwrap_or_else(|error| panic!("{error}: {body}"));
    let feed = document.root_element();
    assert!(feed.has_tag_name((ATOM, "feed")));
    assert_eq!(link(feed, "self").as_deref(), Some(&*format!("{ORIGIN}{path}")));
    assert_eq!(only(children(feed, "author")[0], "name"), "localhost");
    assert!(only(feed, "title").ends_with(" – localhost"));
    let updated = DateTime::parse_from_rfc3339(&only(feed, "updated")).unwrap();
    let last_modified = DateTime::parse_from_rfc2822(answer.header("last-modified").unwrap()).unwrap();
    assert_eq!(last_modified.timestamp(), updated.timestamp());
    let mut ids = vec![only(feed, "id")];
    let mut latest = updated;
    let kind = if path.contains("projects") { "projects" } else { "contests" };
    let titles = children(feed, "entry").into_iter().map(|entry| {
        let id = only(entry, "id");
        let uuid = id.strip_prefix("urn:uuid:").unwrap();
        assert_eq!(link(entry, "alternate").unwrap(), format!("{ORIGIN}/{kind}/{uuid}"));
        let [published, updated] = ["published", "updated"].map(|name| {
            let text = only(entry, name);
            DateTime::parse_from_rfc3339(&text).unwrap_or_else(|_| panic!("{text}"))
        });
        assert!(published <= updated && updated <= latest, "the latest change first");
        latest = updated;
        ids.push(id.clone());
        only(entry, "summary");
        only(entry, "content");
        only(entry, "title")
    });
    let titles: Vec<_> = titles.collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), titles.len() + 1, "every id once");
    titles
}

/// When a feed says that it has changed.
fn changed(club: &Club, path: &str) -> DateTime<FixedOffset> {
    let body = club.anonymous().get(path).expect(200).text();
    let updated = only(Document::parse(&body).unwrap().root_element(), "updated");
    DateTime::parse_from_rfc3339(&updated).unwrap()
}

#[rstest]
fn the_time_of_the_last_change_never_goes_back(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = club(backend);
    let only_ones = [project(&club, BOB, "one"), contest(&club, BOB, "one")];
    for (path, feed) in only_ones.iter().zip(FEEDS) {
        let before = changed(&club, feed);
        club.clock.advance(TimeDelta::seconds(2));
        club.by(ALICE).delete(path).expect(204);
        assert_eq!(titles(&club, feed), Vec::<String>::new());
        let after = changed(&club, feed);
        assert!(after > before);
        // A wrong clock changes nothing.
        club.clock.advance(TimeDelta::days(-1));
        let make: fn(&Club, &str, &str) -> String = if feed.contains("projects") { project } else { contest };
        club.by(ALICE).delete(&make(&club, BOB, "two")).expect(204);
        club.clock.advance(TimeDelta::days(1));
        assert_eq!(changed(&club, feed), after);
    }
}

#[rstest]
fn the_club_is_named(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start_with(backend, &["--public-url", ORIGIN, "--club-name", "Digital <club>"]);
    for (path, title) in FEEDS.into_iter().zip(["Projects", "Contests"]) {
        let body = club.anonymous().get(path).expect(200).text();
        let document = Document::parse(&body).unwrap();
        let feed = document.root_element();
        assert_eq!(only(feed, "title"), format!("{title} – Digital <club>"));
        assert_eq!(only(children(feed, "author")[0], "name"), "Digital <club>");
    }
    let title = |path: &str| {
        let page = club.anonymous().header("accept", "text/html").get(path).expect(200).text();
        page.split_once("<title>").unwrap().1.split_once("</title>").unwrap().0.to_owned()
    };
    assert_eq!(title("/projects"), "Projects – Digital &lt;club&gt;");
    assert_eq!(title("/"), "Digital &lt;club&gt;");
}

fn club(backend: Backend) -> Club {
    Club::start_with(backend, &["--public-url", ORIGIN])
}

#[rstest]
fn what_changed_last_comes_first(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = club(backend);
    for path in FEEDS {
        assert_eq!(titles(&club, path), Vec::<String>::new());
    }
    let make = |name: &str| {
        club.clock.advance(TimeDelta::seconds(2));
        [project(&club, BOB, name), contest(&club, BOB, name)]
    };
    let [old, _] = [make("one"), make("two")];
    for path in FEEDS {
        assert_eq!(titles(&club, path), ["two", "one"]);
    }
    let tags = FEEDS.map(|path| club.anonymous().get(path).expect(200).header("etag").unwrap().to_owned());
    let ids = FEEDS.map(|path| {
        let body = club.anonymous().get(path).expect(200).text();
        only(Document::parse(&body).unwrap().root_element(), "id")
    });
    assert_ne!(ids[0], ids[1]);
    club.clock.advance(TimeDelta::seconds(2));
    for ((path, feed), tag) in old.iter().zip(FEEDS).zip(&tags) {
        club.anonymous().header("if-none-match", tag).get(feed).expect(304);
        club.by(BOB).patch(path, json!({"description": "otherwise"})).expect(204);
        club.by(BOB).header("if-none-match", tag).get(feed).expect(200);
        assert_eq!(titles(&club, feed), ["one", "two"]);
        let before = changed(&club, feed);
        club.clock.advance(TimeDelta::seconds(2));
        club.by(ALICE).delete(path).expect(204);
        assert_eq!(titles(&club, feed), ["two"]);
        assert!(changed(&club, feed) > before);
    }
}

#[rstest]
fn texts_are_escaped_and_have_no_character_that_xml_lacks(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = club(backend);
    let hostile = "</title>]]>&amp;<!--\"'\u{fffe}\u{1f600}";
    let more = json!({"description": "a\r\n\tb\u{ffff}<x/>", "link": "https://club.example/?a=1&b='\u{fffe}'"});
    club.by(BOB).post("/api/v1/projects", with(project_body(hostile), more.clone())).expect(201);
    club.by(BOB).post("/api/v1/contests", with(contest_body(hostile), more)).expect(201);
    for path in FEEDS {
        assert_eq!(titles(&club, path), [hostile.replace('\u{fffe}', "\u{fffd}")]);
        let body = club.anonymous().get(path).expect(200).text();
        let document = Document::parse(&body).unwrap();
        let entry = children(document.root_element(), "entry")[0];
        assert_eq!(only(entry, "content"), "a\n\tb\u{fffd}<x/>");
        assert_eq!(link(entry, "related").unwrap(), "https://club.example/?a=1&b='\u{fffd}'");
    }
}

#[rstest]
fn a_feed_has_50_entries_at_most(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = club(backend);
    let mut objects = Objects::new();
    objects.grow(&club, 55);
    for path in FEEDS {
        assert_eq!(titles(&club, path).len(), 50);
    }
}

#[rstest]
fn a_feed_says_in_which_semesters_and_on_which_days(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = club(backend);
    let made = club.by(BOB).post("/api/v1/projects", project_body("robot")).expect(201).json();
    contest(&club, BOB, "cup");
    let summaries = FEEDS.map(|path| {
        let body = club.anonymous().get(path).expect(200).text();
        let document = Document::parse(&body).unwrap();
        let entry = children(document.root_element(), "entry")[0];
        (only(entry, "id"), only(entry, "summary"))
    });
    assert_eq!(summaries[0], (format!("urn:uuid:{}", text(&made["id"])), "since April 2024".to_owned()));
    assert_eq!(summaries[1].1, "since 1 April 2026");
}

#[rstest]
fn queries_use_indexes(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut objects = Objects::new();
    objects.grow(&club, 2);
    plans::check_page(&club, |conn| {
        feeds::load_projects(conn).unwrap();
        feeds::load_contests(conn).unwrap();
    });
}

//! What pages say of themselves to search engines and to programs that show links, and the addresses of the pages.

use crate::harness::Backend::{self, Postgres, Sqlite};
use chrono::{DateTime, TimeDelta};
use diesel::prelude::*;
use portfolio_service::{schema::accounts, sitemap};
use roxmltree::Document;
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    builders::{contest, contest_body, made, member, project, project_body, span, team, with},
    front_page::{
        forms::{HTML, attribute},
        page::{DATA, check},
    },
    harness::{ALICE, Answer, BOB, CAROL, Club, DAVE, SUSAN, id, real_name},
    objects::Objects,
    plans,
};

const ORIGIN: &str = "http://localhost:3001";

/// What ends an element, an attribute or a JSON string, and what begins a comment.
const HOSTILE: &str = "</script><!--\"'&amp;\\ ]]>";

fn club(backend: Backend) -> Club {
    Club::start_with(backend, &["--public-url", ORIGIN, "--club-name", "Tea & <Cake>"])
}

/// The path of the page of an object.
fn page_of(path: &str) -> String {
    path.replace("/api/v1", "")
}

fn page(club: &Club, path: &str) -> String {
    check(&club.anonymous().get(path).expect(200))
}

/// The value of an attribute of the element that begins like this, as a browser reads it.
fn value(page: &str, element: &str, name: &str) -> Option<String> {
    let mut found = page.split('<').filter(|other| other.starts_with(element));
    let first = found.next()?;
    assert!(found.next().is_none(), "{element} is there once: {page}");
    let value = attribute(first.split('>').next().unwrap(), name)?;
    Some(value.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
}

/// The content of a property of Open Graph.
fn property(page: &str, name: &str) -> Option<String> {
    value(page, &format!("meta property=\"og:{name}\""), "content")
}

fn description(page: &str) -> Option<String> {
    let description = value(page, "meta name=\"description\"", "content");
    assert_eq!(description, property(page, "description"));
    description
}

fn canonical(page: &str) -> Option<String> {
    value(page, "link rel=\"canonical\"", "href")
}

/// The data of a page.
fn data(page: &str) -> Option<Value> {
    let (before, after) = page.split_once(DATA)?;
    assert!(!before.contains("<body"), "{page}");
    let (data, after) = after.split_once("</script").unwrap();
    assert!(!data.contains('<') && !after.contains("<script") && !after.contains("</script"), "{page}");
    let data: Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["@context"], "https://schema.org");
    Some(data)
}

#[rstest]
fn every_public_page_says_what_it_shows_and_where_it_is(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = club(backend);
    let me = format!("/api/v1/users/{}", id(BOB));
    club.by(BOB).patch(&me, json!({"bio": "I draw.\n\nAnd sing."})).expect(204);
    let project = page_of(&project(&club, BOB, "robot"));
    let contest = page_of(&contest(&club, BOB, "Cup"));
    let group = Objects::new().with_group(&club);
    for (path, title, about) in [
        (
            "/",
            "Tea & <Cake>",
            "What the members of the club make and take part in: projects, contests, groups and accounts elsewhere.",
        ),
        ("/people", "People", "The members of the club and what they make and take part in."),
        ("/people/bob", "bob", "I draw. And sing."),
        ("/projects", "Projects", "What the members of the club make together."),
        (&*project, "robot", "about it"),
        ("/contests", "Contests", "Contests that members of the club took part in, with their results."),
        (&*contest, "Cup", "about it"),
        ("/groups", "Groups", "The groups of the club and their members."),
        (&*group, "graphics", "We draw."),
    ] {
        let answer = club.anonymous().get(path).expect(200);
        assert_eq!(answer.header("x-robots-tag"), None, "{path}");
        let shown = check(&answer);
        let head = shown.split("</head>").next().unwrap();
        for name in ["title", "type", "url", "site_name", "description"] {
            assert!(head.contains(&format!("<meta property=\"og:{name}\"")), "{path} has no {name}: {shown}");
        }
        assert_eq!(property(&shown, "title").as_deref(), Some(title), "{path}");
        assert_eq!(description(&shown).as_deref(), Some(about), "{path}");
        assert_eq!(property(&shown, "site_name").as_deref(), Some("Tea & <Cake>"), "{path}");
        let kind = if path == "/people/bob" { "profile" } else { "website" };
        assert_eq!(property(&shown, "type").as_deref(), Some(kind), "{path}");
        let address = format!("{ORIGIN}{path}");
        assert_eq!((canonical(&shown), property(&shown, "url")), (Some(address.clone()), Some(address.clone())));
        assert_eq!(data(&shown).is_some(), path == "/people/bob" || path == project, "{path}");
        // The same address in every language, for everybody, whatever the parameters.
        let japanese = check(&club.anonymous().header("accept-language", "ja").get(path).expect(200));
        let with_parameters = page(&club, &format!("{path}?notice=saved"));
        let signed_in = check(&club.by(BOB).get(path).expect(200));
        for other in [japanese, with_parameters, signed_in] {
            assert_eq!(canonical(&other), Some(address.clone()), "{path}");
        }
    }
    assert_eq!(canonical(&page(&club, "/people?search=b")), Some(format!("{ORIGIN}/people")));
}

#[rstest]
fn a_page_without_a_text_has_no_description_and_a_long_one_is_cut(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = club(backend);
    assert_eq!(description(&page(&club, "/people/carol")), None);
    let bio = json!({"bio": "絵".repeat(256)});
    club.by(CAROL).patch(&format!("/api/v1/users/{}", id(CAROL)), bio).expect(204);
    assert_eq!(description(&page(&club, "/people/carol")), Some("絵".repeat(200) + "…"));
}

#[test]
fn without_a_public_url_and_a_name_neither_is_there() {
    let club = Club::start(Sqlite);
    let project = page_of(&project(&club, BOB, "robot"));
    for path in ["/", "/people", "/people/bob", &project] {
        let shown = page(&club, path);
        assert_eq!((canonical(&shown), property(&shown, "url"), property(&shown, "site_name")), (None, None, None));
        assert!(property(&shown, "title").is_some(), "{shown}");
    }
    let expected = json!({
        "@context": "https://schema.org", "@type": "Person", "name": "bob", "alternateName": "bob", "sameAs": [],
    });
    assert_eq!(data(&page(&club, "/people/bob")), Some(expected));
}

#[rstest]
fn pages_that_only_members_see_and_refusals_are_not_found_by_searching(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = club(backend);
    let project = page_of(&project(&club, BOB, "robot"));
    let contest = page_of(&contest(&club, BOB, "Cup"));
    let by_bob = || club.by(BOB).header("accept", HTML);
    let hidden = |answer: Answer, path: &str| {
        assert_eq!(answer.header("x-robots-tag"), Some("noindex"), "{path}");
        let shown = check(&answer);
        for part in ["property=\"og:", "<meta name=\"description\"", "rel=\"canonical\"", DATA] {
            assert!(!shown.contains(part), "{path}: {part}: {shown}");
        }
    };
    let of_project = ["/edit", "/delete", "/history", "/members"].map(|end| format!("{project}{end}"));
    let of_contest = ["/edit", "/delete", "/history", "/teams/new"].map(|end| format!("{contest}{end}"));
    let alone = ["/me", "/deleted", "/projects/new", "/contests/new"].map(str::to_owned);
    for path in [of_project, of_contest, alone].concat() {
        hidden(by_bob().get(&path).expect(200), &path);
        hidden(club.anonymous().header("accept", HTML).get(&path).expect(401), &path);
    }
    hidden(by_bob().get("/developers").expect(200), "/developers");
    for path in ["/nowhere", "/people/nobody", "/people/susan"] {
        hidden(club.anonymous().header("accept", HTML).get(path).expect(404), path);
    }
}

#[rstest]
fn a_person_is_described_by_what_their_page_shows(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = club(backend);
    let me = format!("/api/v1/users/{}", id(BOB));
    let [github, _] = [
        json!({"type": 5, "url": "https://github.com/bob", "displayName": "bob"}),
        json!({"type": 0, "url": "https://bob.example/?a=1&b=2", "displayName": "Bob's"}),
    ]
    .map(|account| made(&club, BOB, &format!("{me}/accounts"), account));
    let shown = || data(&page(&club, "/people/bob")).unwrap();
    let publish = |is_public: bool| club.by(BOB).patch(&me, json!({"check": is_public})).expect(204);
    let person = json!({
        "@context": "https://schema.org", "@type": "Person", "name": "bob", "alternateName": "bob",
        "url": format!("{ORIGIN}/people/bob"), "sameAs": ["https://bob.example/?a=1&b=2", "https://github.com/bob"],
    });
    assert_eq!(shown(), person);
    publish(true);
    assert_eq!(shown(), with(person.clone(), json!({"name": real_name(BOB)})));
    publish(false);
    assert_eq!(shown(), person);
    let head = page(&club, "/people/bob");
    assert!(!head.contains(&real_name(BOB)), "{head}");
    // One that was imported without an address.
    let without = diesel::update(accounts::table.filter(accounts::type_.eq(0_i16))).set(accounts::url.eq(""));
    without.execute(&mut club.connect()).unwrap();
    club.by(BOB).delete(&github).expect(204);
    assert_eq!(shown(), with(person, json!({"sameAs": []})));
}

#[rstest]
fn a_project_is_described_with_its_members(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = club(backend);
    club.by(BOB).patch(&format!("/api/v1/users/{}", id(BOB)), json!({"check": true})).expect(204);
    let body = with(project_body("robot"), json!({"duration": span((2023, 1), None)}));
    let path = made(&club, ALICE, "/api/v1/projects", body);
    let members = [BOB, CAROL, SUSAN].map(|name| member(name, (2023, 1), None));
    club.by(ALICE).put(&format!("{path}/members"), json!({"members": members})).expect(204);
    let path = page_of(&path);
    let shown = page(&club, &path);
    let author = |name: &str, known: &str| {
        let url = format!("{ORIGIN}/people/{name}");
        json!({"@type": "Person", "name": known, "alternateName": name, "url": url})
    };
    // Who left has no page.
    let left = json!({"@type": "Person", "name": SUSAN, "alternateName": SUSAN});
    assert_eq!(
        data(&shown),
        Some(json!({
            "@context": "https://schema.org", "@type": "CreativeWork", "name": "robot", "description": "about it",
            "url": format!("{ORIGIN}{path}"), "dateCreated": "2023-10-01",
            "author": [author(BOB, &real_name(BOB)), author(CAROL, CAROL), left],
        }))
    );
    for hidden in [ALICE, CAROL, SUSAN] {
        assert!(!shown.contains(&real_name(hidden)), "{shown}");
    }
}

#[rstest]
fn texts_are_escaped(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = club(backend);
    let text = json!({"description": HOSTILE});
    let project = made(&club, BOB, "/api/v1/projects", with(project_body(HOSTILE), text.clone()));
    let contest = made(&club, BOB, "/api/v1/contests", with(contest_body(HOSTILE), text));
    let account = json!({"type": 0, "url": "https://bob.example/</script>'&", "displayName": HOSTILE});
    let me = format!("/api/v1/users/{}", id(BOB));
    made(&club, BOB, &format!("{me}/accounts"), account);
    club.by(BOB).patch(&me, json!({"bio": HOSTILE})).expect(204);
    for path in [&project, &contest] {
        let shown = page(&club, &page_of(path));
        assert_eq!(property(&shown, "title").as_deref(), Some(HOSTILE), "{shown}");
        assert_eq!(description(&shown).as_deref(), Some(HOSTILE), "{shown}");
        assert!(!shown.contains(HOSTILE), "{shown}");
    }
    let work = data(&page(&club, &page_of(&project))).unwrap();
    assert_eq!((&work["name"], &work["description"]), (&json!(HOSTILE), &json!(HOSTILE)));
    let shown = page(&club, "/people/bob");
    assert_eq!(description(&shown).as_deref(), Some(HOSTILE), "{shown}");
    assert_eq!(data(&shown).unwrap()["sameAs"], json!(["https://bob.example/%3C/script%3E'&"]));
}

/// The entries of the sitemap: the paths, and when the pages last changed.
fn entries(answer: &Answer) -> Vec<(String, Option<String>)> {
    const SITEMAP: &str = "http://www.sitemaps.org/schemas/sitemap/0.9";
    assert_eq!(answer.header("content-type"), Some("application/xml"));
    assert_eq!(answer.header("cache-control"), Some("public, no-cache"));
    let body = answer.text();
    let document = Document::parse(&body).unwrap_or_else(|error| panic!("{error}: {body}"));
    let root = document.root_element();
    assert!(root.has_tag_name((SITEMAP, "urlset")));
    let entries = root.children().map(|entry| {
        assert!(entry.has_tag_name((SITEMAP, "url")), "{body}");
        let text = |name: &'static str| {
            let found = entry.children().find(|child| child.has_tag_name((SITEMAP, name)))?;
            found.text().map(str::to_owned)
        };
        let address = text("loc").unwrap();
        let path = address.strip_prefix(ORIGIN).unwrap_or_else(|| panic!("{address}"));
        (path.to_owned(), text("lastmod"))
    });
    entries.collect()
}

#[rstest]
fn the_sitemap_has_the_pages_that_everybody_may_see(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = club(backend);
    let [kept, deleted] = ["kept", "deleted"].map(|name| [project(&club, BOB, name), contest(&club, BOB, name)]);
    team(&club, BOB, &kept[1], "the team");
    let group = Objects::new().with_group(&club);
    let first = club.anonymous().get(sitemap::PATH).expect(200);
    let paths = |answer: &Answer| entries(answer).into_iter().map(|(path, _)| path).collect::<Vec<_>>();
    let before = paths(&first);
    for path in &deleted {
        assert!(before.contains(&page_of(path)), "{before:?}");
        club.by(BOB).delete(path).expect(204);
    }
    let tag = first.header("etag").unwrap();
    let second = club.anonymous().header("if-none-match", tag).get(sitemap::PATH).expect(200);
    let tag = second.header("etag").unwrap();
    for client in [club.anonymous(), club.by(BOB), club.by(SUSAN)] {
        assert!(client.header("if-none-match", tag).get(sitemap::PATH).expect(304).body.is_empty());
    }
    let people = [ALICE, BOB, CAROL, DAVE].map(|name| format!("/people/{name}"));
    let single = ["/", "/people", "/projects", "/contests", "/groups"].map(str::to_owned);
    let of_objects = [group, page_of(&kept[0]), page_of(&kept[1])];
    // Two members are not active, and a team has no page.
    assert_eq!(paths(&second), [&single[..], &people, &of_objects].concat());
    for (path, changed) in entries(&second) {
        let shown = check(&club.anonymous().get(&path).expect(200));
        assert_eq!(canonical(&shown), Some(format!("{ORIGIN}{path}")));
        let is_object = kept.iter().any(|kept| page_of(kept) == path);
        assert_eq!(changed.is_some(), is_object, "{path}");
        if let Some(changed) = changed {
            let age = club.clock.now().utc() - DateTime::parse_from_rfc3339(&changed).unwrap().to_utc();
            assert!(age < TimeDelta::minutes(10), "{changed}");
        }
    }
    let refused = club.anonymous().post(sitemap::PATH, json!({})).expect(405);
    assert_eq!(refused.header("allow"), Some("GET, HEAD"));
    assert!(club.anonymous().send("HEAD", sitemap::PATH, None).expect(200).body.is_empty());
}

#[test]
fn crawlers_are_told_where_the_sitemap_is() {
    let with_url = club(Sqlite).anonymous().get("/robots.txt").expect(200);
    assert_eq!(with_url.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(with_url.text(), format!("User-agent: *\nAllow: /\nSitemap: {ORIGIN}/sitemap.xml\n"));
    let without = Club::start(Sqlite).anonymous().get("/robots.txt").expect(200);
    assert_eq!(without.text(), "User-agent: *\nAllow: /\n");
}

#[rstest]
fn queries_use_indexes(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut objects = Objects::new();
    objects.grow(&club, 2);
    plans::check_page(&club, |conn| {
        sitemap::load(conn).unwrap();
    });
}

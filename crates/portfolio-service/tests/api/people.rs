//! The public pages, and the résumé.

use crate::harness::Backend::{self, Postgres, Sqlite};
use portfolio_service::profiles::queries;
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    builders::{contest, member, project, span, team},
    front_page::page::DATA,
    harness::{ALICE, Answer, BOB, CAROL, Club, DORA, SUSAN, id},
    identity::main_part,
    objects::Objects,
    plans,
};

fn resume(name: &str) -> String {
    format!("/api/v1/users/{}/resume.json", id(name))
}

/// bob with an account, a published real name, two projects and two contests.
fn with_bob(club: &Club) -> [String; 3] {
    let me = format!("/api/v1/users/{}", id(BOB));
    club.by(BOB).patch(&me, json!({"bio": "I <i>draw</i>.\nAnd sing.", "check": true})).expect(204);
    let account = json!({"type": 5, "url": "https://github.com/bob", "displayName": "<bob>"});
    club.by(BOB).post(&format!("{me}/accounts"), account).expect(201);
    let old = project(club, ALICE, "Old & new");
    let spans = json!({"link": "https://club.example/?a=1&b=2", "duration": span((2023, 0), Some((2025, 0)))});
    club.by(ALICE).patch(&old, spans).expect(204);
    let people = [member(BOB, (2023, 1), Some((2024, 1))), member(SUSAN, (2023, 0), None)];
    club.by(ALICE).put(&format!("{old}/members"), json!({"members": people})).expect(204);
    let new = project(club, BOB, "</script><script>alert(1)");
    club.by(BOB).put(&format!("{new}/members"), json!({"members": [member(BOB, (2025, 0), None)]})).expect(204);
    let cup = contest(club, ALICE, "Cup");
    // In the club's zone this is the 5th.
    let days = json!({"since": "2026-04-03T00:00:00Z", "until": "2026-04-04T20:00:00Z"});
    club.by(ALICE).patch(&cup, json!({"duration": days})).expect(204);
    for (name, result, people) in [("club A", "\"3rd\"", vec![id(BOB), id(SUSAN)]), ("club B", "", vec![id(BOB)])] {
        let team = team(club, ALICE, &cup, name);
        club.by(ALICE).patch(&team, json!({"result": result})).expect(204);
        club.by(ALICE).put(&format!("{team}/members"), json!({"members": people})).expect(204);
    }
    [old, new, cup].map(|path| path.replace("/api/v1", ""))
}

/// A page as every page is: one document, without script, which keeps to its own policy.
fn page(answer: Answer) -> String {
    let answer = answer.expect(200);
    assert_eq!(answer.header("cache-control"), Some("public, no-cache"));
    page_of_any_status(&answer)
}

fn page_of_any_status(answer: &Answer) -> String {
    let text = answer.text();
    assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
    let policy = answer.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-") && !policy.contains("unsafe"), "{policy}");
    let without_data = text.replace(DATA, "");
    for forbidden in ["<script", " style=", " onclick", "http-equiv", "javascript:"] {
        assert!(!without_data.contains(forbidden), "{forbidden}: {text}");
    }
    text
}

#[test]
fn a_browser_gets_a_page_for_a_refusal_and_a_program_a_problem() {
    let club = Club::start(Sqlite);
    let unknown = "00000000-0000-4000-8000-000000000000";
    for (path, status) in [
        ("/people/nobody".to_owned(), 404),
        (format!("/projects/{unknown}"), 404),
        (format!("/groups/{unknown}"), 404),
        ("/people?search=%00".to_owned(), 400),
        (format!("/contests/{unknown}"), 404),
        ("/contests/first".to_owned(), 400),
    ] {
        let accept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        let refused = club.anonymous().header("accept", accept).get(&path).expect(status);
        let shown = page_of_any_status(&refused);
        assert!(shown.contains("href=\"/\">Start</a>") && shown.contains("<h1>"), "{shown}");
        assert_eq!(refused.header("cache-control"), Some("no-store"));
        for accept in ["*/*", "application/json"] {
            let problem = club.anonymous().header("accept", accept).get(&path).expect(status);
            assert_eq!(problem.header("content-type"), Some("application/problem+json"), "{path}");
        }
    }
    // For a person, also an operation of programs.
    let api = club.anonymous().header("accept", "text/html").get("/api/v1/users/nobody").expect(400);
    assert_eq!(api.header("content-type"), Some("text/html; charset=utf-8"));
}

#[rstest]
fn a_page_shows_what_a_member_has_done(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let [old, new, cup] = with_bob(&club);
    let shown = page(club.anonymous().get("/people/bob"));
    for part in [
        "<h1>bob</h1>",
        "<p class=\"mute\">@bob · real name of bob</p>",
        "I &lt;i&gt;draw&lt;/i&gt;.\nAnd sing.",
        "rel=\"me\" href=\"https://github.com/bob\">",
        "GitHub <small>&lt;bob&gt;</small></a>",
        &format!("<a href=\"{old}\"><b>Old &amp; new</b></a><small>October 2023 – March 2025</small>"),
        &format!("<a href=\"{new}\"><b>&lt;/script&gt;&lt;script&gt;alert(1)</b></a><small>since April 2025</small>"),
        &format!(
            "<a href=\"{cup}\">Cup</a><small>club A · 3 April 2026 – 5 April 2026</small></div><span class=\"badge good\">&quot;3rd&quot;</span>"
        ),
        &format!("<a href=\"{cup}\">Cup</a><small>club B · 3 April 2026 – 5 April 2026</small></div><i></i>"),
        &resume(BOB),
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    assert!(shown.find(&new) < shown.find(&old), "the newest first: {shown}");
    let shown = page(club.anonymous().get("/people/alice"));
    assert!(shown.contains("None yet.") && !shown.contains("real name of"), "{shown}");
}

#[rstest]
fn pages_of_projects_and_contests_show_who_was_in_them(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let [old, new, cup] = with_bob(&club);
    let shown = page(club.anonymous().get(&old));
    for part in [
        "<h1>Old &amp; new</h1>",
        "<p class=\"mute\">April 2023 – September 2025</p>",
        "href=\"https://club.example/?a=1&amp;b=2\"",
        "<span>bob (real name of bob)</span></a><small>October 2023 – March 2025</small>",
        // Who left has no page, and stays in the history (contract, "Operations").
        "<span>susan</span></span><small>April 2023 – September 2025</small>",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    page(club.anonymous().get(&new));
    let listed = page(club.anonymous().get("/projects"));
    assert!(listed.contains(&format!("href=\"{old}\"")) && listed.contains(&new), "{listed}");
    assert!(page(club.anonymous().get("/contests")).contains(&cup));
    let shown = page(club.anonymous().get(&cup));
    let members = ["<span>bob (real name of bob)</span></a>", "<span>susan</span>"];
    for part in ["<h1>Cup</h1>", "Friday, 3 April 2026 – Sunday, 5 April 2026"].into_iter().chain(members) {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
}

#[rstest]
fn every_page_is_the_same_for_everybody_in_the_language_of_the_reader(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start_with(backend, &["--club-name", "Tea & <Cake>", "--club-url", "https://tea.example/"]);
    let [old, new, cup] = with_bob(&club);
    let group = Objects::new().with_group(&club);
    let (old, new, cup) = (old.as_str(), new.as_str(), cup.as_str());
    let pages = ["/people", "/people/bob", "/projects", old, new, "/contests", cup, "/groups", &group];
    let in_japanese = |path: &str| page(club.anonymous().header("accept-language", "ja,en;q=0.5").get(path));
    for path in pages {
        let english = club.anonymous().get(path);
        let vary: Vec<_> = english.headers.iter().filter(|(name, _)| name == "vary").map(|(_, value)| value).collect();
        assert!(vary.iter().any(|value| *value == "Accept-Language"), "{path}: {vary:?}");
        assert!(vary.iter().any(|value| value.contains("Cookie")), "{path}: {vary:?}");
        let tag = english.header("etag").unwrap().to_owned();
        assert_eq!(club.anonymous().header("if-none-match", &tag).get(path).status, 304, "{path}");
        let (english, japanese) = (page(english), in_japanese(path));
        assert!(english.contains("<html lang=\"en\">") && japanese.contains("<html lang=\"ja\">"), "{path}");
        assert_ne!(
            club.anonymous().header("accept-language", "ja").header("if-none-match", &tag).get(path).status,
            304
        );
        let chosen = club.anonymous().header("accept-language", "en").header("cookie", "language=ja");
        assert_eq!(page(chosen.get(path)), japanese, "{path}");
        for member in [ALICE, BOB, SUSAN] {
            let shown = page(club.by(member).get(path));
            assert_eq!(main_part(&shown), main_part(&english), "{path} as {member} sees it");
        }
        for shown in [&english, &japanese] {
            for part in [
                "<a class=\"club\" href=\"/\">Tea &amp; &lt;Cake&gt;<small>",
                "href=\"https://tea.example/\"",
                "class=\"me\"",
                "/language?set=",
            ] {
                assert!(shown.contains(part), "{path}: {part}: {shown}");
            }
        }
        let untranslated = ["None yet", "Members", "Projects", "People", "Contests", "since", "April", "Start"];
        for text in untranslated {
            assert!(!japanese.contains(&format!(">{text}")), "{path}: {text} in {japanese}");
        }
    }
    assert!(in_japanese(cup).contains("2026年4月3日(金)～2026年4月5日(日)"));
    let shown = in_japanese("/people/bob");
    for part in
        ["<small>2023年10月～2025年3月</small>", "<small>2025年4月～</small>", " · 2026年4月3日～2026年4月5日</small>"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // The language link leads back to the page.
    let link = format!("/language?set=ja&amp;to={}", old.replace('/', "%2F"));
    assert!(page(club.anonymous().get(old)).contains(&link));
    let changed = club.anonymous().get(&link.replace("&amp;", "&")).expect(303);
    assert_eq!(changed.header("location"), Some(old));
}

#[rstest]
fn people_are_found_by_their_names(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    with_bob(&club);
    let found = |search: &str| {
        let shown = page(club.anonymous().get(&format!("/people{search}")));
        let links = shown.split("<a href=\"/people/").skip(1);
        links.map(|link| link.split('"').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let all = found("");
    assert!(all.contains(&ALICE.to_owned()) && all.contains(&BOB.to_owned()) && all.is_sorted(), "{all:?}");
    // Who left has no page.
    assert!(!all.contains(&SUSAN.to_owned()), "{all:?}");
    assert_eq!(found("?search="), all);
    for bob in ["bob", "OB", "%EF%BC%A2ob", "real%20name%20of%20B"] {
        assert_eq!(found(&format!("?search={bob}")), [BOB], "{bob}");
    }
    // The real name of alice is not published.
    assert_eq!(found("?search=real"), [BOB]);
    let nobody = page(club.anonymous().get("/people?search=%3Ci%3E"));
    assert!(nobody.contains("Nobody.") && nobody.contains("value=\"&lt;i&gt;\""), "{nobody}");
}

#[rstest]
fn a_page_is_the_same_for_everybody_and_has_a_tag(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let [project, _, contest] = with_bob(&club);
    for path in ["/people", "/people/bob", "/projects", "/contests", "/groups", &project, &contest] {
        let answer = club.anonymous().get(path).expect(200);
        let tag = answer.header("etag").unwrap();
        // But for the links to sign in and out.
        let signed_in = club.by(BOB).get(path).expect(200).header("etag").unwrap().to_owned();
        for client in [club.by(BOB), club.by(ALICE), club.by(SUSAN), club.by("stranger")] {
            assert_eq!(main_part(&client.get(path).expect(200).text()), main_part(&answer.text()), "{path}");
            assert!(client.header("if-none-match", &signed_in).get(path).expect(304).body.is_empty(), "{path}");
        }
        // The style may be used only by its hash, which the policy of a 304 must not replace.
        let same = club.anonymous().header("if-none-match", tag).get(path).expect(304);
        assert!([None, answer.header("content-security-policy")].contains(&same.header("content-security-policy")));
        let refused = club.anonymous().post(path, json!({})).expect(405);
        assert_eq!(refused.header("allow"), Some("GET, HEAD"), "{path}");
    }
}

#[rstest]
fn only_active_members_have_a_page_and_a_resume(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    with_bob(&club);
    for name in [SUSAN, DORA, "nobody", "Bob", "%00", "a%2fb", "b%C3%B6b", &"x".repeat(33), "bob%27--"] {
        for client in [club.anonymous(), club.by(ALICE), club.by(SUSAN)] {
            client.get(&format!("/people/{name}")).refused(404, "not-found");
        }
    }
    for name in [SUSAN, DORA, "nobody"] {
        club.by(ALICE).get(&resume(name)).refused(404, "not-found");
    }
    let unknown = crate::builders::NOBODY;
    for path in [format!("/projects/{unknown}"), format!("/contests/{unknown}")] {
        club.anonymous().get(&path).refused(404, "not-found");
    }
    for path in ["/projects/x", "/contests/x", "/api/v1/users/x/resume.json"] {
        club.anonymous().get(path).refused(400, "invalid-parameter");
    }
}

#[rstest]
fn a_resume_is_a_json_resume(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start_with(backend, &["--public-url", "http://localhost:3001"]);
    with_bob(&club);
    let found = valid_resume(&club);
    assert_eq!(
        found,
        json!({
            "$schema": "https://raw.githubusercontent.com/jsonresume/resume-schema/v1.0.0/schema.json",
            "basics": {
                "name": "real name of bob", "summary": "I <i>draw</i>.\nAnd sing.",
                "profiles": [{"network": "github", "username": "<bob>", "url": "https://github.com/bob"}],
            },
            "projects": [
                {"name": "</script><script>alert(1)", "description": "about it", "startDate": "2025-04-01"},
                {
                    "name": "Old & new", "description": "about it", "startDate": "2023-10-01", "endDate": "2025-03-31",
                    "url": "https://club.example/?a=1&b=2",
                },
            ],
            // A team without a result has achieved nothing yet.
            "awards": [{"title": "\"3rd\"", "date": "2026-04-05", "awarder": "Cup", "summary": "club A"}],
            "meta": {"canonical": format!("http://localhost:3001{}", resume(BOB)), "version": "v1.0.0"},
        })
    );
    let of_carol = club.anonymous().get(&resume(CAROL)).expect(200).json();
    assert_eq!(of_carol["basics"], json!({"name": "carol", "profiles": []}));
}

/// The résumé of bob, which is valid.
fn valid_resume(club: &Club) -> Value {
    let found = club.anonymous().get(&resume(BOB)).expect(200).json();
    let schema: Value = serde_json::from_str(include_str!("resume-schema.json")).unwrap();
    let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
    let errors: Vec<_> = validator.iter_errors(&found).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?} in {found}");
    found
}

#[rstest]
fn a_resume_is_valid_whatever_its_addresses_and_times_are(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let accounts = format!("/api/v1/users/{}/accounts", id(BOB));
    let address = "https://日本語.example/道[1]|{2}?語=%#a#節";
    club.by(BOB).post(&accounts, json!({"type": 0, "url": address, "displayName": "私"})).expect(201);
    for (name, since, until) in [("first", 1, 999), ("last", 3000, 9998)] {
        // The years of projects begin in 1970.
        if since >= 1970 {
            let project = project(&club, BOB, name);
            let spans = json!({"link": address, "duration": span((since, 0), Some((until, 0)))});
            club.by(BOB).patch(&project, spans).expect(204);
            let members = json!({"members": [member(BOB, (since, 0), Some((until, 0)))]});
            club.by(BOB).put(&format!("{project}/members"), members).expect(204);
        }
        let cup = contest(&club, BOB, name);
        let days =
            json!({"since": format!("{since:04}-04-03T00:00:00Z"), "until": format!("{until:04}-04-04T20:00:00Z")});
        club.by(BOB).patch(&cup, json!({"duration": days})).expect(204);
        let team = team(&club, BOB, &cup, "the team");
        club.by(BOB).patch(&team, json!({"result": "1st"})).expect(204);
        club.by(BOB).put(&format!("{team}/members"), json!({"members": [id(BOB)]})).expect(204);
    }
    let found = valid_resume(&club);
    let uri = "https://xn--wgv71a119e.example/%E9%81%93%5B1%5D%7C%7B2%7D?%E8%AA%9E=%25#a%23%E7%AF%80";
    assert_eq!(found["basics"]["profiles"][0]["url"], uri);
    for project in found["projects"].as_array().unwrap() {
        assert_eq!(project["url"], uri);
        assert!(project.get("startDate").is_none() && project.get("endDate").is_none(), "{project}");
    }
    let awards = json!({"title": "1st", "awarder": "last", "summary": "the team"});
    assert_eq!(found["awards"][0], awards);
}

#[rstest]
fn a_page_shows_at_most_200_rows_of_a_list(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut objects = Objects::new();
    objects.grow(&club, 205);
    let note = "This page shows at most 200.";
    let rows = |path: &str, row: &str| {
        let shown = page(club.anonymous().get(path));
        assert!(shown.contains(note), "{path}");
        shown.matches(row).count()
    };
    assert_eq!(rows("/projects", " href=\"/projects/"), 200);
    assert_eq!(rows("/contests", "<li><div><a href=\"/contests/"), 200);
    assert_eq!(rows("/people/bob", "href=\"/projects/"), 200);
    assert_eq!(rows("/people/bob", "href=\"/contests/"), 200);
    assert_eq!(rows(&format!("/projects/{}", objects.first("projectId")), "<li><div>"), 200);
    assert_eq!(rows(&format!("/contests/{}", objects.first("contestId")), "<h3>the team</h3>"), 200);
    assert_eq!(club.anonymous().get(&resume(BOB)).expect(200).json()["projects"].as_array().unwrap().len(), 200);
}

#[rstest]
fn queries_use_indexes(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut objects = Objects::new();
    objects.grow(&club, 2);
    plans::check(&club, |conn| {
        queries::load(conn, id(BOB)).unwrap();
    });
}

//! Problems, HEAD, metrics, the document and CORS of the real service. The tests of service-kit go into more detail.

use crate::harness::Backend::{self, Postgres, Sqlite};
use booking_service::codes;
use common::problem::code;
use rstest::rstest;

use crate::harness::{ALICE, Answer, BOB, Club};

#[rstest]
fn every_code_is_explained(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let all = club.anonymous().get("/problems").expect(200).json();
    let codes: Vec<_> = code::ALL.iter().chain(codes::ALL).chain(club_sign_in::codes::ALL).collect();
    assert_eq!(all.as_array().unwrap().len(), codes.len());
    for code in codes {
        let one = club.anonymous().get(&format!("/problems/{}", code.name)).expect(200).json();
        assert_eq!(one["name"], code.name);
        assert_eq!(one["status"], code.status);
        assert!(one["title"].is_string() && one["about"].is_string());
    }
    club.anonymous().get("/problems/no-such-code").refused(404, "not-found");
}

#[rstest]
fn a_refusal_says_what_to_do(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let answer = club.anonymous().get("/api/users");
    assert_eq!(answer.header("x-knoq-need-authorization"), Some("1"));
    answer.refused(401, "not-signed-in");
    club.by(ALICE).get("/api/nowhere").refused(404, "not-found");
    club.by(ALICE).get("/api").refused(404, "not-found");
    club.by(ALICE).get("/api/users/").refused(404, "not-found");
    club.by(ALICE).send("TRACE", "/api/users/me", None).refused(405, "method-not-allowed");
    let twice = "/api/users?include-suspended=true&include-suspended=false";
    assert_eq!(club.by(ALICE).get(twice).expect(400).pointers(), ["include-suspended"]);
}

#[rstest]
fn head_is_get_without_the_body(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for path in ["/api/users", "/api/users/me", "/livez", "/openapi.json", "/docs/", "/api/users?include-suspended=x"] {
        let get = club.by(BOB).get(path);
        let head = club.by(BOB).send("HEAD", path, None);
        assert_eq!((head.status, head.body.len()), (get.status, 0), "{path}");
        for name in ["content-type", "content-length", "cache-control", "content-security-policy"] {
            assert_eq!(head.header(name), get.header(name), "{path}");
        }
        // On PostgreSQL the fingerprint changes with the transactions of other databases.
        let hash = |answer: &Answer| answer.header("etag").map(|tag| tag.rsplit('.').next().unwrap().to_owned());
        assert_eq!(hash(&head), hash(&get), "{path}");
    }
}

#[rstest]
fn metrics_count_by_route_and_never_by_path(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    club.by(BOB).get("/api/users/me?secret=hunter2");
    club.by(BOB).get("/api/hunter2");
    club.by(BOB).send("TRACE", "/api/users/me", None);
    let read = || club.anonymous().get("/metrics").expect(200);
    let answer = read();
    assert!(answer.header("content-type").unwrap().starts_with("application/openmetrics-text; version=1.0.0"));
    let text = answer.text();
    assert!(!text.to_lowercase().contains("hunter2"), "{text}");
    assert!(text.contains("http_requests_total{method=\"GET\",route=\"/api/users/me\",status=\"200\"} 1\n"), "{text}");
    assert!(text.contains("http_requests_total{method=\"GET\",route=\"-\",status=\"404\"} 1\n"), "{text}");
    assert!(text.contains("{method=\"other\",route=\"/api/users/me\""), "{text}");
    assert!(text.ends_with("# EOF\n"));
    // Every line is a comment, or has a name, labels and a number.
    for line in text.lines().filter(|line| !line.starts_with("# ")) {
        let (series, value) = line.rsplit_once(' ').unwrap();
        let name = series.split('{').next().unwrap();
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !name.is_empty(), "{line}");
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
    let number = |text: &str, name: &str| -> u64 {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        line.rsplit_once(' ').unwrap().1.parse().unwrap()
    };
    assert!(number(&text, "db_statements_total ") > 0);
    assert_eq!(number(&text, "db_connections_in_use "), 0);
    let before = number(&read().text(), "db_statements_total ");
    club.by(BOB).get("/api/users/me");
    assert!(number(&read().text(), "db_statements_total ") > before);
}

#[rstest]
fn the_document_is_served(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let answer = club.anonymous().get("/openapi.json").expect(200);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.json(), *crate::harness::DOCUMENT);
}

#[test]
fn the_docs_load_nothing_from_elsewhere() {
    let club = Club::start(Backend::Sqlite);
    assert_eq!(club.anonymous().get("/docs").expect(302).header("location"), Some("/docs/"));
    // The name is asked for only if there is a credential.
    assert!(club.by(BOB).get("/docs/").expect(200).text().contains("<span id=\"who\"><a id=\"sign-in\""));
    let page = club.anonymous().get("/docs/").expect(200);
    assert!(!page.text().contains("id=\"who\""));
    assert!(page.header("content-type").unwrap().starts_with("text/html"));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'self'") && !policy.contains("http") && !policy.contains("eval"), "{policy}");
    let html = page.text();
    // The page contains nothing that its policy forbids: no inline scripts and no absolute addresses.
    assert!(html.split("<script").skip(1).all(|script| script.trim_start().starts_with("src=")), "{html}");
    assert!(!html.contains("://") && !html.contains("=\"//") && !html.contains(" on"), "{html}");
    let mut parts = 0;
    for part in html.split(['"', '\'']) {
        let kind = match part.rsplit_once('.') {
            Some((_, "js")) => "javascript",
            Some((_, "css")) => "css",
            Some((_, "png")) => "image/png",
            _ => continue,
        };
        let path = format!("/docs/{}", part.trim_start_matches("./"));
        let answer = club.anonymous().get(&path).expect(200);
        assert!(answer.header("content-type").unwrap().contains(kind), "{path}: {:?}", answer.header("content-type"));
        // The styles contain their images.
        assert!(kind != "css" || !answer.text().contains("@import") && !answer.text().contains("url(http"), "{path}");
        parts += 1;
    }
    assert!(parts >= 5, "{html}");
    let start = club.anonymous().get("/docs/swagger-initializer.js").expect(200).text();
    assert!(start.contains("'/openapi.json'") && !start.contains("://"), "{start}");
    assert!(start.contains("validatorUrl: 'none'"), "{start}");
    club.anonymous().get("/docs/nothing.js").refused(404, "not-found");
}

#[test]
fn another_origin_may_call_when_it_is_allowed() {
    let origin = "https://app.example";
    let club = Club::start_with(Backend::Sqlite, &["--allowed-origins", origin]);
    let answer = club.by(BOB).header("origin", origin).get("/api/users/me").expect(200);
    assert_eq!(answer.header("access-control-allow-origin"), Some(origin));
    assert_eq!(answer.header("access-control-allow-credentials"), Some("true"));
    let refused = club.anonymous().header("origin", origin).get("/api/users/me").expect(401);
    assert!(refused.header("access-control-expose-headers").unwrap().to_lowercase().contains("x-knoq-need-auth"));
    let other = club.by(BOB).header("origin", "https://evil.example").get("/api/users/me").expect(200);
    assert_eq!(other.header("access-control-allow-origin"), None);
}

#[rstest]
fn development_mode_answers_only_to_names_of_this_machine(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for host in ["evil.example", "evil.example:3000", "127.0.0.1.evil.example", "10.0.0.1"] {
        for path in ["/api/nowhere", "/livez", "/docs/", "/nowhere"] {
            club.anonymous().header("host", host).get(path).refused(421, "misdirected-request");
        }
    }
    for host in ["localhost", "localhost:3000", "127.0.0.1", "[::1]:80"] {
        club.anonymous().header("host", host).get("/api/version").expect(200);
    }
}

//! A front end that the service serves. The tests of service-kit go into more detail.

use std::fs;

use serde_json::json;

use crate::harness::{BOB, Backend, Club, id};

#[test]
fn the_front_end_has_every_path_but_those_of_the_service() {
    let (folder, index) = (tempfile::tempdir().unwrap(), "<!doctype html><title>works</title>");
    fs::write(folder.path().join("index.html"), index).unwrap();
    let club = Club::start_with(Backend::Sqlite, &["--static", folder.path().to_str().unwrap()]);
    let browser = club.by(BOB).header("accept", "text/html,*/*;q=0.8");
    let pages = [
        "/people/bob",
        "/projects",
        "/projects/0198c0de-0000-7000-8000-000000000001",
        "/contests/x",
        "/feeds",
        "/feeds/x",
        "/robots.txt",
        "/sitemap.xml",
    ];
    for path in ["/", "/callback", "/users/bob", "/projects?page=2"].into_iter().chain(pages) {
        assert_eq!(browser.get(path).expect(200).text(), index, "{path}");
    }
    for path in ["/api", "/api/", "/api/users", "/api/v1", "/api/v1/", "/api/v1/nowhere", "/api/v2/users"] {
        browser.clone().without("accept").get(path).refused(404, "not-found");
    }
    for path in ["/feeds/projects.atom", "/feeds/contests.atom"] {
        assert_eq!(browser.get(path).expect(200).header("content-type"), Some("application/atom+xml"), "{path}");
    }
    browser.get(&format!("/api/v1/users/{}/resume.json", id(BOB))).expect(200);
    browser.clone().without("accept").get("/api/v1/users/5").refused(400, "invalid-parameter");
    browser.clone().without("accept").post("/projects", json!({})).refused(405, "method-not-allowed");
    assert_eq!(browser.get("/api/v1/users/me").expect(200).json()["name"], BOB);
}

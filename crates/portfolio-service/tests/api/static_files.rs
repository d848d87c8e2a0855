//! A front end that the service serves. The tests of service-kit go into more detail.

use std::fs;

use serde_json::json;

use crate::harness::{BOB, Backend, Club};

#[test]
fn the_front_end_has_every_path_but_those_of_the_service() {
    let (folder, index) = (tempfile::tempdir().unwrap(), "<!doctype html><title>works</title>");
    fs::write(folder.path().join("index.html"), index).unwrap();
    let club = Club::start_with(Backend::Sqlite, &["--static", folder.path().to_str().unwrap()]);
    let browser = club.by(BOB).header("accept", "text/html,*/*;q=0.8");
    for path in ["/", "/callback", "/users/bob", "/projects?page=2"] {
        assert_eq!(browser.get(path).expect(200).text(), index, "{path}");
    }
    for path in ["/api", "/api/", "/api/users", "/api/v1", "/api/v1/", "/api/v1/nowhere", "/api/v2/users"] {
        browser.get(path).refused(404, "not-found");
    }
    browser.get("/api/v1/users/5").refused(400, "invalid-parameter");
    browser.post("/projects", json!({})).refused(405, "method-not-allowed");
    assert_eq!(browser.get("/api/v1/users/me").expect(200).json()["name"], BOB);
}

//! A front end that the service serves. The tests of service-kit go into more detail.

use std::{fs, path::Path};

use serde_json::json;

use crate::{
    commands::{check, outcome},
    harness::{BOB, Backend, Club},
    process::program,
};

const INDEX: &str = "<!doctype html><title>rooms</title>";

/// A folder with a front end of one page.
pub fn front_end() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("index.html"), INDEX).unwrap();
    folder
}

#[test]
fn the_front_end_has_all_paths_except_those_of_the_service() {
    let folder = front_end();
    let club = Club::start_with(Backend::Sqlite, &["--static", folder.path().to_str().unwrap()]);
    let browser = club.by(BOB).header("accept", "text/html,*/*;q=0.8");
    // The page at the end of a sign-in is the front end's, also in development mode.
    for path in ["/", "/callback", "/events/new?room=5", "/apidocs", "/users", "/dev"] {
        assert_eq!(browser.get(path).expect(200).text(), INDEX, "{path}");
    }
    // Files do not depend on the cookie, unlike operations.
    let varies = |path: &str| {
        let answer = browser.get(path).expect(200);
        answer.headers.iter().any(|(name, value)| name == "vary" && value.contains("Cookie"))
    };
    assert_eq!((varies("/"), varies("/api/users/me")), (false, true));
    for path in ["/api", "/api/", "/api/nowhere", "/api/v1/users", "/api/users/"] {
        browser.clone().without("accept").get(path).refused(404, "not-found");
    }
    browser.clone().without("accept").get("/api/rooms/5").refused(400, "invalid-parameter");
    browser.clone().without("accept").delete("/api/rooms").refused(405, "method-not-allowed");
    browser.clone().without("accept").post("/rooms", json!({})).refused(405, "method-not-allowed");
    assert_eq!(browser.get("/api/users/me").expect(200).json()["name"], BOB);
    assert!(browser.get("/dev/sign-in").expect(200).text().contains("Choose who you are"));
    assert!(browser.get("/icons/bob.svg").expect(200).text().starts_with("<svg"));
}

#[test]
fn a_folder_without_a_front_end_is_an_error_in_the_options() {
    let folder = front_end();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    assert_eq!(check(&["--time-zone", "Asia/Tokyo", "--static", &path("")], &[]), ("ok\n".to_owned(), Some(0)));
    let fault = |folder: &str| {
        let (out, status) = check(&["--time-zone", "Asia/Tokyo"], &[("STATIC", folder)]);
        assert_eq!(status, Some(78), "{out}");
        out
    };
    assert_eq!(fault(&path("none")), format!("--static: {} is no folder\n", path("none")));
    assert_eq!(fault(&path("index.html")), format!("--static: {} is no folder\n", path("index.html")));
    let empty = path("empty");
    fs::create_dir(&empty).unwrap();
    assert_eq!(fault(&empty), format!("--static: {empty} has no index.html\n"));
    // A link that leads out of the folder is not served.
    std::os::unix::fs::symlink("../index.html", Path::new(&empty).join("index.html")).unwrap();
    assert_eq!(fault(&empty), format!("--static: {empty} has no index.html\n"));
}

#[test]
fn a_front_end_with_utc_gives_a_warning() {
    let folder = front_end();
    for (zone, is_warned) in [("UTC", true), ("Asia/Tokyo", false)] {
        let front_end = ["--static", folder.path().to_str().unwrap(), "--time-zone", zone, "check-config"];
        let (_, err, status) = outcome(program(&front_end).env("LOG", "warn"));
        assert_eq!((err.contains("--time-zone is UTC"), status), (is_warned, Some(0)), "{zone}: {err}");
    }
}

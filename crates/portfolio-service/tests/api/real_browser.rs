//! The pages, and one of another site, in a real browser.

use std::path::Path;

use serde_json::json;

use crate::{
    harness::{BOB, Backend, Club},
    real_issuer::real::chromium,
};

#[test]
fn a_page_whose_name_is_rebound_to_this_machine_cannot_use_a_development_installation() {
    let club = Club::start(Backend::Sqlite);
    let port = club.origin(0).rsplit(':').next().unwrap();
    let me = json!(["/api/v1/users/me", {"headers": {"X-Forwarded-User": BOB}}]);
    let requests = json!([me, ["/api/v1/users"], ["/nowhere"]]);
    let program = include_str!("../../../service-kit/tests/real/rebinding.mjs");
    let seen = chromium(program, &[("PORT", port), ("REQUESTS", &requests.to_string())]);
    assert_eq!(seen["other"], json!({"opened": 421, "fetched": [421, 421, 421], "cookies": []}), "{seen}");
    // The same page by a name of this machine.
    assert_eq!(seen["own"], json!({"opened": 404, "fetched": [200, 200, 404], "cookies": []}), "{seen}");
}

#[test]
fn a_visitor_walks_through_all_pages() {
    let club = Club::start_empty(Backend::Sqlite, &["--demo"]);
    let shots = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("screenshots").join(env!("CARGO_PKG_NAME"));
    let steps = json!([
        ["link", "People"],
        ["search", "ＢＯＢ"],
        ["link", "bob"],
        ["link", "Groups"],
        ["link", "graphics"],
        ["link", "Projects"],
        ["link", "Rhythm Garden"],
        ["link", "Contests"],
    ]);
    let variables = [("ORIGIN", club.origin(0)), ("FOLDER", shots.to_str().unwrap()), ("STEPS", &steps.to_string())];
    let seen = chromium(include_str!("../../../service-kit/tests/real/walk.mjs"), &variables);
    eprintln!("screenshots of the pages are in {}", shots.display());
    assert_eq!(seen["errors"], json!([]), "{seen}");
    let pages = seen["pages"].as_array().unwrap();
    assert_eq!(pages.len(), steps.as_array().unwrap().len() + 1);
    for page in pages {
        assert_eq!((&page["found"], page["overflow"].as_i64()), (&json!([]), Some(0)), "{page}");
    }
    assert_eq!(pages[3]["pathname"], format!("/people/{BOB}"), "{seen}");
    assert_eq!(pages[5]["title"], "graphics", "{seen}");
}

#[test]
fn a_member_keeps_their_page_on_a_telephone() {
    let club = Club::start_empty(Backend::Sqlite, &["--demo"]);
    let shots = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("screenshots").join(env!("CARGO_PKG_NAME"));
    let variables = [("ORIGIN", club.origin(0)), ("FOLDER", shots.to_str().unwrap())];
    let seen = chromium(include_str!("../../../service-kit/tests/real/portfolio.mjs"), &variables);
    assert_eq!((&seen["axe"], &seen["overflow"]), (&json!({}), &json!([])), "pictures are in {}", shots.display());
    let ended = &seen["ended"];
    assert_eq!(ended["bio"], "I draw <cats>.", "{seen}");
    assert_eq!(ended["refused"], "This address does not fit the kind of account.", "{seen}");
    let history = ended["history"].as_array().unwrap();
    assert!(history[0].as_str().unwrap().starts_with("bob renamed it from “Cat café” to “Cat cafe”."), "{seen}");
    assert_eq!(ended["restored"], "Cat cafe", "{seen}");
    let team = ended["contest"][0].as_str().unwrap();
    assert!(["Cats", "1st", "bob (Bob Brennan)"].iter().all(|part| team.contains(part)), "{seen}");
    let japanese = ended["japanese"][0].as_str().unwrap();
    assert!(japanese.starts_with("bobさんが復元しました。"), "{seen}");
    assert_eq!(
        (&ended["language"], &ended["nobody"]),
        (&json!("History of Cat cafe"), &json!("Please sign in")),
        "{seen}"
    );
}

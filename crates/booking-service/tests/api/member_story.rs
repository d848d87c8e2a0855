//! Whole stories on the pages of members, in a real browser at a telephone's width.

use std::path::Path;

use serde_json::{Value, json};

use crate::{
    harness::{Backend, Club},
    real_sign_in::real::browser_node,
};

/// Takes seconds: a browser goes through some thirty pages.
#[test]
fn a_newcomer_does_the_daily_work_on_a_telephone() {
    let club = Club::start_with(Backend::Sqlite, &["--demo"]);
    let shots = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("screenshots").join("member");
    let home = tempfile::tempdir().unwrap();
    let mut node = browser_node(include_str!("../../../service-kit/tests/real/member.mjs"));
    node.env("PATH", std::env::var("PATH").unwrap()).env("HOME", home.path());
    let done = node.env("ORIGIN", club.origin(0)).env("FOLDER", &shots).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let seen: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((&seen["axe"], &seen["overflow"]), (&json!({}), &json!([])), "pictures are in {}", shots.display());
    let ended = &seen["ended"];
    assert_eq!((&ended["booked"], &ended["answered"]), (&json!("Tea & cake"), &json!("Going")), "{seen}");
    assert!(
        ended["history"].as_str().unwrap().starts_with("Bob Brennan moved it from Roof garden to Tea house."),
        "{seen}"
    );
    assert!(ended["reverted"].as_str().unwrap().contains("Roof garden"), "{seen}");
    assert!(ended["poll"].as_str().unwrap().contains("Best"), "{seen}");
    assert_eq!(ended["confirmed"], "Summer trip", "{seen}");
    assert!(ended["feed"].as_str().unwrap().starts_with("webcal://"), "{seen}");
    assert_eq!((&ended["uploaded"], &ended["language"]), (&json!("部屋"), &json!("Hello, Alice Andersson")), "{seen}");
}

//! The documentation page of a service in a real browser (`tests/real/docs.mjs`). Tests include this file by its path,
//! as a module of theirs, and hand in their Node. `scripts/real-components` has to have run before.

use std::{collections::BTreeSet, path::Path, process::Command};

use serde_json::Value;

/// Opens the page, signs `user` in, at the path `page` or by the dialog, and calls the operations with their examples.
/// Returns what the page shows, and the answers.
pub fn try_out(
    mut node: Command,
    origin: &str,
    count: usize,
    user: &str,
    page: &str,
    operations: &[&str],
) -> (Value, Vec<Value>) {
    let shots = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("screenshots").join(env!("CARGO_PKG_NAME"));
    let home = tempfile::tempdir().unwrap();
    node.env("PATH", std::env::var("PATH").unwrap()).env("HOME", home.path());
    node.env("ORIGIN", origin)
        .env("USER", user)
        .env("PAGE", page)
        .env("OPERATIONS", operations.join(","))
        .env("FOLDER", &shots);
    let done = node.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    eprintln!("screenshots of the documentation are in {}", shots.display());
    let seen: Value = serde_json::from_slice(&done.stdout).unwrap();

    let names =
        |list: &str| -> BTreeSet<_> { seen[list].as_array().unwrap().iter().map(ToString::to_string).collect() };
    assert_eq!(names("blocks"), names("operations"), "the page shows every operation");
    assert_eq!(seen["blocks"].as_array().unwrap().len(), names("blocks").len(), "the page shows each once");
    assert!(!names("locked").is_empty(), "{seen}");
    assert!(seen["filtered"].as_str().unwrap().ends_with(operations[1]), "{seen}");
    assert!(names("operations").len() >= count, "{seen}");
    for (theme, found) in seen["found"].as_object().unwrap() {
        assert_eq!(found, &serde_json::json!([]), "{theme}");
    }
    for nothing in ["elsewhere", "errors"] {
        assert_eq!(seen[nothing], serde_json::json!([]), "{nothing}");
    }
    assert_eq!(seen["title"], format!("{}: operations", env!("CARGO_PKG_NAME")));
    assert_eq!(seen["overflow"], 0, "a small window has to be scrolled sideways");
    let answers = operations.iter().map(|operation| seen["answers"][operation].clone()).collect();
    (seen, answers)
}

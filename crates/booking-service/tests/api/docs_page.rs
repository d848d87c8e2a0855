//! The documentation page in a real browser.

use serde_json::json;

use crate::{
    harness::{BOB, Backend, Club},
    real_sign_in::real::browser_node,
};

#[path = "../../../service-kit/tests/shared/docs_page.rs"]
mod browser;

/// Takes seconds: a browser draws all operations and checks their accessibility.
#[test]
fn a_visitor_signs_in_and_tries_operations_on_the_page() {
    let club = Club::start_with(Backend::Sqlite, &["--demo"]);
    let node = browser_node(include_str!("../../../service-kit/tests/real/docs.mjs"));
    // The examples of the document name a user and a group of the demonstration, and days to come.
    let operations = [
        "getMe",
        "postTag",
        "addRooms",
        "addEvents",
        "createGroup",
        "addDraftEvent",
        "findFreeTimes",
        "getUser",
        "getGroup",
    ];
    let (seen, answers) = browser::try_out(node, club.origin(0), 41, BOB, "/dev/sign-in", &operations);
    assert_eq!((&answers[0]["status"], &answers[0]["body"]["name"]), (&json!("200"), &json!(BOB)), "{seen}");
    for (operation, answer) in operations.iter().zip(&answers).skip(1) {
        let expected = if operation.starts_with("get") || *operation == "findFreeTimes" { "200" } else { "201" };
        assert_eq!(answer["status"], expected, "{operation}: {answer}");
    }
    assert_eq!(answers[1]["body"]["name"], "workshop");
    assert_eq!(seen["links"], json!(["/", "/openapi.json"]));
    assert!(seen["nav"].as_str().unwrap().contains("Signed in as Bob Brennan"), "{seen}");
    assert_eq!(seen["returned"], "#/rooms/addRooms");
    let is_locked = |operation: &str| seen["locked"].as_array().unwrap().contains(&json!(operation));
    assert!(is_locked("getRooms") && !is_locked("getVersion"), "{seen}");
    assert!(seen["filterWidth"].as_u64().unwrap() > 240, "{seen}");
    // No page can set the cookie of a session.
    let schemes = seen["schemes"].as_array().unwrap();
    assert!(schemes.len() == 1 && schemes[0].as_str().unwrap().starts_with("token"), "{schemes:?}");
}

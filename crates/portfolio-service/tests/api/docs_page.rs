//! The documentation page in a real browser.

use serde_json::json;

use crate::{
    harness::{BOB, Backend, Club},
    real_issuer::real::browser_node,
};

#[path = "../../../service-kit/tests/shared/docs_page.rs"]
mod browser;

/// Takes seconds: a browser draws all operations and checks their accessibility.
#[test]
fn the_page_signs_a_user_in_and_calls_operations() {
    let club = Club::start_empty(Backend::Sqlite, &["--demo"]);
    let node = browser_node(include_str!("../../../service-kit/tests/real/docs.mjs"));
    let operations = ["getMe", "createProject", "createContest", "getUser", "getGroup"];
    let (seen, answers) = browser::try_out(node, club.origin(0), 39, BOB, "", &operations);
    let [me, project, contest, user, group] = answers.as_slice() else { panic!("{seen}") };
    assert_eq!((&me["status"], &me["body"]["name"]), (&json!("200"), &json!(BOB)), "{me}");
    assert_eq!((&project["status"], &contest["status"]), (&json!("201"), &json!("201")), "{project} {contest}");
    assert_eq!((&user["status"], &group["status"]), (&json!("200"), &json!("200")), "{user} {group}");
    let path = format!("/api/v1/projects/{}", project["body"]["id"].as_str().unwrap());
    assert_eq!(club.anonymous().get(&path).expect(200).json()["name"], project["body"]["name"]);
    let is_locked = |operation: &str| seen["locked"].as_array().unwrap().contains(&json!(operation));
    assert!(is_locked("getMe") && is_locked("createProject") && !is_locked("getProjects"), "{seen}");
    assert_eq!(seen["links"], json!(["/", "/dev/sign-in?to=%2Fdocs%2F", "/openapi.json"]));
}

//! The documentation page in a real browser.

use serde_json::json;

use crate::{
    harness::{BOB, Backend, Club},
    real_issuer::real::node,
};

#[path = "../../../service-kit/tests/shared/docs_page.rs"]
mod browser;

#[test]
fn whoever_opens_the_page_says_who_they_are_and_tries_the_operations() {
    let club = Club::start(Backend::Sqlite);
    let node = node(include_str!("../../../service-kit/tests/real/docs.mjs"));
    let [me, made] = browser::try_out(node, club.origin(0), 39, BOB, "", ["getMe", "createProject"]);
    assert_eq!((&me["status"], &me["body"]["name"]), (&json!("200"), &json!(BOB)), "{me}");
    assert_eq!(made["status"], "201", "{made}");
    assert_eq!(club.anonymous().get("/api/v1/projects").expect(200).json()[0]["id"], made["body"]["id"]);
}

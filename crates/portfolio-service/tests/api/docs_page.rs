//! The documentation page in a real browser.

use serde_json::json;

use crate::{
    harness::{BOB, Backend, Club},
    real_issuer::real::node,
};

#[path = "../../../service-kit/tests/shared/docs_page.rs"]
mod browser;

#[test]
fn the_page_signs_a_user_in_and_calls_operations() {
    let club = Club::start(Backend::Sqlite);
    let node = node(include_str!("../../../service-kit/tests/real/docs.mjs"));
    let [me, made] = browser::try_out(node, club.origin(0), 39, BOB, "", ["getMe", "createProject"]);
    assert_eq!((&me["status"], &me["body"]["name"]), (&json!("200"), &json!(BOB)), "{me}");
    assert_eq!(made["status"], "201", "{made}");
    assert_eq!(club.anonymous().get("/api/v1/projects").expect(200).json()[0]["id"], made["body"]["id"]);
}

//! The documentation page in a real browser.

use serde_json::json;

use crate::{
    harness::{BOB, Backend, Club},
    real_sign_in::real::node,
};

#[path = "../../../service-kit/tests/shared/docs_page.rs"]
mod browser;

#[test]
fn a_visitor_signs_in_and_tries_operations_on_the_page() {
    let club = Club::start(Backend::Sqlite);
    let node = node(include_str!("../../../service-kit/tests/real/docs.mjs"));
    let operations = ["getMe", "postTag"];
    let [me, made] = browser::try_out(node, club.origin(0), 41, BOB, "/dev/sign-in", operations);
    assert_eq!((&me["status"], &me["body"]["name"]), (&json!("200"), &json!(BOB)), "{me}");
    assert_eq!((&made["status"], &made["body"]["name"]), (&json!("201"), &json!("lecture")), "{made}");
    assert_eq!(club.by(BOB).get("/api/tags").expect(200).json()[0]["tagId"], made["body"]["tagId"]);
}

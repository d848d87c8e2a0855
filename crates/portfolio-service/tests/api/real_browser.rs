//! A page of another site in a real browser.

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

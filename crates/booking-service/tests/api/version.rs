//! Which build answers.

use crate::harness::on_both;

on_both! {
    anybody_may_ask_for_the_version(club) {
        let answer = club.anonymous().get("/api/version").expect(200);
        let body = answer.json();
        assert_eq!(body["version"].as_str(), answer.header("x-knoq-version"));
        assert!(body["revision"].is_string());
    }
}

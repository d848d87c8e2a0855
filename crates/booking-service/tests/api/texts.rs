//! The texts of pages: what a form may be refused for is said in each language.

use std::collections::BTreeSet;

use booking_service::codes;
use common::problem::{Code, Rule, code};

/// The keys of a catalog and of the shared one.
fn keys(catalogs: [&str; 2]) -> BTreeSet<String> {
    let lines = catalogs.into_iter().flat_map(str::lines);
    lines.filter_map(|line| line.split_once(" =")).map(|(key, _)| key.to_owned()).collect()
}

/// Refusals of requests that no form sends.
const OF_PROGRAMS: [&str; 14] = [
    "bad-filter",
    "bad-request",
    "conflict",
    "filter-too-long",
    "forbidden",
    "insufficient-scope",
    "invalid-body",
    "invalid-parameter",
    "malformed-json",
    "not-signed-in",
    "bad-credentials",
    "not-found",
    "cross-site-request",
    "account-inactive",
];

#[test]
fn every_refusal_of_a_form_is_said_in_each_language() {
    let english = [include_str!("../../locales/en.ftl"), include_str!("../../../service-kit/locales/en.ftl")];
    let japanese = [include_str!("../../locales/ja.ftl"), include_str!("../../../service-kit/locales/ja.ftl")];
    for (language, catalogs) in [("en", english), ("ja", japanese)] {
        let keys = keys(catalogs);
        let of_forms =
            |code: &&&Code| matches!(code.status, 400 | 401 | 403 | 404 | 409) && !OF_PROGRAMS.contains(&code.name);
        for code in codes::ALL.iter().chain(club_sign_in::codes::ALL).chain(code::ALL).filter(of_forms) {
            for key in [format!("problem-{}", code.name), format!("problem-{}-about", code.name)] {
                assert!(keys.contains(&key), "{key} in {language}");
            }
        }
        let of_programs = [Rule::BadFilter, Rule::FilterTooLong, Rule::NotACursor];
        for rule in Rule::ALL.iter().filter(|rule| !of_programs.contains(rule)) {
            assert!(keys.contains(&format!("rule-{}", rule.code())), "{} in {language}", rule.code());
        }
    }
}

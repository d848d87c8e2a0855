//! The page at `/`.

use rstest::rstest;

use crate::harness::{
    BOB,
    Backend::{self, Postgres, Sqlite},
    Club, SUSAN,
};

#[path = "../../../service-kit/tests/shared/front_page.rs"]
pub mod page;

#[rstest]
fn the_first_page_says_who_is_signed_in_and_leads_on(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for nobody in [club.anonymous(), club.by(SUSAN), club.by("no name"), club.by("unknown")] {
        let shown = page::check(&nobody.get("/").expect(200));
        assert!(shown.contains("Reading needs no sign-in.") && !shown.contains("signed in as"), "{shown}");
        for link in page::links(&shown) {
            assert_eq!(club.anonymous().get(link).status, 200, "{link}");
        }
    }
    let own = page::check(&club.by(BOB).get("/").expect(200));
    assert!(own.contains("You are signed in as <b>@bob</b>."), "{own}");
    club.by(BOB).post("/", serde_json::json!({})).refused(405, "method-not-allowed");
}

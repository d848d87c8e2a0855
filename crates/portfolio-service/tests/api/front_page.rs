//! The page at `/`.

use rstest::rstest;

use crate::harness::{
    BOB,
    Backend::{self, Postgres, Sqlite},
    Club, SUSAN,
};

#[path = "../../../service-kit/tests/shared/forms.rs"]
pub mod forms;
#[path = "../../../service-kit/tests/shared/front_page.rs"]
pub mod page;

#[rstest]
fn the_first_page_says_who_is_signed_in_and_leads_on(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for nobody in [club.anonymous(), club.by(SUSAN), club.by("no name"), club.by("unknown")] {
        let shown = page::check(&nobody.get("/").expect(200));
        assert!(!shown.contains("signed in as") && !shown.contains("class=\"button\""), "{shown}");
        for link in page::links(&shown).iter().filter(|link| **link != "/me" && !link.starts_with("/language?")) {
            assert_eq!(club.anonymous().get(link).status, 200, "{link}");
        }
    }
    let own = page::check(&club.by(BOB).get("/").expect(200));
    assert!(own.contains("You are signed in as @bob."), "{own}");
    let japanese = page::check(&club.by(BOB).header("accept-language", "ja").get("/").expect(200));
    assert!(japanese.contains("@bobとしてログインしています。"), "{japanese}");
    club.by(BOB).post("/", serde_json::json!({})).refused(405, "method-not-allowed");
}

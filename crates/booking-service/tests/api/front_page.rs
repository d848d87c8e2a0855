//! The pages that stand in for a front end: `/`, `/sign-in` and `/callback`.

use booking_service::schema::users;
use diesel::prelude::*;
use rstest::rstest;
use serde_json::json;
use url::form_urlencoded;

use crate::{
    harness::{
        BOB,
        Backend::{self, Postgres, Sqlite},
        Club, SUSAN, id,
    },
    issuer::Issuer,
    sign_in::{Browser, sign_in},
};

#[path = "../../../service-kit/tests/shared/forms.rs"]
pub mod forms;
#[path = "../../../service-kit/tests/shared/front_page.rs"]
pub mod page;

#[rstest]
fn the_first_page_says_who_is_signed_in_and_leads_on(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let bob = diesel::update(users::table.find(id(BOB)));
    bob.set(users::display_name.eq("<b>Bob</b> & \"co\"")).execute(&mut club.connect()).unwrap();

    let nobody = page::check(&club.anonymous().get("/").expect(200));
    assert!(nobody.contains("href=\"/sign-in?to=%2F\"") && !nobody.contains("Sign out"), "{nobody}");
    let developers = page::check(&club.anonymous().get("/developers").expect(200));
    for text in [concat!("version ", env!("CARGO_PKG_VERSION")), "The service is ready", "Lecture rooms"] {
        assert!(developers.contains(text), "{text}");
    }
    let own = page::check(&club.by(BOB).get("/").expect(200));
    assert!(own.contains("Hello, &lt;b&gt;Bob&lt;/b&gt; &amp; &quot;co&quot;"), "{own}");
    for link in page::links(&own).into_iter().chain(page::links(&developers)) {
        let link = link.replace("&amp;", "&");
        assert!(link == "#main" || [200, 302, 303].contains(&club.by(BOB).get(&link).status), "{link}");
    }
    // Neither a cookie that is no longer good nor an account that is suspended keeps anybody from it.
    for cookie in ["session=nothing".to_owned(), format!("session=session-of-{SUSAN}")] {
        let shown = page::check(&club.anonymous().header("cookie", &cookie).get("/").expect(200));
        assert!(!shown.contains("Hello"), "{shown}");
    }
    club.by(BOB).post("/", json!({})).refused(405, "method-not-allowed");
    assert_eq!(club.anonymous().get("/robots.txt").expect(200).text(), "User-agent: *\nDisallow: /\n");
    let first = club.by(BOB).get("/polls").expect(200);
    let policy = first.header("content-security-policy");
    let unchanged = || club.by(BOB).header("if-none-match", first.header("etag").unwrap()).get("/polls").expect(304);
    // A browser gives the policy of the 304, if it has one, to the page that it has.
    assert!([None, policy].contains(&unchanged().header("content-security-policy")));
    // Another version of the database with the same page.
    club.by(BOB).post("/api/tags", json!({"name": "quiet"})).expect(201);
    assert_eq!(unchanged().header("content-security-policy"), policy);
}

#[rstest]
fn the_page_of_the_sign_in_leads_to_the_provider_and_ends_at_the_callback(
    #[values(Sqlite, Postgres)] backend: Backend,
) {
    let issuer = Issuer::start();
    let club = issuer.club(backend);
    let mut browser = Browser::new(&club);
    let first = page::check(&browser.get("/").expect(200));
    assert!(page::links(&first).contains(&"/sign-in?to=%2F"), "{first}");
    let begun = browser.get("/sign-in").expect(302);
    let url = begun.header("location").unwrap();
    assert!(url.starts_with(&issuer.address), "{url}");
    let callback = issuer.approve(url);
    assert_eq!(browser.get(&callback).expect(302).header("location"), Some("/callback"));
    let arrived = page::check(&browser.get("/callback").expect(200));
    assert!(arrived.contains("You are signed in as"), "{arrived}");
    for link in ["/", "/board", "/docs/"] {
        assert!(page::links(&arrived).contains(&link), "{arrived}");
        browser.get(link).expect(200);
    }
    // The other way to begin ends there as well.
    let mut other = Browser::new(&club);
    sign_in(&mut other, &issuer).expect(302);
    assert!(other.get("/callback").expect(200).text().contains("You are signed in as"));
    assert!(Browser::new(&club).get("/callback").expect(200).text().contains("You are not signed in"));
}

#[rstest]
fn a_sign_in_returns_to_the_page_of_this_service_that_began_it(#[values(Sqlite, Postgres)] backend: Backend) {
    let issuer = Issuer::start();
    let club = issuer.club(backend);
    for (page, end) in [
        ("/board?day=2026-04-01&view=week", "/board?day=2026-04-01&view=week"),
        ("/docs/", "/docs/"),
        ("/docs/#/rooms/addRooms", "/docs/#/rooms/addRooms"),
        ("/events?month=2026-04", "/events?month=2026-04"),
        ("//evil.example/board", "/callback"),
        ("https://evil.example/board", "/callback"),
        ("/board/../api", "/callback"),
        ("/board?\r\nset-cookie: a=b", "/callback"),
        ("", "/callback"),
    ] {
        let mut browser = Browser::new(&club);
        let begin = form_urlencoded::Serializer::new("/sign-in?".to_owned()).append_pair("to", page).finish();
        let begun = browser.get(&begin).expect(302);
        let callback = issuer.approve(begun.header("location").unwrap());
        assert_eq!(browser.get(&callback).expect(302).header("location"), Some(end), "{page:?}");
    }
}

#[rstest]
fn the_pages_sign_out(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for path in ["/", "/callback", "/sign-out"] {
        let shown = page::check(&club.by(BOB).get(path).expect(200));
        assert!(shown.contains(r#"<form method="post" action="/sign-out">"#), "{shown}");
    }
    // Neither a page of another site nor a link does it.
    let form = || club.by(BOB).header("content-type", "application/x-www-form-urlencoded");
    let elsewhere = form().header("origin", "https://evil.example").send("POST", "/sign-out", None).expect(303);
    assert_eq!((elsewhere.header("location"), elsewhere.header("set-cookie")), (Some("/"), None));
    club.by(BOB).get("/api/users/me").expect(200);

    let out = form().send("POST", "/sign-out", None).expect(303);
    assert_eq!(out.header("location"), Some("/"));
    assert!(out.header("set-cookie").unwrap().starts_with("session=; "), "{out:?}");
    club.by(BOB).get("/api/users/me").refused(401, "bad-credentials");
    // Pressed twice, or by nobody.
    for who in [form(), club.anonymous()] {
        assert_eq!(who.send("POST", "/sign-out", None).expect(303).header("location"), Some("/"));
    }
}

#[test]
fn another_site_cannot_begin_a_sign_in() {
    let club = Club::start(Sqlite);
    let from = |site: &str| club.by(BOB).header("sec-fetch-site", site).get("/sign-in").expect(302);
    for site in ["cross-site", "same-site"] {
        assert_eq!((from(site).header("location"), from(site).header("set-cookie")), (Some("/"), None), "{site}");
    }
    for site in ["same-origin", "none"] {
        assert!(from(site).header("location").unwrap().contains("/dev/sign-in?"), "{site}");
    }
}

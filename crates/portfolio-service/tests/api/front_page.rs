//! The page at `/`.

use rstest::rstest;

use crate::harness::{
    ALICE, BOB,
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

#[rstest]
fn a_browser_on_this_machine_signs_in_as_anybody(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let nobody = || club.anonymous().header("accept", forms::HTML);
    let refused = page::check(&nobody().get("/projects/new").expect(401));
    let address = "/dev/sign-in?to=%2Fprojects%2Fnew";
    assert!(refused.contains(&format!("<a class=\"button primary\" href=\"{address}\">Sign in</a>")), "{refused}");
    let shown = page::check(&nobody().get(address).expect(200));
    assert!(shown.contains("value=\"bob\"") && !shown.contains(&format!("value=\"{SUSAN}\"")), "{shown}");
    let send = |path: &str, body: &str| {
        let form = nobody().header("content-type", "application/x-www-form-urlencoded");
        form.send_bytes("POST", path, body.as_bytes().to_vec())
    };
    let signed_in = send("/dev/sign-in", "name=bob&to=%2Fprojects%2Fnew").expect(303);
    assert_eq!(signed_in.header("location"), Some("/projects/new"));
    let cookie = signed_in.header("set-cookie").unwrap();
    assert_eq!(cookie, "development_user=bob; Path=/; SameSite=Lax; HttpOnly");
    let bob = || nobody().header("cookie", "language=en; development_user=bob");
    assert!(page::check(&bob().get("/").expect(200)).contains("You are signed in as @bob."));
    bob().get("/projects/new").expect(200);
    // The name of a header, such as that of a program, goes before.
    assert_eq!(club.by(ALICE).header("cookie", "development_user=bob").get("/api/v1/users/me").json()["name"], ALICE);
    assert_eq!(send("/dev/sign-in", "name=bob&to=//evil.example").expect(303).header("location"), Some("/"));
    send("/dev/sign-in", "name=no+name").expect(400);
    let elsewhere = || bob().header("origin", "https://evil.example");
    let form = elsewhere().header("content-type", "application/x-www-form-urlencoded");
    form.send_bytes("POST", "/dev/sign-in", b"name=alice".to_vec()).expect(403);
    form.send_bytes("POST", "/sign-out", b"a=b".to_vec()).expect(403);
    elsewhere().post("/api/v1/projects", serde_json::json!({})).expect(403);
    assert!(page::check(&bob().get("/sign-out").expect(200)).contains("Sign out?"));
    assert!(send("/sign-out", "").expect(303).header("set-cookie").unwrap().contains("=; Path=/; Max-Age=0;"));
}

#[test]
fn a_proxy_signs_in_where_the_option_says() {
    for (option, address) in [
        ("/oauth2/start?rd={to}", "/oauth2/start?rd=%2Fcontests%2Fnew"),
        (
            "https://sso.example/?back={to}&x=1",
            "https://sso.example/?back=http%3A%2F%2F127.0.0.1%3A0%2Fcontests%2Fnew&amp;x=1",
        ),
        ("/start", "/start"),
    ] {
        let club = Club::start_with(Sqlite, &["--trusted-proxies", "127.0.0.1", "--sign-in-url", option]);
        let nobody = || club.anonymous().header("accept", forms::HTML);
        let refused = page::check(&nobody().get("/contests/new").expect(401));
        // In the navigation and below the refusal.
        assert_eq!(refused.matches(&format!("href=\"{address}\">Sign in</a>")).count(), 2, "{refused}");
        nobody().header("cookie", "development_user=bob").get("/contests/new").expect(401);
        let signed_in = page::check(&club.by(BOB).header("accept", forms::HTML).get("/contests/new").expect(200));
        assert!(!signed_in.contains(">Sign in<") && !signed_in.contains("/sign-out"), "{signed_in}");
        for path in ["/dev/sign-in", "/sign-out"] {
            nobody().get(path).expect(404);
            let form = nobody().header("content-type", "application/x-www-form-urlencoded");
            form.send_bytes("POST", path, b"name=bob".to_vec()).expect(404);
        }
    }
    let club = Club::start_with(Sqlite, &["--trusted-proxies", "127.0.0.1"]);
    let refused = page::check(&club.anonymous().header("accept", forms::HTML).get("/contests/new").expect(401));
    assert!(
        !refused.contains("Sign in</a>")
            && refused.contains("The proxy has sent no x-forwarded-user or x-showcase-user."),
        "{refused}"
    );
}

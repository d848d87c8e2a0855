//! Signing in with a provider, by the service itself.

use std::{fs, process::Command};

use diesel::prelude::*;
use portfolio_service::schema::users;
use serde_json::{Value, json};
use service_kit::database::types::DbUuid;
use uuid::Uuid;

#[path = "../../../service-kit/tests/shared/sign_in_attacks.rs"]
mod attacks;

use crate::{
    booking::Booking,
    harness::{ALICE, Answer, BOB, Backend, CAROL, Club, DORA, id},
    issuer::{CLIENT, Issuer, PUBLIC, SECRET, TOKEN, USER, start},
    real_issuer::real::Jar,
};

pub use crate::front_page::forms::HTML;

/// The path to which the provider redirects.
pub const CALLBACK: &str = "/sign-in/callback";

/// The link of the page of a failed sign-in.
pub const SIGN_IN_AGAIN: &str = "<a class=\"button primary\" href=\"/sign-in?to=%2F\">Sign in again</a>";

/// A key.
const KEY: &str = "0123456789-abcdefghijklmnopqrstuvwxyz";

/// Runs a test on both databases.
pub fn both(test: impl Fn(Backend)) {
    test(Backend::Sqlite);
    test(Backend::Postgres);
}

/// Something that keeps cookies and says where its writes come from, as browsers do.
#[derive(Clone)]
pub struct Browser<'club> {
    pub club: &'club Club,
    pub accept: &'static str,
    jar: Jar,
}

impl<'club> Browser<'club> {
    pub fn new(club: &'club Club) -> Self {
        Self { club, accept: "*/*", jar: Jar::default() }
    }

    /// A browser with this session, which may be none.
    pub fn with_session(club: &'club Club, session: &str) -> Self {
        let mut browser = Self::new(club);
        browser.jar.keep([format!("portfolio_session={session}")].iter().map(String::as_str));
        browser
    }

    pub fn send(&mut self, method: &str, path: &str, origin: &str) -> Answer {
        let cookies = format!("other=1; {}", self.jar.cookies(path.split('?').next().unwrap()));
        let mut client = self.club.anonymous().header("accept", self.accept).header("cookie", &cookies);
        if method != "GET" {
            client = client.header("origin", origin);
        }
        let body = (method == "PATCH").then(|| json!({"bio": "written"}));
        let answer = client.send(method, path, body);
        self.jar.keep(set_cookies(&answer).into_iter());
        answer
    }

    pub fn get(&mut self, path: &str) -> Answer {
        self.send("GET", path, "")
    }

    /// The session, good or bad.
    pub fn session(&self) -> Option<String> {
        let cookies = self.jar.cookies("/");
        cookies.split("; ").find_map(|cookie| cookie.strip_prefix("portfolio_session=").map(str::to_owned))
    }

    /// The sign-in name of whoever is signed in here.
    pub fn who(&self) -> Option<String> {
        let answer = self.clone().get("/api/v1/users/me");
        (answer.status == 200).then(|| answer.json()["name"].as_str().unwrap().to_owned())
    }
}

/// Begins a sign-in, and answers the address to which the browser goes.
pub fn begin(browser: &mut Browser) -> String {
    browser.get("/sign-in").expect(302).header("location").unwrap().to_owned()
}

/// Signs in, or not.
pub fn sign_in(browser: &mut Browser, issuer: &Issuer) -> Answer {
    let url = begin(browser);
    browser.get(&issuer.approve(&url))
}

/// The values of an answer's `Set-Cookie` headers.
pub fn set_cookies(answer: &Answer) -> Vec<&str> {
    let set = answer.headers.iter().filter(|(name, _)| name == "set-cookie");
    set.map(|(_, value)| value.as_str()).collect()
}

/// Asserts that an answer takes the cookie of one sign-in from the browser, and nothing else.
#[track_caller]
pub fn ends_one_sign_in(answer: &Answer) {
    let set = set_cookies(answer);
    assert!(set.len() == 1 && set[0].starts_with("login_") && set[0].contains("; Max-Age=0"), "{answer:?}");
}

#[track_caller]
fn refused(club: &Club, issuer: &Issuer, status: u16, code: &str) {
    let mut browser = Browser::new(club);
    sign_in(&mut browser, issuer).refused(status, code);
    assert_eq!((browser.session(), browser.who()), (None, None));
}

fn user_named(club: &Club, name: &str) -> Option<(DbUuid, bool, bool)> {
    let columns = (users::id, users::in_directory, users::admin);
    users::table.filter(users::name.eq(name)).select(columns).first(&mut club.connect()).optional().unwrap()
}

/// Runs a command, and returns its status and output.
fn run(arguments: &[&str]) -> (i32, String) {
    let done = Command::new(env!("CARGO_BIN_EXE_portfolio-service")).env_clear().args(arguments).output().unwrap();
    (done.status.code().unwrap(), String::from_utf8([done.stdout, done.stderr].concat()).unwrap())
}

#[test]
fn a_member_signs_in_writes_and_signs_out() {
    both(|backend| {
        let issuer = Issuer::start();
        issuer.is_now("subject-of-bob", BOB);
        let club = issuer.club(backend);
        let mut browser = Browser::new(&club);
        let page = browser.get("/").expect(200).text();
        assert!(page.contains("href=\"/sign-in?to=%2F\""), "{page}");
        let url = browser.get("/sign-in?to=/me").expect(302).header("location").unwrap().to_owned();
        let answer = browser.get(&issuer.approve(&url)).expect(302);
        assert_eq!(answer.header("location"), Some("/me"));
        let set = set_cookies(&answer);
        let session = set.iter().find(|cookie| cookie.starts_with("portfolio_session=")).unwrap();
        for attribute in ["HttpOnly", "SameSite=Lax", "Secure", "Path=/", "Max-Age=2592000"] {
            assert!(session.contains(attribute), "{session}");
        }
        assert_eq!(browser.who().as_deref(), Some(BOB));
        let page = Browser { accept: HTML, ..browser.clone() }.get("/me").expect(200).text();
        assert!(page.contains("Sign out"), "{page}");
        // A form of another site neither writes nor signs out.
        let me = format!("/api/v1/users/{}", id(BOB));
        browser.send("PATCH", &me, "https://evil.example").refused(403, "cross-site-request");
        browser.send("POST", "/sign-out", "https://evil.example").expect(303);
        browser.send("PATCH", &me, PUBLIC).expect(204);
        let before = browser.clone();
        browser.send("POST", "/sign-out", PUBLIC).expect(303);
        assert_eq!((browser.session(), before.who()), (None, None));
        // Without a session, what everybody may read can still be read.
        before.clone().get("/api/v1/projects").expect(200);
        before.clone().get("/api/v1/users/me").refused(401, "bad-credentials");
        Browser::new(&club).get("/api/v1/users/me").refused(401, "not-signed-in");
    });
}

#[test]
fn who_is_not_active_or_becomes_inactive_has_no_session() {
    both(|backend| {
        let issuer = Issuer::start();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("members.toml");
        fs::write(&file, "[[users]]\nname = \"bob\"\n[[users]]\nname = \"carol\"\n[[users]]\nname = \"alice\"\n")
            .unwrap();
        let options = issuer.options();
        let mut options: Vec<_> = options.iter().map(String::as_str).collect();
        options.extend(["--directory-file", file.to_str().unwrap()]);
        let club = Club::start_empty(backend, &options);
        issuer.is_now("subject-of-dora", DORA);
        refused(&club, &issuer, 403, "not-a-member");
        issuer.is_now("subject-of-stranger", "stranger");
        refused(&club, &issuer, 403, "not-a-member");
        issuer.is_now("subject-of-carol", CAROL);
        let mut carol = Browser::new(&club);
        sign_in(&mut carol, &issuer).expect(302);
        issuer.is_now("subject-of-alice", ALICE);
        let mut alice = Browser::new(&club);
        sign_in(&mut alice, &issuer).expect(302);
        fs::write(&file, "[[users]]\nname = \"bob\"\n[[users]]\nname = \"alice\"\n").unwrap();
        alice.send("POST", "/api/v1/users/sync", PUBLIC).expect(204);
        assert_eq!(carol.who(), None);
        // The session has ended for good.
        fs::write(&file, "[[users]]\nname = \"carol\"\n[[users]]\nname = \"alice\"\n[[users]]\nname = \"bob\"\n")
            .unwrap();
        alice.send("POST", "/api/v1/users/sync", PUBLIC).expect(204);
        assert_eq!(carol.who(), None);
        issuer.is_now("subject-of-carol", CAROL);
        sign_in(&mut carol, &issuer).expect(302);
        assert_eq!(carol.who().as_deref(), Some(CAROL));
    });
}

#[test]
fn who_joins_by_a_rule_has_the_id_of_both_services_and_outlasts_the_directory() {
    both(|backend| {
        let issuer = Issuer::start();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("members.toml");
        fs::write(&file, "[[users]]\nname = \"alice\"\n").unwrap();
        let mut options = vec!["--provider", "google", "--oidc-issuer", &issuer.address, "--public-url", PUBLIC];
        options.extend(["--oauth-client-id", CLIENT, "--oauth-client-secret", SECRET, "--member-domains"]);
        options.extend(["club.example", "--directory-file", file.to_str().unwrap()]);
        let club = Club::start_empty(backend, &options);
        let google = |sub: &str, email: &str, verified: Value| {
            let user = json!({"sub": sub, "email": email, "email_verified": verified, "name": "Zoé Q."});
            issuer.set(|now| now.user = user);
        };
        for (email, verified) in
            [("zoe@club.example", json!(false)), ("zoe@club.example.evil", json!(true)), ("zoe@x", json!(true))]
        {
            google("1", email, verified);
            refused(&club, &issuer, 403, "not-a-member");
        }
        google("1", "Zoe@Club.example", json!(true));
        let mut browser = Browser::new(&club);
        sign_in(&mut browser, &issuer).expect(302);
        assert_eq!(browser.who().as_deref(), Some("zoe"));
        let derived = DbUuid(club_issuer::joining::id_of(&issuer.address, "1"));
        assert_eq!(user_named(&club, "zoe"), Some((derived, false, false)));
        // The name at the provider is not public.
        let page = Browser::new(&club).get("/people/zoe").expect(200).text();
        assert!(!page.contains("Zoé"), "{page}");
        // A sync does not end the access of who was never listed.
        let done = run(&["sync", "--database-url", club.url(), "--directory-file", file.to_str().unwrap()]);
        assert_eq!(done.0, 0, "{done:?}");
        assert_eq!(browser.who().as_deref(), Some("zoe"));
        // Whoever has the same address at another provider's account is somebody else.
        google("2", "zoe@club.example", json!(true));
        let mut other = Browser::new(&club);
        sign_in(&mut other, &issuer).expect(302);
        assert!(other.who().is_some_and(|name| name.starts_with("zoe-") && name.len() == 10));
    });
}

#[test]
fn the_provider_says_who_is_an_admin() {
    both(|backend| {
        let issuer = Issuer::start();
        let club = start(backend, &issuer.options(), &["--privileged-claim", "groups=admins"]);
        for (groups, expected) in [(json!(["admins"]), true), (json!(["members"]), false), (json!("admins"), true)] {
            let user = json!({"sub": "subject-of-bob", "preferred_username": BOB, "groups": groups});
            issuer.set(|now| now.user = user);
            let mut browser = Browser::new(&club);
            sign_in(&mut browser, &issuer).expect(302);
            let answer = browser.send("POST", "/api/v1/users/sync", PUBLIC);
            // An admin may ask for it, although there is no directory.
            assert_eq!(answer.status, if expected { 503 } else { 403 });
        }
    });
}

#[test]
fn a_plain_provider_and_a_named_one_work_too() {
    both(|backend| {
        let issuer = Issuer::start();
        let at = |path: &str| format!("{}{path}", issuer.address);
        let addresses = [at("/authorize"), at(TOKEN), at(USER)];
        let mut options = vec!["--provider", "discord", "--discord-server", "7", "--public-url", PUBLIC];
        options.extend(["--oauth-client-id", CLIENT, "--oauth-client-secret", SECRET]);
        let names = ["--oauth-authorize-url", "--oauth-token-url", "--oauth-user-url"];
        options.extend(names.iter().zip(&addresses).flat_map(|(name, address)| [*name, address.as_str()]));
        let club = Club::start_empty(backend, &options);
        issuer.set(|now| now.user = json!({"id": "80351", "username": "nelly", "global_name": "Nelly"}));
        refused(&club, &issuer, 403, "not-a-member");
        issuer.set(|now| drop(now.more.insert("/me/guilds/7/member", json!({"roles": []}))));
        let mut browser = Browser::new(&club);
        sign_in(&mut browser, &issuer).expect(302);
        assert_eq!(browser.who().as_deref(), Some("nelly"));
    });
}

#[test]
fn a_session_of_the_booking_service_is_worth_nothing_here() {
    let issuer = Issuer::start();
    issuer.is_now("subject-of-bob", BOB);
    let club = issuer.club(Backend::Sqlite);
    let mut browser = Browser::new(&club);
    sign_in(&mut browser, &issuer).expect(302);
    let session = browser.session().unwrap();
    let other = club.anonymous().header("cookie", &format!("session={session}"));
    other.get("/api/v1/users/me").refused(401, "not-signed-in");
    let bearer = club.anonymous().header("authorization", &format!("Bearer {session}"));
    bearer.get("/api/v1/users/me").refused(401, "bad-credentials");
    // Nor is a header that only a proxy may send.
    club.by(ALICE).get("/api/v1/users/me").refused(401, "not-signed-in");
}

#[test]
fn who_joins_at_the_booking_service_is_known_here() {
    both(|backend| {
        let (issuer, booking) = (Issuer::start(), Booking::start());
        let group = |name: &str, number: u8| json!({"id": Uuid::from_u128(number.into()), "name": name, "members": [BOB], "admins": [CAROL]});
        booking.write_directory(&[ALICE, BOB, CAROL], &json!([group("graphics", 1), group("sound", 2)]));
        booking.run_command(&["sync"]);
        let options = [issuer.options(), booking.options()].concat();
        let club = Club::start_empty(backend, &options.iter().map(String::as_str).collect::<Vec<_>>());
        let names = |path: &str| -> Vec<String> {
            let list = club.anonymous().get(path).expect(200).json();
            list.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(names("/api/v1/users"), [ALICE, BOB, CAROL]);
        // Without the group of all members.
        assert_eq!(names("/api/v1/groups"), ["graphics", "sound"]);
        issuer.is_now("subject-of-erik", "erik");
        refused(&club, &issuer, 403, "not-a-member");
        booking.write_directory(&[ALICE, BOB, CAROL, "erik"], &json!([]));
        booking.run_command(&["sync"]);
        booking.run_command(&["user", "grant-privilege", "erik"]);
        // The refusal of a moment ago does not keep him out.
        let mut erik = Browser::new(&club);
        sign_in(&mut erik, &issuer).expect(302);
        assert_eq!(erik.who().as_deref(), Some("erik"));
        assert_eq!(user_named(&club, "erik"), Some((id("erik"), true, true)));
        assert_eq!(names("/api/v1/groups"), ["graphics", "sound"], "left by all");
        // Who is privileged there is an admin here.
        let by_erik = || club.anonymous().header("cookie", &format!("portfolio_session={}", erik.session().unwrap()));
        by_erik().get("/api/v1/audit").expect(200);
        issuer.is_now("subject-of-bob", BOB);
        let mut bob = Browser::new(&club);
        sign_in(&mut bob, &issuer).expect(302);
        let by_bob = club.anonymous().header("cookie", &format!("portfolio_session={}", bob.session().unwrap()));
        by_bob.get("/api/v1/audit").expect(403);
        issuer.is_now("subject-of-stranger", "stranger");
        refused(&club, &issuer, 403, "not-a-member");
    });
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    for (options, fault) in [
        (&["--provider", "google"][..], "--oauth-client-id is needed"),
        (&["--provider", "google", "--oauth-client-id", "x"], "--secret-key is needed"),
        (
            &["--provider", "google", "--oauth-client-id", "x", "--secret-key", KEY],
            "everybody can have an account of this provider",
        ),
        (
            &[
                ["--provider", "google", "--oauth-client-id", "x", "--secret-key", KEY].as_slice(),
                &["--member-domains", "club.example", "--admins", "alice"],
            ]
            .concat(),
            "--admins: everybody may choose a name at this provider",
        ),
        (&["--oidc-issuer", "https://sso.example"], "--oidc-issuer needs --oidc-audience"),
        (&["--oidc-audience", "x"], "--oidc-audience, --jwks-url and --admin-claim need --oidc-issuer"),
    ] {
        let (status, said) = run(&[&["check-config", "--public-url", PUBLIC], options].concat());
        assert!(status == 78 && said.contains(fault), "{options:?}: {said}");
    }
}

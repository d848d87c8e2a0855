//! Rate limits, and the caller for whom a request counts. The clock is stopped, so that no limit recovers by itself.

use crate::harness::Backend::{self, Postgres, Sqlite};
use std::thread;

use booking_service::{auth::ApiToken, schema::sessions};
use chrono::TimeDelta;
use diesel::prelude::*;
use rstest::rstest;
use serde_json::json;
use service_kit::{
    credentials,
    database::types::{DbTimestamp, DbUuid},
    with_connection,
};

use crate::{
    front_page::forms::send,
    harness::{Answer, BOB, CAROL, Client, Club, DAVE, id},
    sign_in::{Browser, HTML},
    tokens::{by_token, make_token},
};

const VERSION: &str = "/api/version";
const ME: &str = "/api/users/me";

/// Asserts that an answer is a 429 with this `Retry-After`.
#[track_caller]
fn limited(answer: Answer, seconds: u32) {
    assert_eq!(answer.header("retry-after"), Some(&*seconds.to_string()), "{answer:?}");
    answer.refused(429, "rate-limited");
}

/// An anonymous request that a proxy forwards.
fn forwarded<'club>(club: &'club Club, addresses: &str) -> Client<'club> {
    club.anonymous().header("x-forwarded-for", addresses)
}

/// The path of a member's feed.
fn feed(club: &Club, member: &str) -> String {
    let secret = club.by(member).get("/api/users/me/ical").expect(200).json()["secret"].as_str().unwrap().to_owned();
    format!("/api/ical/v1/{}{secret}", id(member))
}

#[rstest]
fn anonymous_requests_count_for_the_address(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start_with(backend, &["--rate-limit", "3"]);
    for path in [VERSION, "/openapi.json", "/nowhere"] {
        assert!(club.anonymous().get(path).status < 429);
    }
    for path in [VERSION, "/openapi.json", "/nowhere", ME, "/docs/"] {
        limited(club.anonymous().get(path), 20);
    }
    let head = club.anonymous().send("HEAD", VERSION, None).expect(429);
    assert_eq!(head.header("retry-after"), Some("20"));
    limited(club.anonymous().post("/api/authParams", json!({})), 20);
    // Without a trusted proxy the header has no effect.
    limited(forwarded(&club, "198.51.100.7").get(VERSION), 20);
    for path in ["/livez", "/readyz", "/metrics"] {
        (0..10).for_each(|_| {
            club.anonymous().get(path).expect(200);
        });
    }
    // Signed-in users of the same address are not limited by it.
    club.by(BOB).get(ME).expect(200);
    club.clock.advance(TimeDelta::seconds(20));
    club.anonymous().get(VERSION).expect(200);
    limited(club.anonymous().get(VERSION), 20);
}

#[rstest]
fn a_trusted_proxy_says_whose_address_it_is(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start_with(backend, &["--rate-limit", "2", "--trusted-proxies", "127.0.0.1,10.0.0.0/8"]);
    for addresses in ["198.51.100.7", "203.0.113.1, 198.51.100.7", "203.0.113.2, 198.51.100.7, 10.0.0.1"] {
        let answer = forwarded(&club, addresses).get(VERSION);
        assert_eq!(answer.status, if addresses.ends_with("10.0.0.1") { 429 } else { 200 }, "{addresses}");
    }
    forwarded(&club, "198.51.100.8").get(VERSION).expect(200);
    for n in 0..3 {
        let answer = forwarded(&club, &format!("2001:db8:0:1::{n}")).get(VERSION);
        assert_eq!(answer.status, if n == 2 { 429 } else { 200 }, "one network of IPv6");
    }
    forwarded(&club, "2001:db8:0:2::1").get(VERSION).expect(200);
}

#[rstest]
fn all_sessions_and_tokens_of_a_user_count_together(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start_with(backend, &["--rate-limit", "20"]);
    let (mut one, mut two) = (Browser::new(&club), Browser::new(&club));
    one.sign_in(BOB);
    two.sign_in(BOB);
    let token = make_token(&club, BOB, "write");
    for _ in 0..6 {
        one.get(ME).expect(200);
        two.get(ME).expect(200);
        by_token(&club, &token).get(ME).expect(200);
    }
    club.by(BOB).get(ME).expect(200);
    limited(one.get(ME), 3);
    limited(two.get(ME), 3);
    limited(club.by(BOB).header("x-forwarded-for", "198.51.100.7").get(ME), 3);
    limited(by_token(&club, &token).post("/api/tags", json!({"name": "music"})), 3);
    assert_eq!(club.by(CAROL).get("/api/tags").expect(200).json(), json!([]), "nothing was done");
    (0..19).for_each(|_| {
        club.by(CAROL).get(ME).expect(200);
    });
    limited(club.by(CAROL).get(ME), 3);
    club.clock.advance(TimeDelta::seconds(3));
    one.get(ME).expect(200);
}

#[rstest]
fn refused_credentials_count_for_the_address_by_themselves(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start_with(backend, &["--rate-limit", "4"]);
    by_token(&club, "clubbooking_x_y").get(ME).refused(401, "bad-credentials");
    club.anonymous().header("authorization", "Basic x").get(ME).refused(401, "bad-credentials");
    cookie(&club, "guess").get(ME).refused(401, "bad-credentials");
    cookie(&club, "guess").get(ME).refused(401, "bad-credentials");
    for n in 0..3 {
        limited(by_token(&club, &format!("guess{n}")).get(ME), 15);
        limited(cookie(&club, &format!("guess{n}")).get(ME), 15);
    }
    // These paths do not check credentials, so the requests count as anonymous.
    for _ in 0..2 {
        cookie(&club, "guess").get(VERSION).expect(200);
        club.anonymous().get(&format!("/api/ical/v1/{}guess", id(BOB))).refused(404, "not-found");
    }
    limited(club.anonymous().get(VERSION), 15);
    club.by(BOB).get(ME).expect(200);
}

fn cookie<'club>(club: &'club Club, value: &str) -> Client<'club> {
    club.anonymous().header("cookie", &format!("session={value}"))
}

/// Sends requests with bad credentials until an address may not look up further ones, and returns their number.
fn exhaust(send: impl Fn(usize) -> Answer) -> usize {
    (0..1000)
        .find(|n| {
            let answer = send(*n);
            if answer.status == 429 {
                assert_eq!(answer.header("retry-after"), Some("1"));
                let problem = answer.refused(429, "rate-limited");
                assert!(problem["detail"].as_str().unwrap().contains("do not exist"), "{problem}");
                return true;
            }
            assert!(matches!(answer.status, 401 | 404), "{answer:?}");
            false
        })
        .unwrap()
}

#[rstest]
fn who_is_known_does_not_pay_for_the_guesses_of_others(#[values(Sqlite, Postgres)] backend: Backend) {
    let mut club = Club::start_with(backend, &["--rate-limit", "100000"]);
    let (token, carols) = (make_token(&club, BOB, "read"), feed(&club, CAROL));
    let all_are_served = |club: &Club| {
        club.by(BOB).get(ME).expect(200);
        by_token(club, &token).get(ME).expect(200);
        club.anonymous().get(&carols).expect(200);
    };
    all_are_served(&club);
    for kind in 0..3 {
        let refused = exhaust(|n| match kind {
            0 => cookie(&club, &format!("guess{n}")).get(ME),
            1 => {
                let token = ApiToken::generate("clubbooking").unwrap();
                by_token(&club, token.reveal()).get(ME)
            }
            _ => club.anonymous().get(&format!("/api/ical/v1/{}guess{n}", id(BOB))),
        });
        assert!((90..300).contains(&refused), "{refused}");
        all_are_served(&club);
        club.clock.advance(TimeDelta::seconds(30));
    }
    // Requests without a credential and from other addresses are not concerned either.
    exhaust(|n| cookie(&club, &format!("another{n}")).get(ME));
    club.anonymous().get(VERSION).expect(200);
    // Nor is whoever signs in there, or makes a token, although the neighbour goes on.
    let mut browser = Browser::new(&club);
    let page = browser.begin();
    let callback = browser.choose(&page, CAROL);
    browser.get(&callback).expect(302);
    let fresh = make_token(&club, BOB, "read");
    let form = [("name", "bot"), ("scope", "read"), ("expiresAt", "")];
    let form = form.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let page = send(&club, BOB, "/me/tokens", &form).expect(201).text();
    let shown = page.split('"').find(|text| text.starts_with("clubbooking_")).unwrap();
    for token in [fresh.as_str(), shown] {
        exhaust(|n| cookie(&club, &format!("{token}{n}")).get(ME));
        by_token(&club, token).get(ME).expect(200);
    }
    exhaust(|n| cookie(&club, &format!("last{n}")).get(ME));
    browser.get(ME).expect(200);
    // A second later somebody who is not known may try again.
    club.clock.advance(TimeDelta::seconds(1));
    club.by(DAVE).get(ME).expect(200);
    // A session that ends is refused like any other.
    club.by(BOB).post("/api/logout", json!({})).expect(204);
    club.by(BOB).get(ME).refused(401, "bad-credentials");
    // After a restart nobody is known.
    club.stop_all();
    club.start_another();
    club.by(CAROL).get(ME).expect(200);
}

#[rstest]
fn a_stale_cookie_harms_nobody(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start_with(backend, &["--rate-limit", "100000"]);
    for _ in 0..500 {
        cookie(&club, "stale").get(ME).refused(401, "bad-credentials");
    }
    club.by(BOB).get(ME).expect(200);
    cookie(&club, "another").get(ME).refused(401, "bad-credentials");
}

#[rstest]
fn a_whole_club_behind_one_address_is_served_after_a_restart(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start_with(backend, &["--rate-limit", "1200"]);
    let secrets: Vec<_> = (0..500).map(|number| format!("browser-{number}")).collect();
    add_sessions(&club, BOB, &secrets);
    // None of them is known.
    let club = &club;
    thread::scope(|scope| {
        for secrets in secrets.chunks(secrets.len() / 8 + 1) {
            scope.spawn(move || {
                for secret in secrets {
                    cookie(club, secret).get(ME).expect(200);
                }
            });
        }
    });
}

/// Adds a session for each secret.
fn add_sessions(club: &Club, member: &str, secrets: &[String]) {
    let (now, later) = (club.clock.now(), club.clock.now().plus(TimeDelta::days(1)));
    let row = |secret: &String| {
        (
            sessions::id.eq(DbUuid::new()),
            sessions::token_hash.eq(credentials::hash(secret)),
            sessions::user_id.eq(id(member)),
            sessions::created_at.eq(DbTimestamp(now)),
            sessions::expires_at.eq(DbTimestamp(later)),
            sessions::last_used_at.eq(DbTimestamp(now)),
        )
    };
    let rows: Vec<_> = secrets.iter().map(row).collect();
    with_connection!(&mut club.connect(), c => diesel::insert_into(sessions::table).values(rows).execute(c)).unwrap();
}

#[rstest]
fn sign_ins_are_limited_by_address(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start_with(backend, &["--sign-in-rate-limit", "3"]);
    let mut browser = Browser::new(&club);
    let page = browser.begin();
    let callback = browser.choose(&page, BOB);
    browser.get("/api/callback?code=x").expect(400);
    browser.begin();
    limited(club.anonymous().post("/api/authParams", json!({})), 20);
    let answer = browser.get(&callback);
    assert_eq!(answer.header("set-cookie"), None, "the sign-in can still be finished");
    limited(answer, 20);
    club.anonymous().get(VERSION).expect(200);
    club.by(BOB).get(ME).expect(200);
    club.clock.advance(TimeDelta::minutes(1));
    browser.sign_in(BOB);
}

#[rstest]
fn a_browser_whose_sign_in_has_to_wait_sees_a_page(#[values(Sqlite, Postgres)] backend: Backend) {
    for option in ["--sign-in-rate-limit", "--rate-limit"] {
        let club = Club::start_with(backend, &[option, "3"]);
        let mut browser = Browser { accept: HTML, ..Browser::new(&club) };
        let page = browser.begin();
        let callback = browser.choose(&page, BOB);
        while club.anonymous().post("/api/authParams", json!({})).status == 201 {}
        let answer = browser.get(&callback).expect(429);
        assert_eq!(answer.header("retry-after"), Some("20"));
        assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
        assert_eq!((answer.header("cache-control"), answer.header("set-cookie")), (Some("no-store"), None));
        assert!(answer.header("content-security-policy").unwrap().contains("frame-ancestors 'none'"));
        let page = answer.text();
        // The same address again.
        assert!(page.contains("Too many requests") && page.contains("<a href=\"\">Try again</a>"), "{page}");
        limited(Browser { accept: "*/*", ..browser.clone() }.get(&callback), 20);
        club.clock.advance(TimeDelta::minutes(1));
        browser.get(&callback).expect(302);
        assert_eq!(browser.who().as_deref(), Some(BOB));
    }
}

#[rstest]
fn sign_ins_through_a_proxy_are_limited_by_client(#[values(Sqlite, Postgres)] backend: Backend) {
    let urls = ["a", "t", "u"].map(|path| format!("https://sso.example/{path}"));
    let provider = ["--oauth-authorize-url", &urls[0], "--oauth-token-url", &urls[1], "--oauth-user-url", &urls[2]];
    let limit = ["--sign-in-rate-limit", "3", "--trusted-proxies", "127.0.0.1", "--oauth-client-id", "club"];
    let club = Club::start_with(backend, &[&limit[..], &provider].concat());
    for _ in 0..3 {
        club.anonymous().post("/api/authParams", json!({})).expect(201);
    }
    limited(club.anonymous().post("/api/authParams", json!({})), 20);
    forwarded(&club, "198.51.100.7").post("/api/authParams", json!({})).expect(201);
}

#[rstest]
fn a_rate_limited_sign_in_can_be_retried(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start_with(backend, &["--rate-limit", "4"]);
    let mut browser = Browser::new(&club);
    let page = browser.begin();
    let callback = browser.choose(&page, BOB);
    (0..2).for_each(|_| {
        club.anonymous().get(VERSION).expect(200);
    });
    let answer = browser.get(&callback);
    assert_eq!(answer.header("set-cookie"), None, "the sign-in can still be finished");
    limited(answer, 15);
    club.clock.advance(TimeDelta::minutes(1));
    browser.get(&callback).expect(302);
    assert_eq!(browser.who().as_deref(), Some(BOB));
}

#[rstest]
fn feeds_count_for_their_owners(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start_with(backend, &["--feed-rate-limit", "2"]);
    let (bobs, carols) = (feed(&club, BOB), feed(&club, CAROL));
    club.anonymous().get(&bobs).expect(200);
    club.anonymous().get(&format!("{bobs}?q=")).expect(200);
    limited(club.anonymous().get(&bobs), 30);
    club.anonymous().get(&carols).expect(200);
    club.anonymous().get(VERSION).expect(200);
    club.by(BOB).get(ME).expect(200);
}

#[rstest]
fn a_feed_with_its_secret_does_not_count_for_the_address(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start_with(backend, &["--rate-limit", "2"]);
    let feed = feed(&club, BOB);
    (0..5).for_each(|_| {
        club.anonymous().get(&feed).expect(200);
    });
    club.anonymous().get(VERSION).expect(200);
}

#[rstest]
fn a_page_of_an_allowed_site_may_read_that_it_has_to_wait(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start_with(backend, &["--rate-limit", "1", "--allowed-origins", "https://app.example"]);
    let page = |client: Client<'_>| client.header("origin", "https://app.example").get(ME);
    page(club.anonymous()).expect(401);
    page(club.by(BOB)).expect(200);
    for answer in [page(club.anonymous()), page(club.by(BOB))] {
        assert_eq!(answer.header("access-control-allow-origin"), Some("https://app.example"));
        let exposed = answer.header("access-control-expose-headers").unwrap().to_lowercase();
        assert!(exposed.contains("retry-after"), "{exposed}");
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        limited(answer, 60);
    }
}

//! Sign-in, sessions and API tokens.

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;
use std::{
    collections::HashSet,
    fmt::Write,
    sync::{OnceLock, RwLock},
};

use booking_service::schema::{sessions, spent_logins, users};
use chrono::TimeDelta;
use club_sign_in::sessions::delete_expired;
use diesel::prelude::*;
use serde_json::json;
use service_kit::{
    credentials,
    database::types::{DbTimestamp, DbUuid},
    with_connection,
};

use crate::{
    harness::{ALICE, Answer, BOB, CAROL, Club, id},
    issuer::Issuer,
    process::until,
    real_sign_in::real::Jar,
    tokens::{by_token, make_token},
};

pub use crate::front_page::forms::HTML;

/// The path to which the provider redirects.
pub const CALLBACK: &str = "/api/callback";

/// The link of the page of a failed sign-in.
pub const SIGN_IN_AGAIN: &str = "<a class=\"button primary\" href=\"/sign-in?to=%2F\">Sign in again</a>";

/// Something that keeps cookies and says where its writes come from, as browsers do.
#[derive(Clone)]
pub struct Browser<'club> {
    pub club: &'club Club,
    pub service: usize,
    pub accept: &'static str,
    pub jar: Jar,
}

impl<'club> Browser<'club> {
    pub fn new(club: &'club Club) -> Self {
        Self { club, service: 0, accept: "*/*", jar: Jar::default() }
    }

    /// A browser with this session, which may be none.
    pub fn with_session(club: &'club Club, session: &str) -> Self {
        let mut browser = Self::new(club);
        browser.jar.keep([format!("session={session}")].iter().map(String::as_str));
        browser
    }

    /// Sends a request, and does not look at the cookies of the answer yet.
    pub fn ask(&self, method: &str, path: &str) -> Answer {
        let cookies = format!("other=1; {}", self.jar.cookies(path.split('?').next().unwrap()));
        let mut client =
            self.club.anonymous().at(self.service).header("accept", self.accept).header("cookie", &cookies);
        if method != "GET" {
            client = client.header("origin", &self.club.config.server.public_origin());
        }
        client.send(method, path, None)
    }

    pub fn send(&mut self, method: &str, path: &str) -> Answer {
        let answer = self.ask(method, path);
        self.keep(&answer);
        answer
    }

    /// Keeps the cookies of an answer.
    pub fn keep(&mut self, answer: &Answer) {
        self.jar.keep(set_cookies(answer).into_iter());
    }

    /// The cookies that are sent with every request, as `name=value`.
    pub fn cookies(&self) -> Vec<String> {
        self.jar.cookies("/").split("; ").filter(|cookie| !cookie.is_empty()).map(str::to_owned).collect()
    }

    /// The session, good or bad.
    pub fn session(&self) -> Option<String> {
        self.cookies().iter().find_map(|cookie| cookie.strip_prefix("session=").map(str::to_owned))
    }

    /// The names of the cookies of sign-ins that have begun.
    pub fn pending(&self) -> Vec<String> {
        let names = self.cookies().into_iter().map(|cookie| cookie.split('=').next().unwrap().to_owned());
        names.filter(|name| name.starts_with("login_")).collect()
    }

    pub fn get(&mut self, path: &str) -> Answer {
        self.send("GET", path)
    }

    /// Begins a sign-in, and answers the path of the page to choose on.
    pub fn begin(&mut self) -> String {
        let answer = self.send("POST", "/api/authParams").expect(201);
        assert!(answer.header("set-cookie").unwrap().starts_with("session=login."), "{answer:?}");
        let url = answer.json()["url"].as_str().unwrap().to_owned();
        let path = url.strip_prefix(self.club.origin(self.service)).expect("an address by which the browser came");
        path.to_owned()
    }

    /// Chooses a member on the page, and answers the path of the callback.
    pub fn choose(&mut self, page: &str, member: &str) -> String {
        let page = self.get(page).expect(200).text();
        let links: Vec<_> = page.split("<a href=\"").skip(1).collect();
        let link = links.iter().find(|link| link.contains(&format!("@{member}<"))).expect("the member is listed");
        link.split('"').next().unwrap().replace("&amp;", "&")
    }

    pub fn sign_in(&mut self, member: &str) {
        let page = self.begin();
        let callback = self.choose(&page, member);
        self.get(&callback).expect(302);
    }

    /// The sign-in name of whoever is signed in here.
    pub fn who(&self) -> Option<String> {
        let answer = self.clone().get("/api/users/me");
        (answer.status == 200).then(|| answer.json()["name"].as_str().unwrap().to_owned())
    }
}

/// Begins a sign-in with a provider, and answers the address to which the browser goes.
pub fn begin(browser: &mut Browser) -> String {
    let answer = browser.send("POST", "/api/authParams").expect(201);
    assert!(answer.header("set-cookie").unwrap().starts_with("session=login."), "{answer:?}");
    answer.json()["url"].as_str().unwrap().to_owned()
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

pub fn set_state(club: &Club, member: &str, state: i16) {
    diesel::update(users::table.find(id(member))).set(users::state.eq(state)).execute(&mut club.connect()).unwrap();
}

#[rstest]
fn a_browser_signs_in_and_finds_itself_at_the_front_end(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut browser = Browser::new(&club);
    let page = browser.begin();
    assert_eq!(browser.who(), None);
    let shown = browser.get(&page).expect(200);
    assert_eq!(shown.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(shown.header("cache-control"), Some("no-store"));
    let callback = browser.choose(&page, BOB);
    let answer = browser.get(&callback).expect(302);
    assert_eq!(answer.header("location"), Some("/callback"));
    assert!(answer.body.is_empty());
    assert_eq!(browser.who().as_deref(), Some(BOB));
    assert!(browser.get("/callback").expect(200).text().contains("You are signed in as BOB"));
    assert!(Browser::new(&club).get("/callback").expect(200).text().contains("You are not signed in"));
}

#[rstest]
fn the_cookie_is_what_the_contract_says(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut browser = Browser::new(&club);
    // To a program and to a browser.
    for begun in [club.anonymous().post("/api/authParams", json!({})), browser.send("POST", "/api/authParams")] {
        let begun = begun.expect(201);
        let set = set_cookies(&begun);
        assert!(set.len() == 2 && set[0].starts_with("session=login.") && set[1].starts_with("login_"), "{set:?}");
        for part in ["; HttpOnly", "; SameSite=Lax", "; Path=/", "; Max-Age=600", "; Expires="] {
            assert!(set.iter().all(|cookie| cookie.contains(part)), "{part} is not in {set:?}");
        }
    }
    let page = browser.begin();
    let callback = browser.choose(&page, BOB);
    let answer = browser.get(&callback).expect(302);
    let cookie = answer.header("set-cookie").unwrap();
    for part in ["; HttpOnly", "; SameSite=Lax", "; Path=/", "; Max-Age=2592000", "; Expires="] {
        assert!(cookie.contains(part), "{part} is not in {cookie}");
    }
    assert!(cookie.starts_with("session=") && !cookie.contains("Secure"), "{cookie}");
    let expires = cookie.split("Expires=").nth(1).unwrap().split(';').next().unwrap();
    let expires = chrono::DateTime::parse_from_rfc2822(expires).unwrap().timestamp();
    let due = club.clock.now().utc().timestamp() + 30 * 86_400;
    assert!((due - 60..=due).contains(&expires), "{cookie}");
}

#[rstest]
fn sessions_are_kept_as_hashes(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut browser = Browser::new(&club);
    browser.sign_in(BOB);
    let secret = browser.session().unwrap();
    assert_eq!(secret.len(), 43);
    let kept: Vec<Vec<u8>> = sessions::table
        .filter(sessions::user_id.eq(id(BOB)))
        .select(sessions::token_hash)
        .load(&mut club.connect())
        .unwrap();
    assert!(kept.contains(&credentials::hash(&secret)));
    assert!(kept.iter().all(|kept| kept.len() == 32));
}

#[rstest]
fn one_address_is_enough_in_development(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut browser = Browser { accept: HTML, ..Browser::new(&club) };
    let callback = browser.choose("/dev/sign-in", CAROL);
    assert_eq!((browser.pending().len(), browser.session()), (1, None));
    browser.get(&callback).expect(302);
    assert_eq!(browser.who().as_deref(), Some(CAROL));
    assert_eq!(browser.pending().len(), 0);
}

#[rstest]
fn the_page_lists_active_users_by_display_name_escaped(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let named = |member: &str, name: &str| {
        let user = users::table.find(id(member));
        diesel::update(user).set(users::display_name.eq(name)).execute(&mut club.connect()).unwrap();
    };
    named(ALICE, "Zoë <script>alert('x')</script> & \"co\"");
    named(CAROL, "Aaron");
    let page = Browser::new(&club).get("/dev/sign-in").expect(200).text();
    assert!(!page.contains("<script"), "{page}");
    // As the text of a link: the sealed codes in the addresses may contain any word.
    let at = |text: &str| page.find(&format!(">{text}")).unwrap_or_else(|| panic!("{text} is not in {page}"));
    assert!(at("Aaron") < at("BOB") && at("BOB") < at("DAVE") && at("DAVE") < at("Zoë &lt;script&gt;"));
    assert!(!page.contains(">SUSAN"));
    // And so does the page that greets.
    let mut browser = Browser::new(&club);
    browser.sign_in(ALICE);
    assert!(!browser.get("/callback").expect(200).text().contains("<script"));
}

#[rstest]
fn a_bot_reads_the_cookie_from_both_answers(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let begun = club.anonymous().post("/api/authParams", json!({})).expect(201);
    let cookie = |answer: &Answer| {
        let cookie = answer.header("set-cookie").unwrap();
        assert!(cookie.starts_with("session=") && cookie.contains("; Path=/;"), "{cookie}");
        cookie.split(';').next().unwrap().to_owned()
    };
    let url = begun.json()["url"].as_str().unwrap().to_owned();
    let callback = Browser::new(&club).choose(url.strip_prefix(club.origin(0)).unwrap(), BOB);
    // It keeps no other.
    let answer = club.anonymous().header("cookie", &cookie(&begun)).get(&callback).expect(302);
    club.anonymous().header("cookie", &cookie(&answer)).get("/api/users/me").expect(200);
}

#[rstest]
fn a_sign_in_can_be_finished_once(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut browser = Browser::new(&club);
    let page = browser.begin();
    let callback = browser.choose(&page, BOB);
    let again = browser.clone();
    browser.get(&callback).expect(302);
    let mut replay = again.clone();
    let answer = replay.get(&callback);
    ends_one_sign_in(&answer);
    answer.refused(400, "bad-login");
    assert_eq!(replay.who(), None);
    // A reload of the callback by the browser that has its session takes nothing from it.
    let reloaded = browser.get(&callback);
    assert_eq!(reloaded.header("set-cookie"), None);
    reloaded.refused(400, "bad-login");
    assert_eq!(browser.who().as_deref(), Some(BOB));
    // Not even with a new code.
    let another = again.clone().choose(&page, CAROL);
    again.clone().get(&another).refused(400, "bad-login");
}

#[rstest]
fn a_sign_in_expires_after_ten_minutes_and_a_code_after_two(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut browser = Browser::new(&club);
    let page = browser.begin();
    let old = browser.choose(&page, BOB);
    club.clock.advance(TimeDelta::minutes(3));
    browser.clone().get(&old).refused(400, "bad-login");
    club.clock.advance(TimeDelta::minutes(6));
    let fresh = browser.choose(&page, BOB);
    club.clock.advance(TimeDelta::seconds(90));
    browser.clone().get(&fresh).refused(400, "bad-login");
    let fresh = browser.choose(&page, BOB);
    browser.clone().get(&fresh).refused(400, "bad-login");
    browser.sign_in(BOB);
}

#[rstest]
fn only_the_browser_that_began_can_finish(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut attacker = Browser::new(&club);
    let page = attacker.begin();
    let callback = attacker.choose(&page, BOB);
    // Login CSRF: a victim who is sent to the attacker's callback, with no sign-in, one of their own, or a session.
    let mut victim = Browser::new(&club);
    victim.get(&callback).refused(400, "bad-login");
    victim.begin();
    victim.get(&callback).refused(400, "bad-login");
    // Who is signed in already is led to the front end, as who they are.
    victim.sign_in(CAROL);
    let answer = victim.get(&callback).expect(302);
    assert_eq!((answer.header("location"), set_cookies(&answer).len()), (Some("/callback"), 0));
    assert_eq!(victim.who().as_deref(), Some(CAROL));
    attacker.get(&callback).expect(302);
    victim.get(&callback).refused(400, "bad-login");
    assert_eq!(victim.who().as_deref(), Some(CAROL));
}

#[rstest]
fn whatever_does_not_fit_is_a_bad_login(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut browser = Browser::new(&club);
    let page = browser.begin();
    let good = browser.choose(&page, BOB);
    let (code, state) = good.split_once('?').unwrap().1.split_once('&').unwrap();
    let mut other = browser.clone();
    let other_page = other.begin();
    let (other_code, other_state) = {
        let other = other.choose(&other_page, CAROL);
        let (code, state) = other.split_once('?').unwrap().1.split_once('&').unwrap();
        (code.to_owned(), state.to_owned())
    };
    for query in [
        String::new(),
        code.to_owned(),
        format!("{code}&state="),
        format!("{code}&state=made-up"),
        format!("{code}&{other_state}"),
        format!("{code}&{state}x"),
        format!("{code}&{state}&{state}"),
    ] {
        // Anybody may send a browser there, so it ends nothing.
        let answer = browser.get(&format!("/api/callback?{query}"));
        assert!(set_cookies(&answer).is_empty(), "{query}: {answer:?}");
        answer.refused(400, "bad-login");
    }
    for query in [
        state.to_owned(),
        format!("{other_code}&{state}"),
        format!("{code}x&{state}"),
        format!("code=&{state}"),
        format!("code=%00%FF&{state}"),
        format!("error=access_denied&{state}"),
    ] {
        let answer = browser.ask("GET", &format!("/api/callback?{query}"));
        ends_one_sign_in(&answer);
        answer.refused(400, "bad-login");
    }
    let begun = browser.cookies().pop().unwrap();
    let (name, sealed) = begun.split_once('=').unwrap();
    let reversed: String = sealed.chars().rev().collect();
    for cookie in [
        format!("{begun}x"),
        format!("{name}="),
        format!("{name}={reversed}"),
        "session=login.".to_owned(),
        format!("session=login.{reversed}"),
    ] {
        club.anonymous().header("cookie", &cookie).get(&good).refused(400, "bad-login");
    }
    // None of this has used it up.
    browser.get(&good).expect(302);
}

#[rstest]
fn a_browser_is_shown_a_page_that_echoes_nothing(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut browser = Browser { accept: HTML, ..Browser::new(&club) };
    let answer = browser.get("/api/callback?code=EchoedCode&state=%3Cscript%3E").expect(400);
    assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(answer.header("content-security-policy").unwrap().contains("frame-ancestors 'none'"));
    let page = answer.text();
    assert!(page.contains(SIGN_IN_AGAIN), "{page}");
    assert!(!page.contains("EchoedCode") && !page.contains("script"), "{page}");
    for accept in ["application/json", "application/json, text/html;q=0.9", "*/*", "text/html;q=0.1, */*"] {
        let mut program = Browser { accept, ..Browser::new(&club) };
        program.get("/api/callback?code=a&state=b").refused(400, "bad-login");
    }
}

#[rstest]
fn who_is_not_active_cannot_sign_in(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut browser = Browser::new(&club);
    let page = browser.begin();
    let callback = browser.choose(&page, BOB);
    for state in [0, 2] {
        set_state(&club, BOB, state);
        browser.clone().get(&callback).refused(403, "account-inactive");
        let shown = Browser { accept: HTML, ..browser.clone() }.get(&callback).expect(403);
        ends_one_sign_in(&shown);
        assert!(shown.text().contains(SIGN_IN_AGAIN));
    }
}

#[rstest]
fn each_sign_in_makes_a_new_session_and_ends_the_one_before(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut browser = Browser::new(&club);
    browser.sign_in(BOB);
    let old = browser.clone();
    browser.begin();
    // One given up, one finished.
    let page = browser.begin();
    assert_eq!(old.who().as_deref(), Some(BOB));
    let callback = browser.choose(&page, CAROL);
    assert_eq!(old.who().as_deref(), Some(BOB));
    browser.get(&callback).expect(302);
    assert_ne!(browser.session(), old.session());
    assert_eq!(browser.who().as_deref(), Some(CAROL));
    assert_eq!(old.who(), None);
    // Fixation: a session that somebody planted is never adopted.
    let mut planted = Browser::with_session(&club, "planted");
    planted.sign_in(BOB);
    assert_ne!(planted.session().as_deref(), Some("planted"));
    assert_eq!(Browser::with_session(&club, "planted").who(), None);
    // Others of the same user stay.
    let (mut here, mut there) = (Browser::new(&club), Browser::new(&club));
    here.sign_in(BOB);
    there.sign_in(BOB);
    assert_eq!(here.who().as_deref(), Some(BOB));
}

/// Begins so many sign-ins in one browser, and answers the paths of their callbacks.
fn begin_many(browser: &mut Browser, number: usize, member: &str) -> Vec<String> {
    let pages: Vec<_> = (0..number).map(|_| browser.begin()).collect();
    pages.iter().map(|page| browser.choose(page, member)).collect()
}

#[rstest]
fn of_overlapping_sign_ins_the_first_callback_wins_and_the_others_lead_to_the_front_end(
    #[values(Sqlite, Postgres)] backend: Backend,
) {
    let club = Club::start(backend);
    let mut browser = Browser::with_session(&club, "ended");
    let callbacks = begin_many(&mut browser, 5, BOB);
    assert_eq!((browser.pending().len(), browser.who()), (5, None));
    browser.get(&callbacks[2]).expect(302);
    let session = browser.session();
    assert_eq!(browser.who().as_deref(), Some(BOB));
    for (n, callback) in callbacks.iter().enumerate().filter(|(n, _)| *n != 2) {
        let answer = browser.get(callback).expect(302);
        assert_eq!(answer.header("location"), Some("/callback"), "{n}");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{n}");
        ends_one_sign_in(&answer);
    }
    assert_eq!((browser.pending().len(), browser.session()), (0, session));
    let bobs = sessions::table.filter(sessions::user_id.eq(id(BOB))).filter(sessions::revoked_at.is_null());
    let live: i64 = bobs.count().get_result(&mut club.connect()).unwrap();
    // And the one that every member of these tests has.
    assert_eq!(live, 2);
    // Also once more, but not the one that has made the session.
    browser.get(&callbacks[0]).expect(302);
    browser.get(&callbacks[2]).refused(400, "bad-login");
    assert_eq!(browser.who().as_deref(), Some(BOB));
}

#[rstest]
fn a_page_about_one_of_overlapping_sign_ins_waits_for_the_others(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut browser = Browser { accept: HTML, ..Browser::new(&club) };
    let callbacks = begin_many(&mut browser, 2, BOB);
    // As some providers do with the codes of a browser but the last one.
    let bad_code = callbacks[0].replace("&state=", "x&state=");
    let reload = |answer: &Answer| {
        let refresh = answer.header("refresh")?;
        // Without the code.
        let query = refresh.strip_prefix("2; url=").filter(|query| query.starts_with("?state=")).unwrap();
        Some(format!("/api/callback{query}"))
    };
    let first = reload(&browser.get(&bad_code).expect(400)).unwrap();
    let second = reload(&browser.get(&first).expect(400)).unwrap();
    let third = reload(&browser.get(&second).expect(400)).unwrap();
    assert_eq!(reload(&browser.get(&third).expect(400)), None);
    for made_up in ["4", "-1", "x", "18446744073709551615", "18446744073709551616"] {
        let made_up = first.replace("reload=1", &format!("reload={made_up}"));
        assert_eq!(reload(&browser.get(&made_up).expect(400)), None, "{made_up}");
    }
    let waiting = browser.clone();
    browser.get(&callbacks[1]).expect(302);
    for address in [&bad_code, &first, &third] {
        assert_eq!(browser.get(address).expect(302).header("location"), Some("/callback"));
    }
    // Nobody waits for one that was left alone, nor with a made-up state or without another sign-in.
    club.clock.advance(TimeDelta::seconds(31));
    assert_eq!(waiting.ask("GET", &bad_code).expect(400).header("refresh"), None);
    begin_many(&mut browser, 1, BOB);
    let made_up = browser.ask("GET", "/api/callback?code=x&state=made-up.x").expect(400);
    assert_eq!(made_up.header("refresh"), None);
    let mut alone = Browser { accept: HTML, ..Browser::new(&club) };
    let callback = begin_many(&mut alone, 1, BOB).remove(0).replace("&state=", "x&state=");
    assert_eq!(alone.get(&callback).expect(400).header("refresh"), None);
}

#[rstest]
fn a_sign_in_goes_on_when_the_session_of_the_first_has_ended(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut browser = Browser::new(&club);
    let callbacks = begin_many(&mut browser, 3, BOB);
    browser.get(&callbacks[0]).expect(302);
    browser.send("POST", "/api/logout").expect(204);
    browser.get(&callbacks[1]).expect(302);
    assert_eq!(browser.who().as_deref(), Some(BOB));
    // Ended from elsewhere: the browser still has the cookie.
    diesel::update(sessions::table)
        .set(sessions::revoked_at.eq(DbTimestamp(club.clock.now())))
        .execute(&mut club.connect())
        .unwrap();
    assert_eq!(browser.who(), None);
    browser.get(&callbacks[2]).expect(302);
    assert_eq!(browser.who().as_deref(), Some(BOB));
}

#[rstest]
fn a_sign_in_that_begins_late_does_not_replace_the_session(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut browser = Browser::with_session(&club, "ended");
    // Six at once, as a page does that learns from six requests that the session has ended.
    let begun: Vec<_> = std::thread::scope(|scope| {
        let begin = || browser.ask("POST", "/api/authParams").expect(201);
        let all: Vec<_> = (0..6).map(|_| scope.spawn(begin)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    browser.keep(&begun[0]);
    let path = |answer: &Answer| {
        let url = answer.json()["url"].as_str().unwrap().to_owned();
        url.strip_prefix(club.origin(0)).unwrap().to_owned()
    };
    let callback = browser.choose(&path(&begun[0]), BOB);
    browser.get(&callback).expect(302);
    // The other answers arrive only now.
    for answer in &begun[1..] {
        browser.keep(answer);
        assert_eq!(browser.who().as_deref(), Some(BOB));
    }
    let callback = browser.choose(&path(&begun[5]), BOB);
    browser.get(&callback).expect(302);
    assert_eq!(browser.who().as_deref(), Some(BOB));
}

#[rstest]
fn a_browser_has_at_most_ten_sign_ins_and_the_oldest_goes(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut browser = Browser::new(&club);
    // On the page of a development installation as well.
    let first = browser.choose("/dev/sign-in", BOB);
    let mut callbacks = begin_many(&mut browser, 9, BOB);
    assert_eq!(browser.pending().len(), 10);
    callbacks.extend(begin_many(&mut browser, 1, BOB));
    assert_eq!(browser.pending().len(), 10);
    browser.get(&first).refused(400, "bad-login");
    callbacks.push(browser.choose("/dev/sign-in", BOB));
    assert_eq!(browser.pending().len(), 10);
    browser.get(&callbacks[0]).refused(400, "bad-login");
    for callback in &callbacks[1..] {
        browser.get(callback).expect(302);
    }
    // The browser is signed in by now.
    let late = browser.get(&callbacks[0]).expect(302);
    assert_eq!((late.header("location"), set_cookies(&late).len()), (Some("/callback"), 0));
    // Those that have expired go as well.
    begin_many(&mut browser, 3, BOB);
    club.clock.advance(TimeDelta::minutes(11));
    browser.begin();
    assert_eq!(browser.pending().len(), 1);
}

#[rstest]
fn an_answer_sets_few_cookies_whatever_cookies_arrive(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    // Those that began at once know nothing of each other, so there are more than ten.
    let browser = Browser::new(&club);
    let begun: Vec<_> = (0..20).map(|_| browser.ask("POST", "/api/authParams").expect(201)).collect();
    let mut browser = browser;
    for answer in &begun {
        browser.keep(answer);
    }
    let stray: Vec<_> = (0..40).map(|n| format!("login_{n}=made-up")).collect();
    browser.jar.keep(stray.iter().map(String::as_str));
    let ours = |browser: &Browser| browser.pending().len() - stray.len();
    assert_eq!(ours(&browser), 20);
    while ours(&browser) > 10 {
        let before = ours(&browser);
        let answer = browser.ask("POST", "/api/authParams").expect(201);
        assert!((3..=5).contains(&set_cookies(&answer).len()), "{answer:?}");
        browser.keep(&answer);
        assert!(ours(&browser) < before);
    }
    // The newest are left, and the cookies of other programs.
    let path = |answer: &Answer| {
        let url = answer.json()["url"].as_str().unwrap().to_owned();
        url.strip_prefix(club.origin(0)).unwrap().to_owned()
    };
    let callback = browser.choose(&path(&begun[19]), BOB);
    let answer = browser.get(&callback).expect(302);
    assert_eq!(set_cookies(&answer).len(), 2);
    let callback = browser.clone().choose(&path(&begun[0]), BOB);
    assert_eq!(set_cookies(&browser.get(&callback)).len(), 0);
}

#[rstest]
fn a_callback_of_another_site_with_a_made_up_state_ends_nothing(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut browser = Browser::new(&club);
    let callback = begin_many(&mut browser, 1, BOB).remove(0);
    let attack = |browser: &Browser, cookies: &str| {
        let client = club.anonymous().header("sec-fetch-site", "cross-site").header("accept", browser.accept);
        let client = if cookies.is_empty() { client } else { client.header("cookie", cookies) };
        let answer = client.get("/api/callback?code=x&state=made-up").expect(400);
        assert!(set_cookies(&answer).is_empty(), "{answer:?}");
    };
    for accept in ["*/*", HTML] {
        let shown = Browser { accept, ..browser.clone() };
        // An image of the page brings no cookie along, a link does.
        attack(&shown, "");
        attack(&shown, &browser.jar.cookies("/api/callback"));
    }
    browser.get(&callback).expect(302);
    attack(&browser, &browser.jar.cookies("/api/callback"));
    assert_eq!(browser.who().as_deref(), Some(BOB));
}

#[rstest]
fn logout_ends_the_session_and_clears_the_cookie(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (mut browser, mut elsewhere) = (Browser::new(&club), Browser::new(&club));
    browser.sign_in(BOB);
    elsewhere.sign_in(BOB);
    let old = browser.clone();
    let answer = browser.send("POST", "/api/logout").expect(204);
    let cookie = answer.header("set-cookie").unwrap();
    assert!(cookie.starts_with("session=;") && cookie.contains("Max-Age=0") && cookie.contains("1970"), "{cookie}");
    assert_eq!(browser.session(), None);
    assert_eq!(old.who(), None);
    assert_eq!(elsewhere.who().as_deref(), Some(BOB));
    browser.send("POST", "/api/logout").refused(401, "not-signed-in");
    let token = make_token(&club, BOB, "write");
    by_token(&club, &token).post("/api/logout", json!({})).refused(403, "forbidden");
    // A program that keeps one cookie has a pending sign-in in its place, which is no session.
    let begun = club.anonymous().post("/api/authParams", json!({})).expect(201);
    let pending = begun.header("set-cookie").unwrap().split(';').next().unwrap();
    club.anonymous().header("cookie", pending).post("/api/logout", json!({})).refused(401, "bad-credentials");
    // To sign out does not end a sign-in that has begun.
    let page = elsewhere.begin();
    elsewhere.send("POST", "/api/logout").expect(204);
    let callback = elsewhere.choose(&page, BOB);
    elsewhere.get(&callback).expect(302);
}

#[rstest]
fn a_write_with_the_cookie_must_come_from_here(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let own = club.origin(0).to_owned();
    let write = |headers: &[(&str, &str)]| {
        let mut client = club.by(BOB);
        for (name, value) in headers {
            client = client.header(name, value);
        }
        client.post("/api/users/me/tokens", json!({"name": "x", "scope": "read"}))
    };
    write(&[]).expect(201);
    write(&[("origin", &own)]).expect(201);
    write(&[("origin", &own), ("sec-fetch-site", "same-origin")]).expect(201);
    write(&[("sec-fetch-site", "none")]).expect(201);
    write(&[("origin", "https://evil.example")]).refused(403, "cross-site-request");
    write(&[("origin", "null")]).refused(403, "cross-site-request");
    write(&[("sec-fetch-site", "cross-site")]).refused(403, "cross-site-request");
    write(&[("sec-fetch-site", "same-site")]).refused(403, "cross-site-request");
    write(&[("origin", &own), ("sec-fetch-site", "cross-site")]).refused(403, "cross-site-request");
    // Reading is not writing, and a token is not sent by a browser on its own.
    club.by(BOB).header("origin", "https://evil.example").get("/api/users/me").expect(200);
    let token = make_token(&club, BOB, "write");
    let elsewhere = by_token(&club, &token).header("origin", "https://evil.example");
    elsewhere.put("/api/users/me/ical", json!({})).expect(200);
    // Another site can neither end a session nor replace it by a sign-in.
    let evil = |path| club.by(BOB).header("origin", "https://evil.example").post(path, json!({}));
    evil("/api/logout").refused(403, "cross-site-request");
    evil("/api/authParams").refused(403, "cross-site-request");
    let anonymous = club.anonymous().header("sec-fetch-site", "cross-site");
    anonymous.post("/api/authParams", json!({})).refused(403, "cross-site-request");
}

#[rstest]
fn expired_sessions_are_forgotten_in_steps(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let (conn, now) = (&mut club.connect(), club.clock.now());
    let rows = |count: u16, prefix: &str, expires: DbTimestamp| -> Vec<_> {
        (0..count)
            .map(|n| {
                (
                    sessions::id.eq(DbUuid::new()),
                    sessions::token_hash.eq(credentials::hash(&format!("{prefix}{n}"))),
                    sessions::user_id.eq(id(BOB)),
                    sessions::created_at.eq(DbTimestamp(now)),
                    sessions::expires_at.eq(expires),
                )
            })
            .collect()
    };
    let (past, future) = (DbTimestamp(now.plus(-TimeDelta::minutes(1))), DbTimestamp(now.plus(TimeDelta::minutes(1))));
    for rows in [rows(700, "old", past), rows(3, "new", future)] {
        with_connection!(conn, c => diesel::insert_into(sessions::table).values(rows).execute(c)).unwrap();
    }
    let spent = |state: &str, expires: DbTimestamp| {
        let row = (spent_logins::state_hash.eq(credentials::hash(state)), spent_logins::expires_at.eq(expires));
        diesel::insert_into(spent_logins::table).values(row).execute(&mut club.connect()).unwrap();
    };
    spent("old", past);
    spent("new", future);
    let left = || -> (i64, i64) {
        let conn = &mut club.connect();
        let expired = sessions::table.filter(sessions::expires_at.le(past));
        (expired.count().get_result(conn).unwrap(), spent_logins::table.count().get_result(conn).unwrap())
    };
    assert_eq!(left(), (700, 2));
    Browser::new(&club).sign_in(BOB);
    until("some are forgotten", || left() == (200, 2));
    assert_eq!(delete_expired(&mut club.connect(), now).unwrap(), 200);
    assert_eq!(delete_expired(&mut club.connect(), now).unwrap(), 0);
    assert_eq!(left(), (0, 2));
    // Remembered for as long as the sign-in itself could be used.
    club.clock.advance(TimeDelta::minutes(11));
    assert_eq!(delete_expired(&mut club.connect(), club.clock.now()).unwrap(), 5);
    let kept: i64 = sessions::table.count().get_result(&mut club.connect()).unwrap();
    assert_eq!(kept, 6);
}

#[rstest]
fn the_pages_answer_to_this_machines_names_only(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for path in ["/", "/dev/sign-in", "/callback"] {
        club.anonymous().get(path).expect(200);
        club.anonymous().header("host", "localhost:3000").get(path).expect(200);
        club.anonymous().header("host", "[::1]:3000").get(path).expect(200);
        // DNS rebinding: a name of the attacker's that leads to 127.0.0.1.
        club.anonymous().header("host", "evil.example:3000").get(path).refused(421, "misdirected-request");
        club.anonymous().header("host", "localhost.evil.example").get(path).refused(421, "misdirected-request");
    }
    let begin = |host: &str| {
        let answer = club.anonymous().header("host", host).post("/api/authParams", json!({})).expect(201);
        answer.json()["url"].as_str().unwrap().to_owned()
    };
    // The cookies of localhost and 127.0.0.1 are not the same.
    assert!(begin("localhost:3000").starts_with("http://localhost:3000/dev/sign-in?"));
    assert!(begin("127.0.0.1:3000").starts_with("http://127.0.0.1:3000/dev/sign-in?"));
    let evil = club.anonymous().header("host", "evil.example");
    assert_eq!(evil.post("/api/authParams", json!({})).status, 421);
}

pub fn both(test: impl Fn(Backend)) {
    test(Backend::Sqlite);
    test(Backend::Postgres);
}

#[test]
fn any_replica_finishes_a_sign_in_and_only_one_does() {
    both(|backend| {
        let mut club = Club::start(backend);
        let other = club.start_another();
        let mut browser = Browser::new(&club);
        let page = browser.begin();
        browser.service = other;
        let callback = browser.choose(&page, BOB);
        let before = browser.clone();
        browser.get(&callback).expect(302);
        assert_eq!(browser.who().as_deref(), Some(BOB));
        Browser { service: 0, ..before }.get(&callback).refused(400, "bad-login");

        let mut browser = Browser::new(&club);
        let page = browser.begin();
        let callback = browser.choose(&page, BOB);
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let tries: Vec<_> = (0..8)
                .map(|n| {
                    let mut browser = Browser { service: [0, other][n % 2], ..browser.clone() };
                    let callback = &callback;
                    scope.spawn(move || browser.get(callback).status)
                })
                .collect();
            tries.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert_eq!(statuses.iter().filter(|status| **status == 302).count(), 1, "{statuses:?}");
        assert_eq!(statuses.iter().filter(|status| **status == 400).count(), 7, "{statuses:?}");
    });
}

#[test]
fn cookies_are_secure_when_browsers_come_by_https() {
    let club = Club::start_with(Backend::Sqlite, &["--public-url", "https://localhost"]);
    let begin = |host: &str| club.anonymous().header("host", host).post("/api/authParams", json!({})).expect(201);
    let answer = begin("localhost");
    assert!(answer.header("set-cookie").unwrap().contains("; Secure"), "{answer:?}");
    assert!(answer.json()["url"].as_str().unwrap().starts_with("https://localhost/dev/sign-in?"));
    let browser = &mut Browser::new(&club);
    let callback = browser.choose("/dev/sign-in", BOB);
    let refused = browser.ask("GET", &format!("{callback}&error=x"));
    let answers = [answer, refused, browser.get(&callback).expect(302)];
    let mut set = answers.iter().flat_map(set_cookies);
    assert!(set.all(|cookie| cookie.contains("; Secure")), "{answers:?}");
}

#[test]
fn allowed_origins_may_write_with_the_cookie() {
    let club = Club::start_with(Backend::Sqlite, &["--allowed-origins", "https://app.example,https://b.example"]);
    for (origin, status) in [("https://app.example", 200), ("https://b.example", 200), ("https://c.example", 403)] {
        let client = club.by(BOB).header("origin", origin).header("sec-fetch-site", "cross-site");
        client.put("/api/users/me/ical", json!({})).expect(status);
    }
}

#[test]
fn there_is_no_development_sign_in_on_other_addresses() {
    let key = "a key of more than thirty-two characters";
    let club = Club::start_with(Backend::Sqlite, &["--bind", "0.0.0.0:0", "--secret-key", key]);
    club.anonymous().get("/dev/sign-in").refused(404, "not-found");
    club.anonymous().header("host", "localhost").get("/dev/sign-in").refused(404, "not-found");
    club.anonymous().post("/api/authParams", json!({})).refused(503, "unavailable");
}

/// All that the services of this test binary log.
struct Kept(RwLock<String>);

impl log::Log for Kept {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        // The client of these tests logs what it sends; that is not ours.
        !["ureq", "rustls", "mio", "polling"].iter().any(|target| metadata.target().starts_with(target))
    }

    fn log(&self, record: &log::Record<'_>) {
        struct Values<'text>(&'text mut String);
        impl<'kvs> log::kv::VisitSource<'kvs> for Values<'_> {
            fn visit_pair(
                &mut self,
                key: log::kv::Key<'kvs>,
                value: log::kv::Value<'kvs>,
            ) -> Result<(), log::kv::Error> {
                Ok(write!(self.0, " {key}={value}")?)
            }
        }
        if self.enabled(record.metadata()) {
            let mut line = format!("{} {}", record.target(), record.args());
            record.key_values().visit(&mut Values(&mut line)).unwrap();
            self.0.write().unwrap().push_str(&(line + "\n"));
        }
    }

    fn flush(&self) {}
}

#[test]
fn nothing_secret_is_logged() {
    static KEPT: OnceLock<&'static Kept> = OnceLock::new();
    let kept = KEPT.get_or_init(|| {
        let kept: &'static Kept = Box::leak(Box::new(Kept(RwLock::default())));
        log::set_logger(kept).unwrap();
        log::set_max_level(log::LevelFilter::Trace);
        kept
    });
    let mut secrets = HashSet::new();
    let values = |browser: &Browser| -> Vec<String> {
        browser.cookies().iter().map(|cookie| cookie.split_once('=').unwrap().1.to_owned()).collect()
    };
    {
        let club = Club::start(Backend::Sqlite);
        let mut browser = Browser::new(&club);
        let page = browser.begin();
        secrets.extend(values(&browser));
        let callback = browser.choose(&page, BOB);
        browser.clone().get(&format!("{callback}x")).expect(400);
        browser.get(&callback).expect(302);
        secrets.extend(values(&browser));
        for (_, value) in url::form_urlencoded::parse(callback.split_once('?').unwrap().1.as_bytes()) {
            secrets.insert(value.into_owned());
        }
        secrets.insert(callback.split("code=").nth(1).unwrap().split('&').next().unwrap().to_owned());
        let secret = club.by(BOB).get("/api/users/me/ical").json()["secret"].as_str().unwrap().to_owned();
        club.anonymous().get(&format!("/api/ical/v1/{}{secret}?q=", id(BOB))).expect(200);
        club.anonymous().get(&format!("/api/ical/v1/{}{secret}x", id(BOB))).expect(404);
        secrets.insert(secret);
        let token = make_token(&club, BOB, "read");
        by_token(&club, &token).get("/api/users/me").expect(200);
        secrets.insert(token);
    }
    let log = kept.0.read().unwrap();
    assert!(log.contains("route=/api/callback") && log.contains("route=/api/ical/v1/{icalToken}"), "{log}");
    assert!(log.contains(&format!("caller={}", id(BOB))));
    for secret in secrets {
        assert!(secret.len() > 20 && !log.contains(&secret), "{secret}");
    }
}

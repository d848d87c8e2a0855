//! What somebody may try who wants to be somebody else, at both services: they include this file in their tests, by its
//! path. Each of these is let through when its guard is taken out.

use chrono::TimeDelta;
use club_sign_in::schema::sessions;
use diesel::prelude::*;
use serde_json::json;
use service_kit::credentials;

use crate::{
    harness::{BOB, CAROL, Club},
    issuer::{Issuer, Signer, query},
    sign_in::{Browser, CALLBACK, HTML, SIGN_IN_AGAIN, begin, both, ends_one_sign_in, set_cookies, sign_in},
};

fn with_issuer(test: impl Fn(&Club, &Issuer)) {
    both(|backend| {
        let issuer = Issuer::start();
        issuer.is_now("subject-of-bob", BOB);
        test(&issuer.club(backend), &issuer);
    });
}

/// Tries to sign in, to no avail.
#[track_caller]
fn refused(club: &Club, issuer: &Issuer) {
    let mut browser = Browser::new(club);
    let answer = sign_in(&mut browser, issuer);
    ends_one_sign_in(&answer);
    answer.refused(400, "bad-login");
    assert_eq!(browser.who(), None);
}

#[test]
fn an_id_token_that_is_not_the_issuers_for_us_and_now_is_refused() {
    with_issuer(|club, issuer| {
        let past = club.clock.now().plus(-TimeDelta::minutes(1)).utc().timestamp();
        for claims in [
            json!({"nonce": "of another sign-in"}),
            json!({"nonce": null}),
            json!({"iss": "https://evil.example"}),
            json!({"iss": format!("{}/", issuer.address)}),
            json!({"aud": "another-client"}),
            json!({"aud": ["club", "another-client"]}),
            json!({"aud": []}),
            json!({"azp": "another-client"}),
            json!({"exp": past}),
            json!({"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"}),
        ] {
            issuer.set(|now| now.claims = claims.clone());
            refused(club, issuer);
        }
        // What need not be there, or need not be a list.
        for claims in [json!({"at_hash": null}), json!({"aud": ["club"], "azp": "club"}), json!({})] {
            issuer.set(|now| now.claims = claims.clone());
            sign_in(&mut Browser::new(club), issuer).expect(302);
        }
        club.clock.advance(TimeDelta::minutes(6));
        refused(club, issuer);
    });
}

#[test]
fn an_id_token_that_the_issuer_did_not_sign_is_refused() {
    with_issuer(|club, issuer| {
        for signer in
            [Signer::Other, Signer::Unknown, Signer::Nobody, Signer::PublicKey, Signer::ClientSecret, Signer::Tampered]
        {
            issuer.set(|now| now.signer = signer);
            refused(club, issuer);
        }
        issuer.set(|now| now.signer = Signer::Issuer);
        issuer.set(|now| now.header["crit"] = json!(["b64"]));
        refused(club, issuer);
        issuer.set(|now| now.header = json!({"alg": "ES256"}));
        sign_in(&mut Browser::new(club), issuer).expect(302);
    });
}

#[test]
fn a_state_is_good_for_its_browser_once_and_ten_minutes() {
    with_issuer(|club, issuer| {
        let mut browser = Browser::new(club);
        let url = begin(&mut browser);
        let callback = issuer.approve(&url);
        let (code, state) = callback.split_once('?').unwrap().1.split_once('&').unwrap();
        for wrong in [format!("{code}&state=x"), code.to_owned(), format!("{code}&{state}x"), format!("{code}&state=")]
        {
            browser.clone().get(&format!("{CALLBACK}?{wrong}")).refused(400, "bad-login");
        }
        // In another browser: without a sign-in, with one of its own, with a session.
        let mut victim = Browser::new(club);
        victim.get(&callback).refused(400, "bad-login");
        begin(&mut victim);
        victim.get(&callback).refused(400, "bad-login");
        issuer.is_now("subject-of-carol", CAROL);
        let mut other = Browser::new(club);
        sign_in(&mut other, issuer).expect(302);
        assert!(set_cookies(&other.get(&callback).expect(302)).is_empty());
        issuer.is_now("subject-of-bob", BOB);
        // None of this has used up the code: no provider was asked.
        let before = browser.clone();
        browser.get(&callback).expect(302);
        // Replayed with the cookie of before, and with a code that the provider has not seen yet.
        before.clone().get(&callback).refused(400, "bad-login");
        let mut replay = before.clone();
        let fresh = issuer.approve(&url);
        replay.get(&fresh).refused(400, "bad-login");
        assert_eq!(replay.who(), None);
        assert_eq!(browser.who().as_deref(), Some(BOB));
        // Too late.
        let mut late = Browser::new(club);
        let callback = issuer.approve(&begin(&mut late));
        club.clock.advance(TimeDelta::minutes(11));
        late.get(&callback).refused(400, "bad-login");
    });
}

#[test]
fn a_code_is_good_for_the_sign_in_that_it_was_given_for() {
    with_issuer(|club, issuer| {
        // A stolen code in the thief's own sign-in: the verifier is not its verifier, nor the nonce its nonce.
        let mut victim = Browser::new(club);
        let stolen = issuer.approve(&begin(&mut victim));
        let code = stolen.split_once("code=").unwrap().1.split('&').next().unwrap().to_owned();
        let mut thief = Browser::new(club);
        let own = issuer.approve(&begin(&mut thief));
        let state = own.split_once("state=").unwrap().1.to_owned();
        thief.get(&format!("{CALLBACK}?code={code}&state={state}")).refused(400, "bad-login");
        assert_eq!(thief.who(), None);
        for code in ["", "unknown", "%00", "a%20b%26c"] {
            let mut browser = Browser::new(club);
            let state = begin(&mut browser).split_once("state=").unwrap().1.split('&').next().unwrap().to_owned();
            browser.get(&format!("{CALLBACK}?code={code}&state={state}")).refused(400, "bad-login");
        }
    });
}

#[test]
fn a_planted_session_is_not_signed_in() {
    with_issuer(|club, issuer| {
        let mut browser = Browser::with_session(club, "planted");
        sign_in(&mut browser, issuer).expect(302);
        assert_eq!(browser.who().as_deref(), Some(BOB));
        let own = browser.session().unwrap();
        assert_ne!(own, "planted");
        assert_eq!(Browser::with_session(club, "planted").who(), None);
        // A session of before ends, and a new one begins.
        sign_in(&mut browser, issuer).expect(302);
        assert_ne!(browser.session().as_ref(), Some(&own));
        assert_eq!(Browser::with_session(club, &own).who(), None);
        let planted: i64 = sessions::table
            .filter(sessions::token_hash.eq(credentials::hash("planted")))
            .count()
            .get_result(&mut club.connect())
            .unwrap();
        assert_eq!(planted, 0);
    });
}

#[test]
fn a_callback_of_another_issuer_is_refused() {
    with_issuer(|club, issuer| {
        let come_back = |iss: Option<&str>| {
            let mut browser = Browser::new(club);
            let callback = issuer.approve(&begin(&mut browser));
            let more = iss.map(|iss| format!("&{}", query(&[("iss", iss)]))).unwrap_or_default();
            browser.get(&format!("{callback}{more}"))
        };
        come_back(Some("https://evil.example")).refused(400, "bad-login");
        // An empty parameter counts as absent.
        come_back(Some("")).expect(302);
        come_back(Some(&issuer.address)).expect(302);
        come_back(None).expect(302);
    });
    // RFC 9207: an issuer that says it names itself must.
    both(|backend| {
        let issuer = Issuer::start();
        issuer.set(|now| now.metadata = json!({"authorization_response_iss_parameter_supported": true}));
        let club = issuer.club(backend);
        refused(&club, &issuer);
        let mut browser = Browser::new(&club);
        let callback = issuer.approve(&begin(&mut browser));
        browser.get(&format!("{callback}&{}", query(&[("iss", &issuer.address)]))).expect(302);
    });
}

#[test]
fn who_is_refused_by_the_provider_may_try_again() {
    with_issuer(|club, _| {
        for error in ["access_denied", "server_error", "<script>", ""] {
            let mut browser = Browser { accept: HTML, ..Browser::new(club) };
            let state = begin(&mut browser).split_once("state=").unwrap().1.split('&').next().unwrap().to_owned();
            let parameters = query(&[("error", error), ("error_description", "Unmistakable words"), ("code", "x")]);
            let answer = browser.get(&format!("{CALLBACK}?{parameters}&state={state}")).expect(400);
            ends_one_sign_in(&answer);
            let page = answer.text();
            assert!(page.contains(SIGN_IN_AGAIN), "{page}");
            assert!(!page.contains("Unmistakable") && !page.contains("script") && !page.contains("denied"), "{page}");
        }
        let mut program = Browser::new(club);
        let state = begin(&mut program).split_once("state=").unwrap().1.split('&').next().unwrap().to_owned();
        program.get(&format!("{CALLBACK}?error=access_denied&state={state}")).refused(400, "bad-login");
    });
}

//! A provider that is unavailable, slow or broken affects only sign-ins, and only while it is.

use serde_json::{Value, json};

use crate::{
    harness::{Answer, BOB, Backend, Club},
    issuer::{Fault, Issuer, KEYS, METADATA, TOKEN, USER},
    process::until,
    sign_in::{Browser, HTML, SIGN_IN_AGAIN, begin, both, sign_in},
};

/// Asserts a 503 as in the contract, without any text of the provider.
#[track_caller]
fn unavailable(answer: Answer) {
    assert!(answer.header("retry-after").is_some(), "{answer:?}");
    let text = answer.text();
    assert!(!text.contains("Unmistakable") && !text.contains("127.0.0.1") && !text.contains("token"), "{text}");
    if answer.header("content-type").is_some_and(|kind| kind.starts_with("text/html")) {
        let page = answer.expect(503).text();
        assert!(page.contains(SIGN_IN_AGAIN), "{page}");
    } else {
        answer.refused(503, "unavailable");
    }
}

fn faults() -> Vec<Fault> {
    vec![
        Fault::Close,
        Fault::Status(500, json!({"error": "Unmistakable"})),
        Fault::Status(404, json!({"issuer": "Unmistakable"})),
        Fault::Status(200, json!(["Unmistakable"])),
        Fault::Status(200, json!({"issuer": 5, "keys": 5, "access_token": 5, "id_token": {}})),
        Fault::Html,
        Fault::Huge,
        Fault::Truncated,
        Fault::Redirect,
    ]
}

// The database does not matter in these tests.

#[test]
fn invalid_metadata_or_keys_stop_only_sign_in() {
    for path in [METADATA, KEYS] {
        for fault in faults() {
            let issuer = Issuer::start();
            issuer.set(|now| drop(now.faults.insert(path, fault.clone())));
            let club = issuer.club(Backend::Sqlite);
            unavailable(club.anonymous().post("/api/authParams", json!({})));
            assert_eq!(issuer.asked(path), 1, "{fault:?}");
            assert_eq!(issuer.asked("/elsewhere"), 0);
        }
    }
}

#[test]
fn untrustworthy_metadata_is_not_used() {
    for metadata in [
        json!({"issuer": "https://evil.example"}),
        json!({"issuer": null}),
        json!({"jwks_uri": null}),
        json!({"authorization_endpoint": "http://evil.example/authorize"}),
        json!({"authorization_endpoint": "javascript:alert(1)"}),
        json!({"token_endpoint": null}),
    ] {
        let issuer = Issuer::start();
        issuer.set(|now| now.metadata = metadata.clone());
        let club = issuer.club(Backend::Sqlite);
        unavailable(club.anonymous().post("/api/authParams", json!({})));
    }
    // Plain HTTP with a host name that is not a loopback name, although it is reachable.
    for (member, path) in [("jwks_uri", KEYS), ("token_endpoint", TOKEN), ("userinfo_endpoint", USER)] {
        let issuer = Issuer::start();
        let unsafe_address = format!("{}{path}", issuer.address.replace("127.0.0.1", "0.0.0.0"));
        issuer.set(|now| {
            now.metadata = json!({member: unsafe_address});
            now.only_at_user_info = vec!["preferred_username"];
        });
        let club = issuer.club(Backend::Sqlite);
        if member == "jwks_uri" {
            unavailable(club.anonymous().post("/api/authParams", json!({})));
        } else {
            unavailable(sign_in(&mut Browser::new(&club), &issuer));
        }
        assert_eq!(issuer.asked(path), 0, "{member}");
    }
}

fn garbage_at(path: &'static str, issuer: &Issuer, club: &Club) {
    // An object that describes no user is an answer, and a refusal.
    let faults =
        faults().into_iter().filter(|fault| path == TOKEN || !matches!(fault, Fault::Status(200, Value::Object(_))));
    for (n, fault) in faults.enumerate() {
        issuer.set(|now| drop(now.faults.insert(path, fault.clone())));
        let mut browser = Browser { accept: ["*/*", HTML][n % 2], ..Browser::new(club) };
        let url = begin(&mut browser);
        let answer = browser.get(&issuer.approve(&url));
        assert_eq!(answer.header("set-cookie"), None, "{fault:?}: {answer:?}");
        unavailable(answer);
        assert_eq!(browser.who(), None);
        assert_eq!(issuer.asked("/elsewhere"), 0);
        issuer.set(|now| now.faults.clear());
        // The same browser can finish the same sign-in.
        browser.get(&issuer.approve(&url)).expect(302);
    }
}

#[test]
fn an_invalid_token_or_user_is_no_sign_in() {
    both(|backend| {
        let issuer = Issuer::start();
        let club = issuer.club(backend);
        garbage_at(TOKEN, &issuer, &club);
        issuer.set(|now| now.only_at_user_info = vec!["preferred_username"]);
        garbage_at(USER, &issuer, &club);
    });
    both(|backend| {
        let issuer = Issuer::start();
        issuer.set(|now| now.user = json!({"id": 5, "name": BOB}));
        let club = issuer.plain_club(backend);
        garbage_at(TOKEN, &issuer, &club);
        garbage_at(USER, &issuer, &club);
    });
}

#[test]
fn a_service_starts_without_its_provider_and_finds_it_later() {
    both(|backend| {
        let issuer = Issuer::start();
        issuer.set(|now| drop(now.faults.insert(METADATA, Fault::Close)));
        let club = issuer.club(backend);
        unavailable(club.anonymous().post("/api/authParams", json!({})));
        club.anonymous().get("/readyz").expect(200);
        club.by(BOB).get("/api/rooms").expect(200);
        issuer.set(|now| now.faults.clear());
        until("the provider is found", || club.anonymous().post("/api/authParams", json!({})).status == 201);
        sign_in(&mut Browser::new(&club), &issuer).expect(302);
    });
}

#[test]
fn an_unreachable_provider_is_503() {
    // A port without a listener.
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (issuer, public) = (format!("http://{gone}"), "https://club.example");
    let options = ["--oidc-issuer", &issuer, "--oauth-client-id", "club", "--public-url", public];
    let club = Club::start_with(Backend::Sqlite, &options);
    unavailable(club.anonymous().post("/api/authParams", json!({})));
    club.by(BOB).get("/api/rooms").expect(200);
}

/// Takes seconds: it waits for time-outs, on both databases.
#[test]
fn a_provider_that_never_answers_delays_nothing_else() {
    both(|backend| {
        let issuer = Issuer::start();
        let club = issuer.club(backend);
        issuer.set(|now| drop(now.faults.insert(TOKEN, Fault::Stall)));
        let others_are_served = || {
            let mut browsers: Vec<_> = (0..6).map(|_| Browser::new(&club)).collect();
            let callbacks: Vec<_> = browsers.iter_mut().map(|browser| issuer.approve(&begin(browser))).collect();
            let asked = issuer.asked(TOKEN);
            std::thread::scope(|scope| {
                let waiting: Vec<_> = browsers
                    .into_iter()
                    .zip(&callbacks)
                    .map(|(mut browser, callback)| scope.spawn(move || unavailable(browser.get(callback))))
                    .collect();
                until("the provider has been asked", || issuer.asked(TOKEN) > asked);
                for _ in 0..10 {
                    club.by(BOB).get("/api/rooms").expect(200);
                    begin(&mut Browser::new(&club));
                }
                waiting.iter().all(|one| !one.is_finished())
            })
        };
        // The first sign-in ends after 5 seconds; a machine with other work may be too slow for that, but not always.
        assert!((0..5).any(|_| others_are_served()), "they waited as long as the sign-ins");
    });
}

#[test]
fn a_request_for_metadata_times_out_after_a_few_seconds() {
    let issuer = Issuer::start();
    issuer.set(|now| drop(now.faults.insert(METADATA, Fault::Stall)));
    let club = issuer.club(Backend::Sqlite);
    std::thread::scope(|scope| {
        let club = &club;
        let ask = move || unavailable(club.anonymous().post("/api/authParams", json!({})));
        let waiting: Vec<_> = (0..5).map(|_| scope.spawn(ask)).collect();
        for one in waiting {
            one.join().unwrap();
        }
    });
    // One request fetched the metadata for all. A second later another one may.
    assert!((1..5).contains(&issuer.asked(METADATA)));
}

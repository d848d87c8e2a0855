//! Providers as they are: answers that take liberties, claims of a wrong form, keys that change, and the options for
//! what a provider does differently.

use booking_service::schema::users;
use diesel::prelude::*;
use serde_json::{Value, json};

use crate::{
    harness::{ALICE, BOB, Backend, CAROL, Club, KEY, id},
    issuer::{Fault, Issuer, KEYS, Signer, TOKEN, USER, start},
    process::Process,
    sign_in::{Browser, HTML, both, ends_one_sign_in, sign_in},
};

fn with_issuer(test: impl Fn(&Club, &Issuer)) {
    both(|backend| {
        let issuer = Issuer::start();
        issuer.is_now("subject-of-bob", BOB);
        test(&issuer.club(backend), &issuer);
    });
}

fn with_plain_server(test: impl Fn(&Club, &Issuer)) {
    both(|backend| {
        let issuer = Issuer::start();
        issuer.set(|now| now.user = json!({"id": "subject-of-bob", "name": BOB}));
        test(&issuer.plain_club(backend), &issuer);
    });
}

fn signed_in(club: &Club, issuer: &Issuer) {
    let mut browser = Browser::new(club);
    sign_in(&mut browser, issuer).expect(302);
    assert_eq!(browser.who().as_deref(), Some(BOB));
}

/// Asserts that a sign-in is refused, and that a browser is shown the page of a refused sign-in.
#[track_caller]
fn refused(club: &Club, issuer: &Issuer) {
    let mut browser = Browser { accept: HTML, ..Browser::new(club) };
    let answer = sign_in(&mut browser, issuer).expect(400);
    ends_one_sign_in(&answer);
    let page = answer.text();
    assert!(page.contains("The sign-in cannot be finished") && page.contains("Sign in again"), "{page}");
    assert!(!page.contains("does not answer"), "{page}");
    assert_eq!(browser.who(), None);
    sign_in(&mut Browser::new(club), issuer).refused(400, "bad-login");
}

/// What providers do to the members of a token answer that no sign-in needs.
const LIBERTIES: [fn(&mut Value); 7] = [
    |answer| answer["expires_in"] = "3600".into(),
    |answer| answer["expires_in"] = json!(3599.5),
    |answer| answer["expires_in"] = Value::Null,
    |answer| answer["token_type"] = Value::Null,
    |answer| drop(answer.as_object_mut().unwrap().remove("token_type")),
    |answer| {
        answer["scope"] = json!(["openid", "profile"]);
        answer["refresh_token"] = json!({"token": 5});
    },
    |answer| {
        answer["error"] = Value::Null;
        answer["created_at"] = json!([]);
    },
];

#[test]
fn only_the_token_of_a_token_answer_is_read() {
    with_issuer(|club, issuer| {
        let without_access_token: fn(&mut Value) =
            |answer| drop(answer.as_object_mut().unwrap().remove("access_token"));
        for change in LIBERTIES.into_iter().chain([without_access_token]) {
            issuer.set(|now| now.token = change);
            signed_in(club, issuer);
        }
        issuer.set(|now| {
            now.token = |_| {};
            now.answers_form = true;
        });
        signed_in(club, issuer);
    });
    with_plain_server(|club, issuer| {
        for change in LIBERTIES {
            issuer.set(|now| now.token = change);
            signed_in(club, issuer);
        }
        issuer.set(|now| {
            now.token = |_| {};
            now.answers_form = true;
        });
        signed_in(club, issuer);
        // The token that is needed.
        issuer.set(|now| {
            now.answers_form = false;
            now.token = |answer| answer["access_token"] = 5.into();
        });
        sign_in(&mut Browser::new(club), issuer).refused(503, "unavailable");
    });
}

#[test]
fn an_error_is_one_whatever_its_status() {
    let errors = |issuer: &Issuer, club: &Club| {
        for status in [200, 400, 401, 403] {
            for error in [json!("bad_verification_code"), json!("invalid_grant"), json!({"type": "x"}), json!(5)] {
                let answer = json!({"error": error, "error_description": ["not", "a", "text"], "error_uri": 5});
                issuer.set(|now| drop(now.faults.insert(TOKEN, Fault::Status(status, answer))));
                refused(club, issuer);
            }
            let answer = json!({"error": "incorrect_client_credentials", "access_token": "x"});
            issuer.set(|now| drop(now.faults.insert(TOKEN, Fault::Status(status, answer))));
            sign_in(&mut Browser::new(club), issuer).refused(503, "sign-in-misconfigured");
        }
        issuer.set(|now| {
            now.faults.clear();
            now.answers_form = true;
            now.token = |answer| *answer = json!({"error": "bad_verification_code", "error_description": "The code"});
        });
        refused(club, issuer);
    };
    with_issuer(|club, issuer| errors(issuer, club));
    with_plain_server(|club, issuer| errors(issuer, club));
}

#[test]
fn the_log_has_the_name_of_an_error_and_not_its_description() {
    let issuer = Issuer::start();
    let club = start(Backend::Sqlite, &[], &[]);
    let options = issuer.options();
    let mut options: Vec<_> = options.iter().map(String::as_str).collect();
    options.extend(["--secret-key", KEY]);
    let mut process = Process::beside(&club, &options);
    let finish = || {
        let ask = |head: &str| {
            let mut wire = process.connect();
            wire.write(&format!("{head}\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"));
            wire.read_to_end().1
        };
        let begun = ask("POST /api/authParams HTTP/1.1");
        let cookie = begun.split("session=").nth(1).unwrap().split(';').next().unwrap();
        let url = begun.split("\"url\":\"").nth(1).unwrap().split('"').next().unwrap();
        ask(&format!("GET {} HTTP/1.1\r\nCookie: session={cookie}", issuer.approve(url)));
    };
    for error in ["bad_verification_code", "Unmistakable words", "code-1-of-the-provider"] {
        let answer = json!({"error": error, "error_description": "Unmistakable words"});
        issuer.set(|now| drop(now.faults.insert(TOKEN, Fault::Status(200, answer))));
        finish();
    }
    process.signal("TERM");
    assert!(process.wait().success());
    let log = process.log().join("\n");
    assert!(log.contains("a sign-in was refused: the provider refuses the code with bad_verification_code"), "{log}");
    assert!(!log.contains("Unmistakable") && !log.contains("code-1"), "{log}");
}

#[test]
fn claims_of_a_wrong_form_are_a_refusal() {
    with_issuer(|club, issuer| {
        for claims in [
            json!({"sub": 5}),
            json!({"sub": ["subject-of-bob"]}),
            json!({"sub": {}}),
            json!({"sub": ""}),
            json!({"sub": "a\u{0}"}),
            json!({"sub": "x".repeat(256)}),
            json!({"sub": null}),
            json!({"iat": null}),
            json!({"iat": "now"}),
            json!({"iat": [1]}),
            json!({"exp": null}),
            json!({"exp": "soon"}),
            json!({"exp": 1e300}),
            json!({"exp": u64::MAX}),
            json!({"exp": i64::MIN}),
            json!({"exp": {}}),
            json!({"nbf": "now"}),
            json!({"iss": [issuer.address]}),
            json!({"aud": {"club": true}}),
            json!({"aud": 5}),
            json!({"aud": ["club", 5]}),
            json!({"nonce": 5}),
            json!({"nonce": ["x"]}),
            json!({"azp": ["club"]}),
            json!({"at_hash": 5}),
        ] {
            issuer.set(|now| now.claims = claims.clone());
            refused(club, issuer);
        }
        // What no sign-in needs may have any form.
        issuer.set(|now| {
            now.claims = json!({"name": [5], "email_verified": "true", "updated_at": "2026-04-01", "auth_time": {},
                "locale": 5, "address": "street", "amr": "pwd", "acr": 1, "picture": false, "nbf": null, "azp": null});
        });
        signed_in(club, issuer);
        // Of the user info as well.
        issuer.set(|now| {
            now.claims = json!({});
            now.only_at_user_info = vec!["preferred_username"];
        });
        for user in [json!({}), json!({"sub": {}}), json!({"sub": 5, "preferred_username": BOB})] {
            issuer.set(|now| drop(now.faults.insert(USER, Fault::Status(200, user))));
            refused(club, issuer);
        }
    });
    with_plain_server(|club, issuer| {
        for id in [json!(null), json!({}), json!(1.5), json!(1e300), json!(""), json!("x".repeat(256)), json!("a\u{0}")]
        {
            issuer.set(|now| now.user = json!({"id": id, "name": BOB}));
            refused(club, issuer);
        }
    });
}

#[test]
fn a_token_may_be_signed_by_ed25519_have_another_type_and_a_new_key() {
    with_issuer(|club, issuer| {
        issuer.set(|now| now.signer = Signer::Ed);
        signed_in(club, issuer);
        issuer.set(|now| now.claims = json!({"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"}));
        issuer.set(|now| now.signer = Signer::Issuer);
        refused(club, issuer);
        issuer.set(|now| {
            now.claims = json!({});
            now.header["typ"] = "id_token+jwt".into();
        });
        signed_in(club, issuer);
        // The issuer changes its key a moment after the service has fetched the keys, and the former is out of use.
        assert_eq!(issuer.asked(KEYS), 1);
        issuer.set(|now| now.signer = Signer::Rotated);
        signed_in(club, issuer);
        assert_eq!(issuer.asked(KEYS), 2);
        issuer.set(|now| now.signer = Signer::Unknown);
        for _ in 0..3 {
            refused(club, issuer);
        }
        assert_eq!(issuer.asked(KEYS), 3, "however many tokens have an unknown key");
    });
}

#[test]
fn other_audiences_must_be_trusted() {
    let issuer = Issuer::start();
    issuer.is_now("subject-of-bob", BOB);
    let trusting = start(Backend::Sqlite, &issuer.options(), &["--oidc-trusted-audiences", "264,project"]);
    let others = issuer.club(Backend::Sqlite);
    for (claims, is_trusted) in [
        (json!({"aud": ["club", "264"]}), true),
        (json!({"aud": ["264", "project", "club"], "azp": "club"}), true),
        (json!({"aud": ["club", "264", "evil"]}), false),
        (json!({"aud": ["264"]}), false),
        (json!({"aud": "264"}), false),
        (json!({"aud": ["club", "264"], "azp": "264"}), false),
    ] {
        issuer.set(|now| now.claims = claims.clone());
        if is_trusted {
            signed_in(&trusting, &issuer);
        } else {
            refused(&trusting, &issuer);
        }
        refused(&others, &issuer);
    }
}

#[test]
fn a_token_that_is_not_valid_yet_is_refused_with_half_a_minute_of_leeway() {
    with_issuer(|club, issuer| {
        let now = club.clock.now().utc().timestamp();
        for (claims, is_valid) in [
            (json!({"nbf": now + 20}), true),
            (json!({"nbf": now + 50}), false),
            (json!({"exp": now - 10}), true),
            (json!({"exp": now - 50}), false),
        ] {
            issuer.set(|now| now.claims = claims.clone());
            if is_valid { signed_in(club, issuer) } else { refused(club, issuer) }
        }
    });
}

#[test]
fn the_client_authenticates_as_configured() {
    let issuer = Issuer::start();
    issuer.is_now("subject-of-bob", BOB);
    issuer.set(|now| now.user["id"] = "subject-of-bob".into());
    let names = ["--oauth-name-claim", "preferred_username"];
    for (method, other, in_body) in [("post", "basic", true), ("basic", "post", false)] {
        issuer.set(|now| {
            now.secret_in_body = in_body;
            // The option goes before the metadata.
            let method = if in_body { "client_secret_basic" } else { "client_secret_post" };
            now.metadata = json!({"token_endpoint_auth_methods_supported": [method]});
        });
        for options in [issuer.options(), issuer.plain_options()] {
            let club =
                |method| start(Backend::Sqlite, &options, &[&["--oauth-client-auth", method][..], &names].concat());
            signed_in(&club(method), &issuer);
            sign_in(&mut Browser::new(&club(other)), &issuer).refused(503, "sign-in-misconfigured");
        }
    }
}

fn set_privileged(club: &Club, member: &str, privileged: bool) {
    let user = users::table.find(id(member));
    diesel::update(user).set(users::privileged.eq(privileged)).execute(&mut club.connect()).unwrap();
}

#[test]
fn the_privilege_follows_a_claim_at_each_sign_in() {
    both(|backend| {
        let issuer = Issuer::start();
        let club = start(backend, &issuer.options(), &["--privileged-claim", "groups=rooms-admin"]);
        let sign_in_as = |name: &str, groups: Value| {
            issuer.set(|now| {
                now.user = json!({"sub": format!("subject-of-{name}"), "preferred_username": name, "groups": groups});
            });
            let mut browser = Browser::new(&club);
            sign_in(&mut browser, &issuer).expect(302);
            browser.get("/api/users/me").json()["privileged"].as_bool().unwrap()
        };
        set_privileged(&club, ALICE, true);
        assert!(sign_in_as(BOB, json!(["members", "rooms-admin"])));
        assert!(!sign_in_as(BOB, json!(["members"])));
        assert!(sign_in_as(BOB, json!("rooms-admin")));
        assert!(!sign_in_as(BOB, json!(null)));
        // Somebody new.
        assert!(sign_in_as("newcomer", json!({"rooms-admin": "club"})));
        // Only the user info has it.
        issuer.set(|now| now.only_at_user_info = vec!["groups"]);
        assert!(sign_in_as(CAROL, json!(["rooms-admin"])));
        assert!(!sign_in_as(CAROL, json!([])));
        // A sign-in that is refused changes nothing.
        issuer.set(|now| now.signer = Signer::Other);
        sign_in(&mut Browser::new(&club), &issuer).refused(400, "bad-login");
        issuer.set(|now| now.signer = Signer::Issuer);
        // The last one keeps it.
        set_privileged(&club, ALICE, false);
        assert!(sign_in_as("newcomer", json!([])));
        assert!(sign_in_as(BOB, json!(["rooms-admin"])));
        assert!(!sign_in_as("newcomer", json!([])));
        assert!(sign_in_as(BOB, json!([])));
    });
    // Without the option nothing changes.
    with_issuer(|club, issuer| {
        set_privileged(club, BOB, true);
        issuer.set(|now| now.user["groups"] = json!([]));
        signed_in(club, issuer);
        assert!(club.by(BOB).get("/api/users/me").json()["privileged"].as_bool().unwrap());
    });
}

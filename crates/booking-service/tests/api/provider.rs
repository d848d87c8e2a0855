//! Sign-in with a provider: who somebody is then, and how little the provider is asked.

use std::collections::HashSet;

use booking_service::{
    auth::SESSION_COOKIE,
    schema::{identities, users},
};
use diesel::prelude::*;
use serde_json::json;
use service_kit::database::types::DbUuid;
use uuid::Uuid;

use crate::{
    harness::{ALICE, BOB, Backend, CAROL, Club, SUSAN, id},
    issuer::{Issuer, KEYS, METADATA, TOKEN, USER, start},
    sign_in::{Browser, HTML, begin, both, set_state, sign_in},
};

/// Signs in with a new browser, and answers whose session it has.
pub fn signed_in(club: &Club, issuer: &Issuer) -> DbUuid {
    let mut browser = Browser::new(club);
    sign_in(&mut browser, issuer).expect(302);
    DbUuid(browser.get("/api/users/me").json()["userId"].as_str().unwrap().parse().unwrap())
}

fn with_issuer(test: impl Fn(&Club, &Issuer)) {
    both(|backend| {
        let issuer = Issuer::start();
        test(&issuer.club(backend), &issuer);
    });
}

fn with_plain_server(test: impl Fn(&Club, &Issuer)) {
    both(|backend| {
        let issuer = Issuer::start();
        issuer.set(|now| now.user = json!({"id": "subject-1", "name": "newcomer", "displayName": "New Comer"}));
        test(&issuer.plain_club(backend), &issuer);
    });
}

fn users_named(club: &Club, name: &str) -> i64 {
    users::table.filter(users::name.eq(name)).count().get_result(&mut club.connect()).unwrap()
}

#[test]
fn the_first_sign_in_makes_a_member_like_any_other() {
    with_issuer(|club, issuer| {
        let mut browser = Browser::new(club);
        let answer = sign_in(&mut browser, issuer).expect(302);
        assert_eq!(answer.header("location"), Some("/callback"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        let cookie = answer.header("set-cookie").unwrap();
        assert!(cookie.starts_with("session=") && cookie.contains("; HttpOnly") && cookie.contains("; Secure"));
        let me = browser.get("/api/users/me").json();
        assert_eq!((&me["name"], &me["displayName"]), (&"newcomer".into(), &"New Comer".into()));
        assert_eq!((&me["privileged"], &me["state"]), (&false.into(), &1.into()));
        let groups = browser.get("/api/users/me/groups").json();
        assert_eq!(groups, json!(["11111111-1111-1111-1111-111111111111"]));
        assert!(club.by(BOB).get("/api/users").json().as_array().unwrap().contains(&me));
        // Called something else later, it is the same person here.
        issuer.is_now("subject-1", "renamed");
        assert_eq!(signed_in(club, issuer).to_string(), me["userId"].as_str().unwrap());
        assert_eq!((users_named(club, "renamed"), users_named(club, "newcomer")), (0, 1));
    });
}

#[test]
fn the_development_sign_in_is_off_where_there_is_a_provider() {
    let issuer = Issuer::start();
    for club in [issuer.club(Backend::Sqlite), issuer.plain_club(Backend::Sqlite)] {
        club.anonymous().get("/dev/sign-in").refused(404, "not-found");
        club.anonymous().header("host", "localhost").get("/dev/sign-in").refused(404, "not-found");
    }
}

#[test]
fn a_service_with_a_provider_may_be_reached_from_elsewhere() {
    let issuer = Issuer::start();
    let key = "a key of more than thirty-two characters";
    let club = start(Backend::Sqlite, &issuer.options(), &["--bind", "0.0.0.0:0", "--secret-key", key]);
    assert!(club.config.faults().is_empty(), "{:?}", club.config.faults());
    signed_in(&club, &issuer);
}

#[test]
fn a_member_of_the_directory_is_linked_by_name_and_only_once() {
    with_issuer(|club, issuer| {
        issuer.is_now("subject-of-bob", BOB);
        assert_eq!(signed_in(club, issuer), id(BOB));
        // Whoever has the name later is somebody else, also when bob is called something else by then.
        issuer.is_now("another-subject", BOB);
        let other = signed_in(club, issuer);
        issuer.is_now("a-third-subject", &BOB.to_uppercase());
        let third = signed_in(club, issuer);
        assert_eq!(HashSet::from([other, third, id(BOB)]).len(), 3);
        issuer.is_now("subject-of-bob", "robert");
        assert_eq!(signed_in(club, issuer), id(BOB));
        // Likewise for those whom a sign-in made.
        issuer.is_now("subject-1", "newcomer");
        let first = signed_in(club, issuer);
        issuer.is_now("subject-2", "newcomer");
        assert_ne!(signed_in(club, issuer), first);
        let kept: i64 = identities::table.count().get_result(&mut club.connect()).unwrap();
        assert_eq!(kept, 5);
        let names: Vec<String> = users::table.select(users::name).load(&mut club.connect()).unwrap();
        let others = names.iter().filter(|name| name.len() > 7 && name.as_bytes()[name.len() - 7] == b'-');
        assert_eq!(
            others.filter(|name| ["bob-", "BOB-", "newc"].iter().any(|start| name.starts_with(start))).count(),
            3
        );
    });
}

#[test]
fn an_id_goes_before_a_name() {
    with_plain_server(|club, issuer| {
        // As the provider's id of carol is the directory's, it is carol, whatever her name there.
        issuer.set(|now| now.user = json!({"id": id(CAROL).to_string(), "name": BOB}));
        assert_eq!(signed_in(club, issuer), id(CAROL));
        issuer.set(|now| now.user = json!({"id": "subject-of-bob", "name": BOB}));
        assert_eq!(signed_in(club, issuer), id(BOB));
        // Whoever the directory does not know yet has the id under which it will.
        let new = Uuid::from_u128(0x0198_c0de_0000_7000_8000_0000_0000_0001);
        issuer.set(|now| now.user = json!({"id": new.to_string(), "name": "new"}));
        assert_eq!(signed_in(club, issuer), DbUuid(new));
        // The nil id is nobody's.
        issuer.set(|now| now.user = json!({"id": Uuid::nil().to_string(), "name": "nobody"}));
        assert_ne!(signed_in(club, issuer), DbUuid::nil());
    });
}

#[test]
fn a_plain_server_says_who_it_is_at_its_user_address() {
    with_plain_server(|club, issuer| {
        let mut browser = Browser::new(club);
        let url = begin(&mut browser);
        assert!(!url.contains("scope=") && !url.contains("nonce="), "{url}");
        browser.get(&issuer.approve(&url)).expect(302);
        let me = browser.get("/api/users/me").json();
        assert_eq!((&me["name"], &me["displayName"]), (&"newcomer".into(), &"New Comer".into()));
        assert_eq!((issuer.asked(METADATA), issuer.asked(TOKEN), issuer.asked(USER)), (0, 1, 1));
        // Numbers tell people apart as well; the name is shown where there is no other.
        issuer.set(|now| now.user = json!({"id": 17, "name": "seventeen"}));
        let seventeen = signed_in(club, issuer);
        issuer.set(|now| now.user = json!({"id": "17", "name": "seventeen"}));
        assert_eq!(signed_in(club, issuer), seventeen);
        let shown = club.by(BOB).get("/api/users").json();
        assert!(shown.as_array().unwrap().iter().any(|user| user["displayName"] == "seventeen"));
    });
}

#[test]
fn claims_may_be_called_otherwise() {
    let issuer = Issuer::start();
    let names = ["--oauth-name-claim", "nickname", "--oauth-id-claim", "employee", "--oauth-scopes", "openid club"];
    let club = start(Backend::Sqlite, &issuer.options(), &names);
    issuer.set(|now| now.user = json!({"sub": "s", "employee": 5, "nickname": BOB, "preferred_username": ALICE}));
    assert!(begin(&mut Browser::new(&club)).contains("scope=openid+club"));
    assert_eq!(signed_in(&club, &issuer), id(BOB));
    issuer.set(|now| now.user = json!({"sub": "s", "employee": 6, "nickname": BOB}));
    assert_ne!(signed_in(&club, &issuer), id(BOB));
}

#[test]
fn who_is_not_active_cannot_sign_in_with_a_provider() {
    with_issuer(|club, issuer| {
        issuer.is_now("subject-of-susan", SUSAN);
        let mut browser = Browser::new(club);
        sign_in(&mut browser, issuer).refused(403, "account-inactive");
        assert_eq!(browser.cookies(), [""; 0]);
        // Neither for the first time nor later.
        set_state(club, SUSAN, 1);
        assert_eq!(signed_in(club, issuer), id(SUSAN));
        set_state(club, SUSAN, 0);
        let mut browser = Browser { accept: HTML, ..Browser::new(club) };
        sign_in(&mut browser, issuer).expect(403);
        assert_eq!(browser.cookies(), [""; 0]);
    });
}

#[test]
fn first_sign_ins_of_one_person_at_once_make_one_member() {
    both(|backend| {
        let issuer = Issuer::start();
        let mut club = issuer.club(backend);
        let other = club.start_another();
        let callbacks: Vec<_> = (0..8)
            .map(|n| {
                let mut browser = Browser { service: [0, other][n % 2], ..Browser::new(&club) };
                let url = begin(&mut browser);
                (browser, issuer.approve(&url))
            })
            .collect();
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let all: Vec<_> = callbacks
                .into_iter()
                .map(|(mut browser, path)| scope.spawn(move || browser.get(&path).status))
                .collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert_eq!(statuses, [302; 8]);
        assert_eq!(users_named(&club, "newcomer"), 1);
        let kept: i64 = identities::table.count().get_result(&mut club.connect()).unwrap();
        assert_eq!(kept, 1);
    });
}

#[test]
fn any_replica_finishes_a_sign_in_with_a_provider() {
    both(|backend| {
        let issuer = Issuer::start();
        let mut club = issuer.club(backend);
        let other = club.start_another();
        let mut browser = Browser::new(&club);
        let url = begin(&mut browser);
        browser.service = other;
        browser.get(&issuer.approve(&url)).expect(302);
        assert_eq!(browser.who().as_deref(), Some("newcomer"));
    });
}

#[test]
fn the_start_and_several_sign_ins_ask_for_the_metadata_once() {
    with_issuer(|club, issuer| {
        let urls: Vec<_> = (0..5).map(|_| begin(&mut Browser::new(club))).collect();
        assert!(urls.iter().all(|url| url.contains("scope=openid+profile")), "{urls:?}");
        assert_eq!((issuer.asked(METADATA), issuer.asked(KEYS)), (1, 1));
        signed_in(club, issuer);
        assert_eq!((issuer.asked(METADATA), issuer.asked(KEYS), issuer.asked(USER)), (1, 1, 0));
    });
}

#[test]
fn what_the_id_token_does_not_say_is_asked_for() {
    with_issuer(|club, issuer| {
        issuer.set(|now| now.only_at_user_info = vec!["preferred_username", "name"]);
        signed_in(club, issuer);
        assert_eq!(users_named(club, "newcomer"), 1);
        // Said of somebody else.
        issuer.set(|now| {
            now.user["sub"] = "subject-2".into();
            now.claims = json!({"sub": "subject-1"});
        });
        sign_in(&mut Browser::new(club), issuer).refused(400, "bad-login");
    });
}

#[test]
fn a_public_client_and_one_that_sends_its_secret_in_the_body_are_told_apart() {
    let issuer = Issuer::start();
    // This provider's clients are confidential, and by HTTP Basic: the others are not let in, and nobody is told why.
    let mut public = issuer.options();
    let at = public.iter().position(|option| option == "--oauth-client-secret").unwrap();
    public.drain(at..at + 2);
    let club = start(Backend::Sqlite, &public, &[]);
    sign_in(&mut Browser::new(&club), &issuer).refused(503, "sign-in-misconfigured");
    issuer.set(|now| now.metadata = json!({"token_endpoint_auth_methods_supported": ["client_secret_post"]}));
    let club = issuer.club(Backend::Sqlite);
    sign_in(&mut Browser::new(&club), &issuer).refused(503, "sign-in-misconfigured");
    issuer.set(|now| {
        now.metadata = json!({"token_endpoint_auth_methods_supported": ["client_secret_post", "client_secret_basic"]});
    });
    let club = issuer.club(Backend::Sqlite);
    assert!(
        sign_in(&mut Browser::new(&club), &issuer)
            .expect(302)
            .header("set-cookie")
            .unwrap()
            .starts_with(SESSION_COOKIE)
    );
}

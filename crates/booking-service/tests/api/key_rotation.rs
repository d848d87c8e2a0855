//! The replacement of the installation's key, by the steps of docs/operations.md.

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;
use serde_json::json;

use crate::{
    harness::{Answer, BOB, Club, id},
    issuer::Issuer,
    sign_in::{Browser, begin, both},
    tokens::by_token,
};

const OLD: &str = "the-old-key-of-the-installation-4f1c";
const NEW: &str = "the-new-key-of-the-installation-97ab";

/// Starts another replica with these keys, and returns its index.
fn replica(club: &mut Club, keys: &[&str]) -> usize {
    club.config.key.secret_key = Some(keys.join("\n").parse().unwrap());
    assert!(club.config.faults().is_empty(), "{:?}", club.config.faults());
    club.start_another()
}

fn feed_path(club: &Club, replica: usize) -> String {
    let answer = club.by(BOB).at(replica).get("/api/users/me/ical").expect(200).json();
    format!("/api/ical/v1/{}{}", id(BOB), answer["secret"].as_str().unwrap())
}

/// Creates a token, or replays the answer with the token.
fn make_token(club: &Club, replica: usize) -> Answer {
    let client = club.by(BOB).at(replica).header("idempotency-key", "once");
    client.post("/api/users/me/tokens", json!({"name": "bot", "scope": "read"}))
}

fn former_uses(club: &Club, replica: usize) -> u32 {
    let metrics = club.anonymous().at(replica).get("/metrics").expect(200).text();
    let line = metrics.lines().find_map(|line| line.strip_prefix("former_key_uses_total "));
    line.expect(&metrics).parse().unwrap()
}

#[rstest]
fn values_of_a_former_key_are_valid_until_it_is_removed(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut club = club;
    let old = replica(&mut club, &[OLD]);
    let known = replica(&mut club, &[OLD, NEW]);
    let new = replica(&mut club, &[NEW, OLD]);
    let only_new = replica(&mut club, &[NEW]);

    let mut browser = Browser { service: old, ..Browser::new(&club) };
    browser.sign_in(BOB);
    let address = feed_path(&club, old);
    let made = make_token(&club, old).expect(201);
    let token = made.json()["token"].as_str().unwrap().to_owned();

    // The key of these values is now a former key.
    browser.service = new;
    assert_eq!(browser.who().as_deref(), Some(BOB));
    by_token(&club, &token).at(new).get("/api/users/me").expect(200);
    let feed = |path: &str, replica| club.anonymous().at(replica).get(path);
    assert_eq!(feed(&address, new).expect(200).body, feed(&address, old).expect(200).body);
    let again = make_token(&club, new).expect(201);
    assert_eq!((again.header("idempotency-replayed"), &again.body), (Some("true"), &made.body));
    assert_eq!((former_uses(&club, new), former_uses(&club, old)), (2, 0));

    // A replica on which the new key is not yet the first one accepts its values.
    let new_address = feed_path(&club, new);
    assert_ne!(new_address, address);
    for replica in [known, new, only_new] {
        feed(&new_address, replica).expect(200);
    }
    feed(&new_address, old).refused(404, "not-found");

    // Without the old key, sessions and tokens are still valid. Its feed addresses and stored secrets are not.
    browser.service = only_new;
    assert_eq!(browser.who().as_deref(), Some(BOB));
    by_token(&club, &token).at(only_new).get("/api/users/me").expect(200);
    feed(&address, only_new).refused(404, "not-found");
    let refused = make_token(&club, only_new).refused(422, "idempotency-key-reused");
    assert_eq!(refused["detail"], "The answer can no longer be shown.");

    // A new address replaces both.
    let changed = club.by(BOB).at(new).put("/api/users/me/ical", json!({})).expect(200).json();
    for path in [&address, &new_address] {
        feed(path, new).refused(404, "not-found");
    }
    feed(&format!("/api/ical/v1/{}{}", id(BOB), changed["secret"].as_str().unwrap()), only_new).expect(200);
}

#[test]
fn a_replica_with_the_new_key_finishes_a_pending_sign_in() {
    both(|backend| {
        let issuer = Issuer::start();
        let mut club = issuer.club(backend);
        let old = replica(&mut club, &[OLD]);
        let new = replica(&mut club, &[NEW, OLD]);
        let only_new = replica(&mut club, &[NEW]);
        for (end, status) in [(old, 302), (new, 302), (only_new, 400)] {
            let mut browser = Browser { service: old, ..Browser::new(&club) };
            // The issuer checks the verifier, which is derived from the key, against the challenge.
            let address = begin(&mut browser);
            browser.service = end;
            browser.get(&issuer.approve(&address)).expect(status);
        }
    });
}

//! Bearer tokens of a real issuer, found by discovery.

use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::harness::{ALICE, Answer, BOB, Backend, CAROL, Club, id};

#[allow(dead_code, reason = "not every crate's tests need all of it")]
#[path = "../../../service-kit/tests/shared/provider.rs"]
pub mod real;
use self::real::{Provider, RESOURCE, Registered};

const BACK: &str = "http://127.0.0.1:1/back";

fn client(provider: &Provider) -> Registered {
    provider.register(BACK, "none", "RS256")
}

/// A service that accepts the provider's tokens for this audience.
fn club(provider: &Provider, audience: &str) -> Club {
    Club::start_with(Backend::Sqlite, &["--oidc-issuer", &provider.issuer, "--oidc-audience", audience])
}

fn me(club: &Club, token: &str) -> Answer {
    club.anonymous().header("authorization", &format!("Bearer {token}")).get("/api/v1/users/me")
}

fn edit(club: &Club, token: &str, member: &str) -> Answer {
    let client = club.anonymous().header("authorization", &format!("Bearer {token}"));
    client.patch(&format!("/api/v1/users/{}", id(member)), json!({"bio": "x"}))
}

/// The token with another character in the middle of one of its parts.
fn altered(token: &str, part: usize) -> String {
    let mut parts: Vec<_> = token.split('.').map(str::to_owned).collect();
    let middle = parts[part].len() / 2;
    let other = if &parts[part][middle..=middle] == "A" { "B" } else { "A" };
    parts[part].replace_range(middle..=middle, other);
    parts.join(".")
}

#[test]
fn an_access_token_identifies_the_caller() {
    let provider = Provider::start();
    let club = club(&provider, RESOURCE);
    let client = client(&provider);
    let bob = provider.tokens(&client, BOB).access;
    assert_eq!(me(&club, &bob).expect(200).json()["name"], BOB);
    edit(&club, &bob, BOB).expect(204);
    edit(&club, &bob, CAROL).refused(403, "forbidden");
    edit(&club, &provider.tokens(&client, ALICE).access, CAROL).expect(204);
    me(&club, &provider.tokens(&client, "nobody").access).refused(404, "not-found");
    me(&club, &provider.tokens(&client, "no name").access).refused(401, "bad-credentials");
    // A token of the same client, whose audience is the client and not this service.
    me(&club, &provider.tokens(&client, BOB).id).refused(401, "bad-credentials");
    for part in 0..3 {
        me(&club, &altered(&bob, part)).refused(401, "bad-credentials");
    }
    let unsigned = format!("{}.", bob.rsplit_once('.').unwrap().0);
    me(&club, &unsigned).refused(401, "bad-credentials");
    // It is valid for ten minutes, and clocks may differ by one.
    club.clock.advance(TimeDelta::minutes(10));
    me(&club, &bob).expect(200);
    club.clock.advance(TimeDelta::minutes(2));
    me(&club, &bob).refused(401, "bad-credentials");
}

#[test]
fn an_id_token_identifies_the_caller_to_its_audience() {
    let provider = Provider::start();
    for algorithm in ["RS256", "ES256"] {
        let ours = provider.register(BACK, "client_secret_post", algorithm);
        let club = club(&provider, &ours.id);
        let bob = provider.tokens(&ours, BOB);
        assert_eq!(me(&club, &bob.id).expect(200).json()["name"], BOB, "{algorithm}");
        edit(&club, &bob.id, BOB).expect(204);
        edit(&club, &bob.id, CAROL).refused(403, "forbidden");
        me(&club, &bob.access).refused(401, "bad-credentials");
        me(&club, &provider.tokens(&client(&provider), BOB).id).refused(401, "bad-credentials");
        for part in 0..3 {
            me(&club, &altered(&bob.id, part)).refused(401, "bad-credentials");
        }
        club.clock.advance(TimeDelta::minutes(12));
        me(&club, &bob.id).refused(401, "bad-credentials");
    }
    let ours = provider.register(BACK, "none", "PS256");
    let unlisted: Value =
        me(&club(&provider, &ours.id), &provider.tokens(&ours, BOB).id).refused(401, "bad-credentials");
    assert!(unlisted["detail"].as_str().unwrap().contains("algorithm"), "{unlisted}");
}

#[test]
fn tokens_of_former_keys_and_of_other_issuers_are_refused() {
    let (mut provider, other) = (Provider::start(), Provider::start());
    let old = provider.tokens(&client(&provider), BOB).access;
    provider.restart();
    let club = club(&provider, RESOURCE);
    me(&club, &old).refused(401, "bad-credentials");
    me(&club, &other.tokens(&client(&other), BOB).access).refused(401, "bad-credentials");
    me(&club, &provider.tokens(&client(&provider), BOB).access).expect(200);
}

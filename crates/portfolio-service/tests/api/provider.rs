//! The provider of the tests of sign-in and tokens: it validates requests, and the verifier accepts its tokens and
//! keys.

use club_issuer::{Expectations, OtherAudiences, cached_fetch::RefreshPolicy};
use common::{problem::Problem, time::Clock};
use portfolio_service::bearer::{BearerSettings, BearerTokens};

use crate::real_issuer::real::{CHALLENGE, Jar, Provider, RESOURCE, Registered, VERIFIER, parameter};

const BACK: &str = "http://127.0.0.1:1/back";

/// The code or the error with which the provider redirects a browser back.
fn back(provider: &Provider, client: &Registered, more: &[(&str, &str)]) -> Result<String, String> {
    let parameters = [&[("redirect_uri", BACK)], more].concat();
    let back = provider.visit(&mut Jar::default(), &provider.authorize(client, "bob", &parameters)).unwrap();
    assert!(back.as_str().starts_with(BACK), "{back}");
    assert_eq!(parameter(&back, "state").as_deref(), Some("s"));
    assert_eq!(parameter(&back, "iss").as_ref(), Some(&provider.issuer), "RFC 9207");
    parameter(&back, "code").ok_or_else(|| parameter(&back, "error").unwrap())
}

#[test]
fn the_provider_validates_requests_of_clients() {
    let provider = Provider::start();
    for method in ["none", "client_secret_post"] {
        let client = provider.register(BACK, method, "RS256");
        let good = [("code_challenge", CHALLENGE), ("code_challenge_method", "S256")];
        assert_eq!(back(&provider, &client, &[]), Err("invalid_request".to_owned()), "no PKCE");
        let plain = [("code_challenge", VERIFIER), ("code_challenge_method", "plain")];
        assert_eq!(back(&provider, &client, &plain), Err("invalid_request".to_owned()), "plain PKCE");
        let elsewhere = [&[("redirect_uri", "http://127.0.0.1:1/elsewhere")], &good[..]].concat();
        let refused = provider.visit(&mut Jar::default(), &provider.authorize(&client, "bob", &elsewhere));
        assert_eq!(refused.unwrap_err().0, 400, "an address that is not registered");
        let denied = [&[("redirect_uri", BACK)], &good[..]].concat();
        let denied = provider.visit(&mut Jar::default(), &provider.authorize(&client, "deny", &denied)).unwrap();
        assert_eq!(parameter(&denied, "error").as_deref(), Some("access_denied"));

        let exchange = |code: &str, verifier: &str, redirect: &str| {
            let form = [("code", code), ("code_verifier", verifier), ("redirect_uri", redirect)];
            let (status, said) = provider.exchange(&client, &form);
            (status, said["error"].as_str().unwrap_or_default().to_owned())
        };
        let refused = (400, "invalid_grant".to_owned());
        let wrong = VERIFIER.to_lowercase();
        assert_eq!(exchange(&back(&provider, &client, &good).unwrap(), &wrong, BACK), refused);
        assert_eq!(exchange(&back(&provider, &client, &good).unwrap(), VERIFIER, "http://127.0.0.1:1/x"), refused);
        let code = back(&provider, &client, &good).unwrap();
        assert_eq!(exchange(&code, VERIFIER, BACK), (200, String::new()));
        assert_eq!(exchange(&code, VERIFIER, BACK), refused, "a code is good for once");
        if method != "none" {
            let forged = Registered { secret: Some("guessed".to_owned()), redirect: BACK.to_owned(), id: client.id };
            assert_eq!(provider.exchange(&forged, &[("code", "x")]).0, 401);
        }
    }
}

fn name(tokens: &BearerTokens, token: &str) -> Result<String, Problem> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(tokens.check(token, Clock::default().now())).map(|named| named.name)
}

#[test]
fn a_verifier_fetches_new_keys_of_the_provider() {
    let mut provider = Provider::start();
    let settings = BearerSettings {
        issuer: provider.issuer.clone(),
        keys: None,
        expected: Expectations {
            audience: RESOURCE.to_owned(),
            others: OtherAudiences::Any,
            algorithms: vec!["RS256".parse().unwrap()],
        },
        name_claim: "preferred_username".to_owned(),
        admin_claim: None,
    };
    // As in production: a rotated key arrives within seconds of the last fetch.
    let verifier = BearerTokens::new(settings, RefreshPolicy::default());
    let token = |provider: &Provider| provider.tokens(&provider.register(BACK, "none", "RS256"), "bob").access;
    let old = token(&provider);
    assert_eq!(name(&verifier, &old).unwrap(), "bob");
    provider.restart();
    let new = token(&provider);
    assert_eq!(name(&verifier, &new).unwrap(), "bob");
    assert_eq!(name(&verifier, &old).unwrap_err().status(), 401, "its key is gone");
}

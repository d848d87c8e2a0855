//! No answer has private data of others. The tests write unmistakable strings into every private field and send every
//! GET as each kind of caller. A new private field needs a string in [`plant`].

use crate::harness::Backend::{self, Postgres, Sqlite};
use portfolio_service::server::INFO;
use rstest::rstest;
use serde_json::json;
use service_kit::database::types::DbUuid;

use crate::{
    events,
    harness::{ALICE, Answer, BOB, CAROL, Client, Club, DAVE, DOCUMENT, DORA, SUSAN, id, real_name},
    objects::Objects,
};

/// Every kind of caller; the empty name is an anonymous one.
const CALLERS: [&str; 7] = ["", ALICE, BOB, CAROL, SUSAN, DORA, "stranger"];

/// A private string.
struct Secret {
    text: String,
    /// The prefix of the paths at which it is private.
    path_prefix: &'static str,
    /// Who may see it there.
    seen_by: Vec<&'static str>,
}

fn secret(text: impl Into<String>, path_prefix: &'static str, seen_by: &[&'static str]) -> Secret {
    Secret { text: text.into(), path_prefix, seen_by: seen_by.to_vec() }
}

/// Creates objects whose private fields have secrets.
fn plant(club: &Club, objects: &mut Objects) -> Vec<Secret> {
    objects.grow(club, 2);
    // Every member has a real name. Dave publishes his.
    club.by(DAVE).patch(&format!("/api/v1/users/{}", id(DAVE)), json!({"check": true})).expect(204);
    let mut secrets = vec![secret(real_name(DAVE), "", &CALLERS), secret(real_name("m"), "", &[])];
    secrets.extend([ALICE, BOB, CAROL, SUSAN, DORA].map(|name| secret(real_name(name), "", &[])));

    // A user who hosts only the events below.
    let host = "secret-host";
    objects.add_user(club, id(host), host);
    secrets.push(secret(real_name(host), "", &[]));
    let mut event = |name: &str, level: Option<i16>| {
        let id = events::plant(club, name, "2026-04-04T09:00:00Z", &[BOB, SUSAN, DORA, host], level);
        objects.add("eventId", DbUuid(id.parse().unwrap()));
        id
    };
    // Only active hosts and admins see a private event.
    let private = event("never-to-be-seen", Some(2));
    let insiders = [ALICE, BOB];
    secrets.extend(["never-to-be-seen", "about never-to-be-seen", &private].map(|text| secret(text, "", &insiders)));
    // Only active hosts and admins see who hosts an anonymous event.
    for (name, level) in [("by-somebody", Some(0)), ("by-who-knows", None)] {
        event(name, level);
        secrets.push(secret(name, "/api/v1/users/", &insiders));
    }
    secrets.push(secret(host, "/api/v1/events", &insiders));
    secrets
}

/// Paths besides those of the operations.
const OTHER_PATHS: [&str; 23] = [
    "/api/v1/users?name=bob",
    "/api/v1/users?name=susan",
    "/api/v1/users?includeSuspended=true",
    "/api/v1/users?name=bob&includeSuspended=true",
    "/api/v1/users/00000000-0000-4000-8000-000000000001",
    "/api/v1/users/bob",
    "/api/v1/nowhere",
    "/metrics",
    "/readyz?verbose",
    "/problems",
    "/openapi.json",
    "/docs/",
    "/robots.txt",
    "/sitemap.xml",
    "/people?search=name",
    "/language",
    "/people/alice",
    "/people/bob",
    "/people/carol",
    "/people/dave",
    "/people/susan",
    "/people/dora",
    "/people/secret-host",
];

fn every_get(objects: &Objects) -> Vec<String> {
    let templates = DOCUMENT["paths"].as_object().unwrap().iter().filter(|(_, item)| item["get"].is_object());
    let mut paths: Vec<_> = templates.flat_map(|(template, _)| objects.paths(template, false)).collect();
    let pages = INFO.front_page_paths.iter().filter(|template| !template.contains("{name}"));
    paths.extend(pages.flat_map(|template| objects.paths(template, false)));
    paths.extend(OTHER_PATHS.map(str::to_owned));
    paths
}

/// The headers and the body of an answer.
fn headers_and_body(answer: &Answer) -> String {
    format!("{:?} {}", answer.headers, answer.text())
}

fn by<'a>(club: &'a Club, caller: &str) -> Client<'a> {
    if caller.is_empty() { club.anonymous() } else { club.by(caller) }
}

/// Takes seconds: every `GET` is called by every kind of caller.
#[rstest]
fn every_caller_sees_only_the_secrets_that_they_may_see(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut objects = Objects::new();
    let secrets = plant(&club, &mut objects);
    let paths = every_get(&objects);
    for caller in CALLERS {
        let mut seen = vec![false; secrets.len()];
        for path in &paths {
            let found = headers_and_body(&by(&club, caller).get(path));
            let here = |secret: &Secret| path.starts_with(secret.path_prefix) && found.contains(&secret.text);
            for (secret, seen) in secrets.iter().zip(&mut seen).filter(|(secret, _)| here(secret)) {
                assert!(secret.seen_by.contains(&caller), "{caller:?} sees {:?} at {path}: {found}", secret.text);
                *seen = true;
            }
        }
        for (secret, seen) in secrets.iter().zip(seen) {
            assert_eq!(seen, secret.seen_by.contains(&caller), "{caller:?} and {:?}", secret.text);
        }
    }
}

#[rstest]
fn a_refusal_has_no_private_data(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let bob = format!("/api/v1/users/{}", id(BOB));
    for caller in CALLERS.into_iter().filter(|caller| ![ALICE, BOB].contains(caller)) {
        for (method, path) in [("PATCH", bob.clone()), ("POST", format!("{bob}/accounts"))] {
            let found = by(&club, caller).send(method, &path, Some(json!({"bio": "x"})));
            assert!(found.status >= 400 && !headers_and_body(&found).contains("real name of"), "{caller:?} {path}");
        }
    }
}

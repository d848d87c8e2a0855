//! Nothing private comes out, whoever asks: unmistakable strings in every private field, and a walk through all GETs
//! as each kind of caller. What is new and private is planted in [`plant`].

use crate::harness::Backend::{self, Postgres, Sqlite};
use rstest::rstest;
use serde_json::json;
use service_kit::database::types::DbUuid;

use crate::{
    events,
    harness::{ALICE, Answer, BOB, CAROL, Client, Club, DAVE, DOCUMENT, DORA, SUSAN, id, real_name},
    objects::Objects,
};

/// Every kind of caller; the empty name is nobody.
const CALLERS: [&str; 7] = ["", ALICE, BOB, CAROL, SUSAN, DORA, "stranger"];

/// A string, where it is secret, and who may see it there.
struct Secret {
    text: String,
    /// How the paths begin at which it is one.
    at: &'static str,
    seen_by: Vec<&'static str>,
}

fn secret(text: impl Into<String>, at: &'static str, seen_by: &[&'static str]) -> Secret {
    Secret { text: text.into(), at, seen_by: seen_by.to_vec() }
}

/// Makes objects whose private fields hold secrets.
fn plant(club: &Club, objects: &mut Objects) -> Vec<Secret> {
    objects.grow(club, 2);
    // Every member has a real name; dave publishes his.
    club.by(DAVE).patch(&format!("/api/v1/users/{}", id(DAVE)), json!({"check": true})).expect(204);
    let mut secrets = vec![secret(real_name(DAVE), "", &CALLERS), secret(real_name("m"), "", &[])];
    secrets.extend([ALICE, BOB, CAROL, SUSAN, DORA].map(|name| secret(real_name(name), "", &[])));

    // Somebody who hosts nothing else.
    let host = "secret-host";
    objects.add_user(club, id(host), host);
    secrets.push(secret(real_name(host), "", &[]));
    let mut event = |name: &str, level: Option<i16>| {
        let id = events::plant(club, name, "2026-04-04T09:00:00Z", &[BOB, SUSAN, DORA, host], level);
        objects.add("eventId", DbUuid(id.parse().unwrap()));
        id
    };
    // A private event is for its hosts and admins, with all that is known of it; hosts who are not active are not asked.
    let private = event("never-to-be-seen", Some(2));
    let insiders = [ALICE, BOB];
    secrets.extend(["never-to-be-seen", "about never-to-be-seen", &private].map(|text| secret(text, "", &insiders)));
    // Who hosted an anonymous event is for its hosts and admins.
    for (name, level) in [("by-somebody", Some(0)), ("by-who-knows", None)] {
        event(name, level);
        secrets.push(secret(name, "/api/v1/users/", &insiders));
    }
    secrets.push(secret(host, "/api/v1/events", &insiders));
    secrets
}

/// What to ask besides the operations themselves.
const ASIDES: [&str; 22] = [
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
    "/",
    "/projects",
    "/contests",
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
    let pages = ["/projects/{projectId}", "/contests/{contestId}"];
    paths.extend(pages.iter().flat_map(|template| objects.paths(template, false)));
    paths.extend(ASIDES.map(str::to_owned));
    paths
}

/// Everything in an answer that somebody could read.
fn whole(answer: &Answer) -> String {
    format!("{:?} {}", answer.headers, answer.text())
}

fn by<'a>(club: &'a Club, caller: &str) -> Client<'a> {
    if caller.is_empty() { club.anonymous() } else { club.by(caller) }
}

#[rstest]
fn nobody_sees_what_is_not_for_them(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut objects = Objects::new();
    let secrets = plant(&club, &mut objects);
    let paths = every_get(&objects);
    for caller in CALLERS {
        let mut seen = vec![false; secrets.len()];
        for path in &paths {
            let found = whole(&by(&club, caller).get(path));
            let here = |secret: &Secret| path.starts_with(secret.at) && found.contains(&secret.text);
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
fn a_refusal_says_nothing_private_either(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let bob = format!("/api/v1/users/{}", id(BOB));
    for caller in CALLERS.into_iter().filter(|caller| ![ALICE, BOB].contains(caller)) {
        for (method, path) in [("PATCH", bob.clone()), ("POST", format!("{bob}/accounts"))] {
            let found = by(&club, caller).send(method, &path, Some(json!({"bio": "x"})));
            assert!(found.status >= 400 && !whole(&found).contains("real name of"), "{caller:?} {path}");
        }
    }
}

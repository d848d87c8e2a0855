//! Nothing private comes out, whoever asks: unmistakable strings in every private field, and a walk through all GETs
//! as each kind of caller. A new slice plants its own in [`plant`].

use serde_json::json;
use service_kit::db::sql::Uid;

use crate::{
    events::plant as plant_event,
    harness::{ALICE, Answer, BOB, CAROL, Client, Club, DAVE, DOCUMENT, DORA, SUSAN, id, on_both, real_name},
    objects::Objects,
};

/// Every kind of caller; the empty name is nobody.
const CALLERS: [&str; 7] = ["", ALICE, BOB, CAROL, SUSAN, DORA, "stranger"];

/// A string, and who may see it.
struct Secret {
    text: String,
    seen_by: Vec<&'static str>,
}

/// Makes objects whose private fields hold secrets.
fn plant(club: &Club, objects: &mut Objects) -> Vec<Secret> {
    objects.grow(club, 2);
    // Every member has a real name; dave publishes his.
    club.by(DAVE).patch(&format!("/api/v1/users/{}", id(DAVE)), json!({"check": true})).expect(204);
    let private = plant_event(club, "plot", "2026-04-04T09:00:00Z", &[BOB, SUSAN], Some(2));
    objects.add("eventId", Uid(private.parse().unwrap()));
    // The hosts of an anonymous event are told by the events of each, and by the event.
    let anonymous = plant_event(club, "seance", "2026-04-04T09:00:00Z", &[BOB, SUSAN], Some(0));
    objects.add("eventId", Uid(anonymous.parse().unwrap()));
    let plot = ["about plot", "place of plot"].map(|text| Secret { text: text.to_owned(), seen_by: vec![ALICE, BOB] });
    let plot_id = Secret { text: private, seen_by: vec![ALICE, BOB] };
    let hidden = [ALICE, BOB, CAROL, SUSAN, DORA].map(|name| Secret { text: real_name(name), seen_by: Vec::new() });
    let others = Secret { text: real_name("m"), seen_by: Vec::new() };
    let published = Secret { text: real_name(DAVE), seen_by: CALLERS.to_vec() };
    hidden.into_iter().chain(plot).chain([plot_id, others, published]).collect()
}

/// What to ask besides the operations themselves.
const ASIDES: [&str; 12] = [
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
];

fn every_get(objects: &Objects) -> Vec<String> {
    let templates = DOCUMENT["paths"].as_object().unwrap().iter().filter(|(_, item)| item["get"].is_object());
    let mut paths: Vec<_> = templates.flat_map(|(template, _)| objects.paths(template, false)).collect();
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

on_both! {
    nobody_sees_what_is_not_for_them(club) {
        let mut objects = Objects::new();
        let secrets = plant(&club, &mut objects);
        let paths = every_get(&objects);
        for caller in CALLERS {
            let mut seen = vec![false; secrets.len()];
            for path in &paths {
                let found = whole(&by(&club, caller).get(path));
                for (secret, seen) in secrets.iter().zip(&mut seen).filter(|(secret, _)| found.contains(&secret.text)) {
                    assert!(secret.seen_by.contains(&caller), "{caller:?} sees {:?} at {path}: {found}", secret.text);
                    *seen = true;
                }
            }
            for (secret, seen) in secrets.iter().zip(seen) {
                assert_eq!(seen, secret.seen_by.contains(&caller), "{caller:?} and {:?}", secret.text);
            }
        }
    }

    a_refusal_says_nothing_private_either(club) {
        let bob = format!("/api/v1/users/{}", id(BOB));
        for caller in CALLERS.into_iter().filter(|caller| ![ALICE, BOB].contains(caller)) {
            for (method, path) in [("PATCH", bob.clone()), ("POST", format!("{bob}/accounts"))] {
                let found = by(&club, caller).send(method, &path, Some(json!({"bio": "x"})));
                assert!(found.status >= 400 && !whole(&found).contains("real name of"), "{caller:?} {path}");
            }
        }
    }
}

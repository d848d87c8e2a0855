//! Rules for all operations.

use crate::harness::{
    Backend::{self, Postgres, Sqlite},
    Club,
};
use rstest::rstest;
use serde_json::json;

use crate::{
    harness::{BOB, DOCUMENT, SUSAN},
    objects::{Objects, reader},
};

#[rstest]
fn ping_needs_nothing(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    assert_eq!(club.anonymous().get("/api/v1/ping").expect(200).json(), "pong");
    club.by(SUSAN).get("/api/v1/ping").expect(200);
    club.anonymous().get("/api/v1/nowhere").refused(404, "not-found");
    assert_eq!(club.anonymous().put("/api/v1/ping", json!({})).expect(405).header("allow"), Some("GET, HEAD"));
    club.anonymous().get("/readyz").expect(200);
}

#[rstest]
fn an_unsupported_method_is_405_with_the_supported_ones(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut objects = Objects::new();
    objects.grow(&club, 1);
    for (template, item) in DOCUMENT["paths"].as_object().unwrap() {
        let path = &objects.paths(template, true)[0];
        let mut supported: Vec<_> = item.as_object().unwrap().keys().map(|method| method.to_uppercase()).collect();
        if supported.contains(&"GET".to_owned()) {
            supported.push("HEAD".to_owned());
        }
        supported.sort();
        for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
            if supported.iter().any(|supported| supported == method) {
                continue;
            }
            for client in [club.anonymous(), club.by(BOB)] {
                let answer = client.send(method, path, None).expect(405);
                assert_eq!(answer.header("allow"), Some(&*supported.join(", ")), "{method} {template}");
            }
        }
        for unknown in [format!("{path}/"), format!("{path}/x/y/z"), format!("/api/v2{path}")] {
            for client in [club.anonymous(), club.by(BOB)] {
                client.get(&unknown).refused(404, "not-found");
                client.post(&unknown, json!({})).refused(404, "not-found");
            }
        }
    }
}

#[rstest]
fn head_answers_as_get_does_without_a_body(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut objects = Objects::new();
    objects.grow(&club, 1);
    let gets = DOCUMENT["paths"].as_object().unwrap().iter().filter(|(_, item)| item["get"].is_object());
    for (template, _) in gets {
        let path = &objects.paths(template, true)[0];
        let get = club.by(reader(template)).get(path).expect(200);
        let head = club.by(reader(template)).send("HEAD", path, None).expect(200);
        assert!(head.body.is_empty(), "{template}");
        assert_eq!(head.header("content-type"), get.header("content-type"), "{template}");
    }
    club.anonymous().send("HEAD", "/api/v1/users/me", None).expect(401);
    club.anonymous().send("HEAD", "/api/v1/nowhere", None).expect(404);
}

#[rstest]
fn every_list_takes_a_limit_from_1_to_1000(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut objects = Objects::new();
    objects.grow(&club, 3);
    for (template, item) in DOCUMENT["paths"].as_object().unwrap() {
        let schema = &item["get"]["responses"]["200"]["content"]["application/json"]["schema"];
        if schema["type"] != "array" {
            continue;
        }
        let path = &objects.paths(template, true)[0];
        let length = |limit: &str| {
            club.by(reader(template)).get(&format!("{path}?limit={limit}")).expect(200).json().as_array().unwrap().len()
        };
        assert_eq!((length("1"), length("1000") > 1), (1, true), "{template}");
        for bad in ["0", "1001", "-1", "+1", "01x", "1.0", "99999999999999999999", "1&limit=1"] {
            let answer = club.by(reader(template)).get(&format!("{path}?limit={bad}")).expect(400);
            assert_eq!(answer.pointers(), ["limit"], "{template} {bad}");
        }
    }
}

#[rstest]
fn every_list_is_complete_in_pages(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut objects = Objects::new();
    objects.grow(&club, 3);
    for (template, item) in DOCUMENT["paths"].as_object().unwrap() {
        if item["get"]["responses"]["200"]["content"]["application/json"]["schema"]["type"] != "array" {
            continue;
        }
        let path = &objects.paths(template, true)[0];
        let (mut rows, mut next) = (Vec::new(), Some(format!("{path}?limit=1")));
        while let Some(path) = next {
            let page = club.by(reader(template)).get(&path).expect(200);
            rows.extend(page.json().as_array().unwrap().clone());
            next = page.header("link").map(|link| link.split(['<', '>']).nth(1).unwrap().to_owned());
        }
        assert_eq!(club.by(reader(template)).get(path).expect(200).json(), json!(rows), "{template}");
    }
}

#[rstest]
fn every_body_is_json_or_a_picture_of_a_mebibyte_at_most(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let mut objects = Objects::new();
    objects.grow(&club, 1);
    for (template, item) in DOCUMENT["paths"].as_object().unwrap() {
        let path = &objects.paths(template, true)[0];
        for (method, operation) in item.as_object().unwrap() {
            if operation["requestBody"].is_null() {
                continue;
            }
            let send = |kind: &str, body: Vec<u8>| {
                club.by(BOB).header("content-type", kind).send_bytes(&method.to_uppercase(), path, body)
            };
            send("application/json", vec![b' '; (1 << 20) + 1]).refused(413, "payload-too-large");
            for kind in ["text/plain", "application/x-www-form-urlencoded", "application/jsonx"] {
                send(kind, b"{}".to_vec()).refused(415, "unsupported-media-type");
            }
            if operation["requestBody"]["content"]["application/json"].is_null() {
                continue;
            }
            for broken in [&b"{"[..], b"nul", b"\xff", b"{\"name\":\"\xed\xa0\x80\"}"] {
                send("application/json", broken.to_vec()).refused(400, "malformed-json");
            }
            if method == "patch" {
                send("application/json", Vec::new()).expect(204);
            } else {
                send("application/json", Vec::new()).refused(400, "malformed-json");
            }
            for other in ["null", "[]", "5", "\"x\""] {
                send("application/json; charset=utf-8", other.into()).refused(400, "invalid-body");
            }
        }
    }
}

#[rstest]
fn development_mode_accepts_only_loopback_hosts(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for host in ["evil.example", "evil.example:3000", "127.0.0.1.evil.example", "10.0.0.1"] {
        for path in ["/api/v1/nowhere", "/livez", "/docs/", "/nowhere"] {
            club.anonymous().header("host", host).get(path).refused(421, "misdirected-request");
        }
    }
    for host in ["localhost", "localhost:3000", "127.0.0.1", "[::1]:80"] {
        club.anonymous().header("host", host).get("/api/v1/ping").expect(200);
    }
}

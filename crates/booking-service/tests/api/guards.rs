//! Rules for every operation: refusals, other sites, paths, methods, HEAD. The requests are generated from the OpenAPI
//! document, so they include new operations. The tests of access are in `matrix`.

use crate::harness::{
    Backend::{self, Postgres, Sqlite},
    Club,
};
use rstest::rstest;
use serde_json::{Value, json};
use std::{
    io::{Read, Write},
    net::TcpStream,
};

use crate::{
    builders::{At, event, group, poll},
    harness::{ALICE, Answer, BOB, CAROL, Client, DOCUMENT, SUSAN, id},
    matrix::Operation,
    series::series,
    tokens::{by_token, make_token},
};

/// Sends an operation with this value for each path parameter.
fn send(operation: &Operation, client: Client<'_>, value: &str) -> Answer {
    operation.send(client, &operation.path_with(|_| value.to_owned()), &json!({}))
}

fn operations_with_sign_in() -> Vec<Operation> {
    Operation::all().into_iter().filter(|operation| !operation.is_public()).collect()
}

/// Calls `visit` with each value in a document and its JSON pointer.
fn walk(value: &Value, at: &str, visit: &mut impl FnMut(&Value, &str)) {
    visit(value, at);
    match value {
        Value::Object(members) => members.iter().for_each(|(name, member)| {
            walk(member, &format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), visit);
        }),
        Value::Array(items) => items.iter().enumerate().for_each(|(n, item)| walk(item, &format!("{at}/{n}"), visit)),
        _ => {}
    }
}

#[test]
fn references_and_examples_of_the_document_are_valid() {
    let schemas = DOCUMENT["components"]["schemas"].as_object().unwrap();
    for generic in ["Text", "IdSet", "Id"] {
        assert!(!schemas.contains_key(generic), "{generic} stands for types of different bounds");
    }
    walk(&DOCUMENT, "", &mut |value, at| {
        if let Some(reference) = value["$ref"].as_str() {
            let target = reference.strip_prefix('#').and_then(|pointer| DOCUMENT.pointer(pointer));
            assert!(target.is_some(), "{at} refers to {reference}");
        }
        if let (Some(example), Some(schema)) = (value.get("example"), value.get("schema"))
            && !at.contains("csv")
        {
            let schema = json!({"components": DOCUMENT["components"], "allOf": [schema]});
            let validator = jsonschema::validator_for(&schema).unwrap_or_else(|error| panic!("{at}: {error}"));
            let errors: Vec<_> = validator.iter_errors(example).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{at}: {errors:?}");
        }
    });
    let tag = &schemas["RequestTag"]["properties"]["name"];
    assert_eq!((&tag["minLength"], &tag["maxLength"]), (&json!(1), &json!(16)));
    assert_eq!(schemas["RequestRoom"]["properties"]["admins"]["minItems"], 1);
    let is_valid = |schema: &Value, value: &Value| jsonschema::validator_for(schema).unwrap().is_valid(value);
    for (name, expected) in
        [("x", true), ("a\tb", true), (" 五 ", true), (" ", false), ("a\u{0}", false), ("\u{85}", false)]
    {
        assert_eq!(is_valid(tag, &json!(name)), expected, "{name:?}");
    }
}

#[rstest]
fn the_version_is_for_everybody(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let answer = club.anonymous().get("/api/version").expect(200);
    let version = answer.json();
    assert_eq!(version["version"].as_str(), answer.header("x-knoq-version"));
    assert!(!version["revision"].as_str().unwrap().is_empty());
}

#[rstest]
fn an_unauthenticated_caller_does_not_learn_what_exists(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let reader = make_token(&club, ALICE, "read");
    let nothing = id("nothing").to_string();
    for operation in operations_with_sign_in() {
        send(&operation, club.anonymous(), &nothing).refused(401, "not-signed-in");
        send(&operation, club.by(SUSAN), &nothing).refused(403, "account-inactive");
        if operation.method != "GET" {
            send(&operation, by_token(&club, &reader), &nothing).refused(403, "insufficient-scope");
        }
    }
}

/// Takes seconds: every operation is called with every bad credential.
#[rstest]
fn a_bad_credential_is_401_whatever_else_is_wrong(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let revoked = make_token(&club, BOB, "write");
    let token_id = club.by(BOB).get("/api/users/me/tokens").json()[0]["tokenId"].as_str().unwrap().to_owned();
    club.by(BOB).delete(&format!("/api/users/me/tokens/{token_id}")).expect(204);
    let bad = [club.anonymous().header("cookie", "session=ended"), by_token(&club, &revoked)];
    let (nothing, mut refused) = (id("nothing").to_string(), 0);
    for operation in operations_with_sign_in() {
        let path = operation.path_with(|_| nothing.clone());
        let requests = [
            (path.clone(), "application/json", "{"),
            (path.clone(), "application/json", "[1]"),
            (path.clone(), "text/plain", "x"),
            (format!("{path}?limit=0&dateBegin=x&relation=x&force=x&dryRun=x&date=x"), "", ""),
            (operation.path_with(|_| "x".to_owned()), "", ""),
        ];
        // The client sends no body with a `GET`.
        let sendable = requests.into_iter().filter(|(_, _, body)| body.is_empty() || operation.method != "GET");
        for (path, media_type, body) in sendable {
            let send = |client: Client<'_>| {
                let client = if media_type.is_empty() { client } else { client.header("content-type", media_type) };
                client.send_bytes(&operation.method, &path, body.into())
            };
            for client in &bad {
                send(client.clone()).refused(401, "bad-credentials");
            }
            send(club.by(SUSAN)).refused(403, "account-inactive");
            // With a valid credential, the answer is about the request. The excluded operations end the session.
            if !operation.path.ends_with("/logout") && !operation.path.contains("session") {
                let answer = send(club.by(ALICE));
                assert_ne!(answer.status, 401, "{answer:?}");
                refused += usize::from(matches!(answer.status, 400 | 415));
            }
        }
        // Invalid headers.
        for (name, value) in [("if-match", "x"), ("if-none-match", "x"), ("idempotency-key", "")] {
            for client in &bad {
                send(&operation, client.clone().header(name, value), &nothing).refused(401, "bad-credentials");
            }
        }
    }
    assert!(refused > 100, "{refused}");
}

#[rstest]
fn rights_go_before_the_body(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let event = event(&club, BOB, At::Place("x"), (1, 2));
    let (group, (poll, _)) = (group(&club, BOB, "g", &[BOB]), poll(&club, BOB, json!({})));
    let poll = poll.rsplit('/').next().unwrap().to_owned();
    let (series, _) = series(&club, BOB, "y", "FREQ=DAILY;COUNT=2");
    let series = series.rsplit('/').next().unwrap().to_owned();
    for (method, path, id_of_path) in [
        ("PUT", format!("/api/events/{event}"), &event),
        ("POST", format!("/api/events/{event}/revert"), &event),
        ("PUT", format!("/api/groups/{group}"), &group),
        ("PUT", format!("/api/draft-events/{poll}"), &poll),
        ("POST", format!("/api/draft-events/{poll}/confirm"), &poll),
        ("PATCH", format!("/api/event-series/{series}"), &series),
        ("POST", format!("/api/event-series/{series}/occurrences"), &series),
    ] {
        let nowhere = path.replace(id_of_path.as_str(), &id("nothing").to_string());
        let large = " ".repeat(1_100_000);
        for (media_type, body, expected) in [
            ("application/json", "{", 400),
            ("application/json", "[1]", 400),
            ("text/plain", "x", 415),
            ("application/json", large.as_str(), 413),
        ] {
            let send = |by: &str, path: &str| {
                club.by(by).header("content-type", media_type).send_bytes(method, path, body.into())
            };
            send(CAROL, &path).refused(403, "forbidden");
            send(BOB, &nowhere).refused(404, "not-found");
            assert_eq!(send(BOB, &path).status, expected, "{method} {path}");
        }
    }
}

#[rstest]
fn a_bad_credential_is_401_before_a_body_that_is_too_large(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let status = |session: &str| {
        let mut stream = TcpStream::connect(club.origin(0).strip_prefix("http://").unwrap()).unwrap();
        let head = "POST /api/rooms HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json";
        write!(stream, "{head}\r\nContent-Length: 2000000\r\nCookie: session={session}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let needs_sign_in = answer.to_lowercase().contains("x-knoq-need-authorization: 1");
        (answer.split(' ').nth(1).unwrap().to_owned(), needs_sign_in)
    };
    assert_eq!(status("ended"), ("401".to_owned(), true));
    assert_eq!(status("session-of-bob"), ("413".to_owned(), false));
}

#[rstest]
fn a_page_of_plain_http_may_not_write_where_the_public_address_is_https(#[values(Sqlite, Postgres)] backend: Backend) {
    let urls = ["a", "t", "u"].map(|path| format!("https://sso.example/{path}"));
    let provider = ["--oauth-authorize-url", &urls[0], "--oauth-token-url", &urls[1], "--oauth-user-url", &urls[2]];
    let public = ["--public-url", "https://rooms.club.example", "--oauth-client-id", "club"];
    let club = Club::start_with(backend, &[&public[..], &provider].concat());
    let host = club.origin(0).strip_prefix("http://").unwrap().to_owned();
    let write = |origin: &str| club.by(BOB).header("origin", origin).put("/api/users/me/ical", json!({}));
    for origin in [format!("http://{host}"), "http://rooms.club.example".to_owned(), "https://127.0.0.1".to_owned()] {
        write(&origin).refused(403, "cross-site-request");
    }
    for origin in [format!("https://{host}"), "https://rooms.club.example".to_owned()] {
        write(&origin).expect(200);
    }
}

#[rstest]
fn another_site_is_refused_before_other_checks(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let writes: Vec<_> = Operation::all().into_iter().filter(|operation| operation.method != "GET").collect();
    assert!(writes.len() > 20);
    for operation in writes {
        // Only the cookie of these requests is valid.
        for path in [id("somebody").to_string(), "x".to_owned()].map(|id| operation.path_with(|_| id.clone())) {
            for media_type in [
                None,
                Some("text/plain"),
                Some("application/x-www-form-urlencoded"),
                Some("multipart/form-data"),
                Some("application/json"),
            ] {
                for (name, value) in [("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")] {
                    let client = club.by(BOB).header(name, value);
                    let client =
                        media_type.into_iter().fold(client, |client, kind| client.header("content-type", kind));
                    let body = vec![b'{'; 10];
                    client.send_bytes(&operation.method, &path, body).refused(403, "cross-site-request");
                }
            }
        }
    }
    // None of them ended the session.
    club.by(BOB).get("/api/users/me").expect(200);
}

#[rstest]
fn an_invalid_id_is_400_and_an_unknown_id_404(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for operation in operations_with_sign_in().iter().filter(|operation| operation.path.contains('{')) {
        for bad in ["x", "00000000-0000-0000-0000-000000000000", "0198c0de000070008000000000000001", "%FF"] {
            let refused = send(operation, club.by(ALICE), bad).expect(400);
            let parameters = operation.path.split(['{', '}']).skip(1).step_by(2);
            let mut ids: Vec<_> = parameters.filter(|parameter| !parameter.ends_with("Name")).collect();
            ids.sort_unstable();
            assert_eq!(refused.pointers(), ids, "{refused:?}");
        }
        let unknown = id("nothing").to_string();
        send(operation, club.by(ALICE), &unknown).refused(404, "not-found");
        send(operation, club.by(ALICE), &unknown.to_uppercase()).refused(404, "not-found");
    }
}

#[rstest]
fn an_unsupported_method_is_405_with_allow(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    let operations = Operation::all();
    let value = id("somebody").to_string();
    for path in operations.iter().map(|operation| &operation.path) {
        // A literal path has only its own methods: /rooms/all is not /rooms/{roomID}.
        let same = operations.iter().filter(|other| other.path == *path);
        let mut allowed: Vec<_> = same.map(|operation| &*operation.method).collect();
        if allowed.contains(&"GET") {
            allowed.push("HEAD");
        }
        allowed.sort_unstable();
        let one = operations.iter().find(|operation| operation.path == *path).unwrap();
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
            if !allowed.contains(&method) {
                let refused = club.by(BOB).send(method, &one.path_with(|_| value.clone()), None).expect(405);
                assert_eq!(refused.header("allow"), Some(&*allowed.join(", ")), "{method} {path}");
                refused.refused(405, "method-not-allowed");
            }
        }
    }
}

#[rstest]
fn head_is_get_without_a_body_everywhere(#[values(Sqlite, Postgres)] backend: Backend) {
    let club = Club::start(backend);
    for operation in Operation::all().iter().filter(|operation| operation.method == "GET") {
        let path = operation.path_with(|_| id(BOB).to_string());
        let (get, head) = (club.by(BOB).get(&path), club.by(BOB).send("HEAD", &path, None));
        assert_eq!((head.status, head.body.len()), (get.status, 0), "{path}");
        assert_eq!(head.header("content-type"), get.header("content-type"), "{path}");
    }
}

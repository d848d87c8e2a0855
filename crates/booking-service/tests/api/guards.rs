//! What holds for every operation: the contract's table, who may call, paths, methods, HEAD. The requests are made from
//! the OpenAPI document, so that a new operation is held to the same.

use serde_json::{Value, json};

use crate::{
    harness::{ALICE, Answer, BOB, Client, DOCUMENT, SUSAN, id, on_both},
    tokens::{by_token, make_token},
};

/// Contract, "Operations": every row of the table with its success.
const TABLE: [(&str, &str, &str); 41] = [
    ("GET", "/rooms", "200"),
    ("POST", "/rooms", "201"),
    ("GET", "/rooms/{roomID}", "200"),
    ("DELETE", "/rooms/{roomID}", "200"),
    ("POST", "/rooms/{roomID}/verified", "204"),
    ("DELETE", "/rooms/{roomID}/verified", "204"),
    ("POST", "/rooms/all", "201"),
    ("GET", "/rooms/{roomID}/events", "200"),
    ("GET", "/events", "200"),
    ("POST", "/events", "201"),
    ("GET", "/events/{eventID}", "200"),
    ("PUT", "/events/{eventID}", "200"),
    ("DELETE", "/events/{eventID}", "204"),
    ("PUT", "/events/{eventID}/attendees/me", "204"),
    ("POST", "/events/{eventID}/tags", "204"),
    ("DELETE", "/events/{eventID}/tags/{tagName}", "204"),
    ("GET", "/users/me/events", "200"),
    ("GET", "/users/{userID}/events", "200"),
    ("GET", "/groups/{groupID}/events", "200"),
    ("GET", "/activity/events", "200"),
    ("GET", "/groups", "200"),
    ("POST", "/groups", "201"),
    ("GET", "/groups/{groupID}", "200"),
    ("PUT", "/groups/{groupID}", "200"),
    ("DELETE", "/groups/{groupID}", "204"),
    ("PUT", "/groups/{groupID}/members/me", "204"),
    ("DELETE", "/groups/{groupID}/members/me", "204"),
    ("GET", "/users/me/groups", "200"),
    ("GET", "/users/{userID}/groups", "200"),
    ("GET", "/users", "200"),
    ("POST", "/users/sync", "201"),
    ("GET", "/users/me", "200"),
    ("PATCH", "/users/{userID}/privileged", "204"),
    ("GET", "/tags", "200"),
    ("POST", "/tags", "201"),
    ("GET", "/users/me/ical", "200"),
    ("PUT", "/users/me/ical", "200"),
    ("GET", "/ical/v1/{icalToken}", "200"),
    ("POST", "/authParams", "201"),
    ("GET", "/callback", "302"),
    ("GET", "/version", "200"),
];

/// Contract: "Everything needs sign-in except …".
const PUBLIC: [(&str, &str); 4] =
    [("POST", "/authParams"), ("GET", "/callback"), ("GET", "/ical/v1/{icalToken}"), ("GET", "/version")];

/// An operation of the document.
struct Operation {
    method: String,
    /// With parameters in braces.
    path: String,
    described: &'static Value,
}

impl Operation {
    fn all() -> Vec<Self> {
        let paths = DOCUMENT["paths"].as_object().unwrap().iter();
        paths
            .flat_map(|(path, item)| {
                let operations = item.as_object().unwrap().iter().filter(|(_, operation)| operation.is_object());
                operations.map(|(method, described)| Self {
                    method: method.to_uppercase(),
                    path: path.clone(),
                    described,
                })
            })
            .collect()
    }

    fn is_public(&self) -> bool {
        PUBLIC.iter().any(|(method, path)| *method == self.method && self.path == format!("/api{path}"))
    }

    /// With this in the place of each parameter.
    fn path_with(&self, value: &str) -> String {
        let segments = self.path.split('/');
        segments.map(|segment| if segment.starts_with('{') { value } else { segment }).collect::<Vec<_>>().join("/")
    }

    /// Sends it with the example of its body.
    fn send(&self, client: Client<'_>, value: &str) -> Answer {
        let path = self.path_with(value);
        let content = self.described["requestBody"]["content"].as_object();
        let Some((media_type, content)) = content.and_then(|content| content.iter().next()) else {
            return client.send(&self.method, &path, None);
        };
        let example = &content["example"];
        assert!(!example.is_null(), "{} {} has no example of a body", self.method, self.path);
        let body = example.as_str().map_or_else(|| example.to_string(), str::to_owned);
        client.header("content-type", media_type).send_bytes(&self.method, &path, body.into_bytes())
    }
}

fn guarded() -> Vec<Operation> {
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
fn the_document_holds_together() {
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
            let whole = json!({"components": DOCUMENT["components"], "allOf": [schema]});
            let validator = jsonschema::validator_for(&whole).unwrap_or_else(|error| panic!("{at}: {error}"));
            let errors: Vec<_> = validator.iter_errors(example).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{at}: {errors:?}");
        }
    });
    let tag = &schemas["RequestTag"]["properties"]["name"];
    assert_eq!((&tag["minLength"], &tag["maxLength"]), (&json!(1), &json!(16)));
    assert_eq!(schemas["RequestRoom"]["properties"]["admins"]["minItems"], 1);
    let holds = |schema: &Value, value: &Value| jsonschema::validator_for(schema).unwrap().is_valid(value);
    for (name, fits) in
        [("x", true), ("a\tb", true), (" 五 ", true), (" ", false), ("a\u{0}", false), ("\u{85}", false)]
    {
        assert_eq!(holds(tag, &json!(name)), fits, "{name:?}");
    }
}

#[test]
fn every_operation_of_the_contract_is_there() {
    for (method, path, status) in TABLE {
        let operation = &DOCUMENT["paths"][format!("/api{path}")][method.to_lowercase()];
        assert!(operation.is_object(), "{method} {path} is missing");
        assert!(operation["responses"][status].is_object(), "{method} {path} does not answer {status}");
        let public = operation["security"] == json!([{}]);
        assert_eq!(public, PUBLIC.contains(&(method, path)), "{method} {path}");
    }
}

on_both! {
    the_version_is_for_everybody(club) {
        let answer = club.anonymous().get("/api/version").expect(200);
        let version = answer.json();
        assert_eq!(version["version"].as_str(), answer.header("x-knoq-version"));
        assert!(!version["revision"].as_str().unwrap().is_empty());
    }

    nobody_gets_in_without_a_good_credential(club) {
        let somebody = id("somebody").to_string();
        for operation in guarded() {
            operation.send(club.anonymous(), &somebody).refused(401, "not-signed-in");
            operation.send(club.anonymous().header("cookie", "session=x"), &somebody).refused(401, "bad-credentials");
            operation.send(by_token(&club, "clubbooking_x_y"), &somebody).refused(401, "bad-credentials");
            operation.send(club.by(SUSAN), &somebody).refused(403, "account-inactive");
        }
    }

    a_token_of_read_scope_writes_nothing_and_another_site_neither(club) {
        let token = make_token(&club, ALICE, "read");
        let somebody = id("somebody").to_string();
        for operation in guarded() {
            if operation.method == "GET" {
                continue;
            }
            operation.send(by_token(&club, &token), &somebody).refused(403, "insufficient-scope");
            let elsewhere = club.by(ALICE).header("origin", "https://evil.example");
            operation.send(elsewhere, &somebody).refused(403, "cross-site-request");
        }
    }

    another_site_is_refused_before_anything_else_is_judged(club) {
        let writes: Vec<_> = Operation::all().into_iter().filter(|operation| operation.method != "GET").collect();
        assert!(writes.len() > 20);
        for operation in writes {
            // Nothing of these requests is right but the cookie.
            for path in [operation.path_with(&id("somebody").to_string()), operation.path_with("x")] {
                for media_type in [
                    None, Some("text/plain"), Some("application/x-www-form-urlencoded"), Some("multipart/form-data"),
                    Some("application/json"),
                ] {
                    for (name, value) in [("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")] {
                        let client = club.by(BOB).header(name, value);
                        let client = media_type.into_iter().fold(client, |it, kind| it.header("content-type", kind));
                        let body = vec![b'{'; 10];
                        client.send_bytes(&operation.method, &path, body).refused(403, "cross-site-request");
                    }
                }
            }
        }
        // None of them ended the session.
        club.by(BOB).get("/api/users/me").expect(200);
    }

    an_id_that_is_none_is_400_and_one_that_names_nothing_404(club) {
        for operation in guarded().iter().filter(|operation| operation.path.contains('{')) {
            for bad in ["x", "00000000-0000-0000-0000-000000000000", "0198c0de000070008000000000000001", "%FF"] {
                let refused = operation.send(club.by(ALICE), bad).expect(400);
                let id = operation.path.split(['{', '}']).nth(1).unwrap();
                assert_eq!(refused.pointers(), [id], "{refused:?}");
            }
            let unknown = id("nothing").to_string();
            operation.send(club.by(ALICE), &unknown).refused(404, "not-found");
            operation.send(club.by(ALICE), &unknown.to_uppercase()).refused(404, "not-found");
        }
    }

    another_method_is_405_with_those_that_there_are(club) {
        let operations = Operation::all();
        let value = id("somebody").to_string();
        for path in operations.iter().map(|operation| &operation.path) {
            // A path in words takes its own methods only: /rooms/all is no /rooms/{roomID}.
            let same = operations.iter().filter(|other| other.path == *path);
            let mut allowed: Vec<_> = same.map(|it| &*it.method).collect();
            if allowed.contains(&"GET") {
                allowed.push("HEAD");
            }
            allowed.sort_unstable();
            let one = operations.iter().find(|operation| operation.path == *path).unwrap();
            for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
                if !allowed.contains(&method) {
                    let refused = club.by(BOB).send(method, &one.path_with(&value), None).expect(405);
                    assert_eq!(refused.header("allow"), Some(&*allowed.join(", ")), "{method} {path}");
                    refused.refused(405, "method-not-allowed");
                }
            }
        }
    }

    head_is_get_without_a_body_everywhere(club) {
        for operation in Operation::all().iter().filter(|operation| operation.method == "GET") {
            let path = operation.path_with(&id(BOB).to_string());
            let (get, head) = (club.by(BOB).get(&path), club.by(BOB).send("HEAD", &path, None));
            assert_eq!((head.status, head.body.len()), (get.status, 0), "{path}");
            assert_eq!(head.header("content-type"), get.header("content-type"), "{path}");
        }
    }
}

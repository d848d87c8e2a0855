//! The OpenAPI document says what the contract says, and is committed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde_json::Value;

use crate::harness::DOCUMENT;

/// Every operation of the contract: method, path below `/api`, query parameters, body, success status and answer.
/// `(public)` needs no sign-in.
const OPERATIONS: &str = "
GET /rooms ?dateBegin ?dateEnd ?excludeEventID ?onlyVerified -> 200 ResponseRoom[]
POST /rooms RequestRoom -> 201 ResponseRoom
GET /rooms/{roomID} ?excludeEventID -> 200 ResponseRoom
DELETE /rooms/{roomID} ?force -> 200 ResponseRoom
POST /rooms/{roomID}/verified -> 204
DELETE /rooms/{roomID}/verified -> 204
POST /rooms/all ?dryRun text/csv -> 201 ResponseRoom[]
GET /rooms/{roomID}/events ?dateBegin ?dateEnd -> 200 ResponseEvent[]
GET /events ?dateBegin ?dateEnd ?q -> 200 ResponseEvent[]
POST /events RequestEvent -> 201 ResponseEventDetail
GET /events/{eventID} -> 200 ResponseEventDetail
PUT /events/{eventID} RequestEvent -> 200 ResponseEventDetail
DELETE /events/{eventID} -> 204
PUT /events/{eventID}/attendees/me RequestSchedule -> 204
POST /events/{eventID}/tags RequestEventTag -> 204
DELETE /events/{eventID}/tags/{tagName} -> 204
GET /users/me/events ?relation ?dateBegin ?dateEnd -> 200 ResponseEvent[]
GET /users/{userID}/events ?relation ?dateBegin ?dateEnd -> 200 ResponseEvent[]
GET /groups/{groupID}/events ?dateBegin ?dateEnd -> 200 ResponseEvent[]
GET /activity/events -> 200 ResponseEvent[]
GET /groups -> 200 ResponseGroup[]
POST /groups RequestGroup -> 201 ResponseGroup
GET /groups/{groupID} -> 200 ResponseGroup
PUT /groups/{groupID} RequestGroup -> 200 ResponseGroup
DELETE /groups/{groupID} ?force -> 204
PUT /groups/{groupID}/members/me -> 204
DELETE /groups/{groupID}/members/me -> 204
GET /users/me/groups ?relation -> 200 uuid[]
GET /users/{userID}/groups ?relation -> 200 uuid[]
GET /users ?include-suspended -> 200 ResponseUser[]
POST /users/sync -> 201
GET /users/me -> 200 ResponseUser
PATCH /users/{userID}/privileged RequestPrivileged -> 204
GET /tags -> 200 ResponseTag[]
POST /tags RequestTag -> 201 ResponseTag
GET /users/me/ical -> 200 icalSecret
PUT /users/me/ical -> 200 icalSecret
GET /ical/v1/{icalToken} ?q (public) -> 200 text/calendar
POST /authParams (public) -> 201 authParams
GET /callback ?code ?state (public) -> 302
GET /version (public) -> 200 version
";

/// The fields of every type: optional ones with a question mark; the bounds of a string are its length, of an array
/// the smallest number of items.
const TYPES: &str = "
ResponseUser: userId uuid, name string, displayName string, icon string, privileged boolean, state integer
duration: timeStart date-time, timeEnd date-time
ResponseRoom: roomId uuid, place string, timeStart date-time, timeEnd date-time, verified boolean, \
freeTimes duration[], sharedTimes duration[], admins uuid[], createdBy uuid, createdAt date-time, updatedAt date-time
RequestRoom: place string(1-32), timeStart date-time, timeEnd date-time, admins uuid[](1)
ResponseGroup: groupId uuid, name string, description string, open boolean, isTraQGroup boolean, members uuid[], \
admins uuid[], createdBy uuid, createdAt date-time, updatedAt date-time
RequestGroup: name string(1-32), description string(0-10000), open boolean, members? uuid[], admins uuid[](1)
ResponseTag: tagId uuid, name string, createdAt date-time, updatedAt date-time
RequestTag: name string(1-16)
ResponseEventTag: tagId uuid, name string, locked boolean
RequestEventTag: name string(1-16), locked? boolean
RequestSchedule: schedule pending|absent|attendance
ResponseAttendee: userId uuid, schedule pending|absent|attendance
ResponseEvent: eventId uuid, name string, description string, sharedRoom boolean, timeStart date-time, \
timeEnd date-time, place string, roomId uuid, groupId uuid, open boolean, admins uuid[], tags ResponseEventTag[], \
attendees uuid[], createdBy uuid, createdAt date-time, updatedAt date-time, deletedAt? date-time
ResponseEventDetail: eventId uuid, name string, description string, sharedRoom boolean, timeStart date-time, \
timeEnd date-time, place string, groupName string, open boolean, room ResponseRoom, group ResponseGroup, \
admins uuid[], tags ResponseEventTag[], attendees ResponseAttendee[], createdBy uuid, createdAt date-time, \
updatedAt date-time
RequestEventInstant: name string(1-32), description string(0-10000), sharedRoom boolean, timeStart date-time, \
timeEnd date-time, place string(1-32), groupId uuid, open? boolean, admins uuid[](1), tags? RequestEventTag[]
RequestEventStock: name string(1-32), description string(0-10000), sharedRoom boolean, timeStart date-time, \
timeEnd date-time, roomId uuid, groupId uuid, open? boolean, admins uuid[](1), tags? RequestEventTag[]
RequestEvent: RequestEventInstant / RequestEventStock
RequestPrivileged: privileged boolean
authParams: url string
icalSecret: secret string
version: version string, revision string
";

/// A file of the repository that must have this content. With `UPDATE_DOCS` set it gets it.
pub fn pinned(path: &str, expected: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, expected).unwrap();
    }
    let present = fs::read_to_string(&file).unwrap_or_default();
    if let Some((n, (is, should))) = present.lines().zip(expected.lines()).enumerate().find(|(_, (a, b))| a != b) {
        panic!("{path}, line {}, is\n{is}\nand should be\n{should}\nWith UPDATE_DOCS=1 this test writes it.", n + 1);
    }
    assert_eq!(
        present.len(),
        expected.len(),
        "{path} ends too early or too late; with UPDATE_DOCS=1 this test writes it"
    );
}

#[test]
fn the_committed_document_is_the_present_one() {
    let output = crate::process::program(&["openapi"]).output().unwrap();
    pinned("docs/openapi/booking.json", &String::from_utf8(output.stdout).unwrap());
}

/// What a schema says, in the words of the tables above.
fn kind(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.strip_prefix("#/components/schemas/").unwrap();
        let is_object = !DOCUMENT["components"]["schemas"][name]["properties"].is_null() || name == "RequestEvent";
        return if is_object { name.to_owned() } else { kind(&DOCUMENT["components"]["schemas"][name]) };
    }
    if let Some(one_of) = schema["oneOf"].as_array() {
        // The only bodies that may be left out say so with a null.
        return one_of.iter().map(kind).filter(|kind| kind != "null").collect::<Vec<_>>().join(" / ");
    }
    if let Some(words) = schema["enum"].as_array() {
        return words.iter().map(|word| word.as_str().unwrap()).collect::<Vec<_>>().join("|");
    }
    match (schema["type"].as_str(), schema["format"].as_str()) {
        (Some("array"), _) => {
            let least = schema["minItems"].as_u64().map(|least| format!("({least})"));
            format!("{}[]{}", kind(&schema["items"]), least.unwrap_or_default())
        }
        (Some("string"), Some(format)) => format.to_owned(),
        (Some("string"), None) => match (schema["minLength"].as_u64(), schema["maxLength"].as_u64()) {
            (least, Some(most)) => format!("string({}-{most})", least.unwrap_or(0)),
            _ => "string".to_owned(),
        },
        (Some(kind), _) => kind.to_owned(),
        (None, _) => format!("{schema}"),
    }
}

/// The media type and schema of a body.
fn content(body: &Value) -> Option<(String, String)> {
    let content = body["content"].as_object()?;
    assert_eq!(content.len(), 1, "{body}");
    let (media_type, content) = content.iter().next().unwrap();
    assert!(!content["example"].is_null() || !content["examples"].is_null(), "no example: {body}");
    Some((media_type.clone(), kind(&content["schema"])))
}

/// A line of the table, from what the document says of an operation.
fn line(method: &str, path: &str, operation: &Value, status: &str) -> String {
    let mut words = vec![method.to_uppercase(), path.strip_prefix("/api").unwrap().to_owned()];
    words.extend(query(operation).into_iter().map(|name| format!("?{name}")));
    let shown = |(media_type, kind): (String, String)| if media_type == "application/json" { kind } else { media_type };
    words.extend(content(&operation["requestBody"]).map(shown));
    if operation["security"] == serde_json::json!([{}]) {
        words.push("(public)".to_owned());
    }
    words.extend(["->".to_owned(), status.to_owned()]);
    words.extend(content(&operation["responses"][status]).map(shown));
    words.join(" ")
}

fn query(operation: &Value) -> Vec<String> {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let query = parameters.filter(|parameter| parameter["in"] == "query");
    query.map(|parameter| parameter["name"].as_str().unwrap().to_owned()).collect()
}

fn operations() -> impl Iterator<Item = (&'static str, &'static str, &'static Value)> {
    let paths = DOCUMENT["paths"].as_object().unwrap();
    paths.iter().flat_map(|(path, item)| {
        item.as_object().unwrap().iter().map(|(method, operation)| (method.as_str(), path.as_str(), operation))
    })
}

#[test]
fn every_operation_of_the_contract_is_there_and_no_other_but_additions() {
    let mut expected = OPERATIONS.trim().lines().collect::<Vec<_>>();
    assert_eq!(expected.len(), 41);
    for (method, path, operation) in operations() {
        let (method, name) = (method.to_uppercase(), path.strip_prefix("/api").unwrap());
        let found = expected.iter().position(|line| line.starts_with(&format!("{method} {name} ")));
        let is_addition = operation["tags"].as_array().unwrap().iter().any(|tag| tag == "additions");
        assert_eq!(found.is_none(), is_addition, "{method} {path}: is it an addition?");
        let Some(found) = found else { continue };
        let expected = expected.remove(found);
        let status = expected.split(" -> ").nth(1).unwrap().split(' ').next().unwrap();
        // Parameters may come in any order, and more of them than the contract has.
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<BTreeSet<_>>();
        let mut document = words(&line(&method, path, operation, status));
        let expected = words(expected);
        document.retain(|word| !word.starts_with('?') || expected.contains(word));
        assert_eq!(document, expected, "{method} {path}");
    }
    assert!(expected.is_empty(), "missing: {expected:#?}");
}

#[test]
fn every_operation_says_all_that_a_client_needs() {
    let mut ids = BTreeSet::new();
    for (method, path, operation) in operations() {
        let id = operation["operationId"].as_str().unwrap_or_default();
        assert!(!id.is_empty() && ids.insert(id), "{method} {path}: {id:?}");
        assert!(operation["summary"].as_str().is_some_and(|text| !text.trim().is_empty()), "{id} has no summary");
        assert!(!operation["tags"].as_array().unwrap().is_empty(), "{id} has no tag");

        let responses = operation["responses"].as_object().unwrap();
        assert!(responses.keys().any(|status| status.starts_with('2') || status.starts_with('3')), "{id}: no success");
        let is_public = operation["security"] == serde_json::json!([{}]);
        let has_body = !operation["requestBody"].is_null();
        let in_path = path.contains('{');
        let due = [("500", true), ("503", true), ("401", !is_public), ("403", !is_public), ("404", in_path)];
        let due = due.into_iter().chain([("400", in_path || has_body), ("413", has_body), ("415", has_body)]);
        for (status, _) in due.filter(|(_, is_due)| *is_due) {
            assert!(responses.contains_key(status), "{id} does not say when it answers {status}");
        }
        for (status, response) in responses {
            assert!(!response["description"].as_str().unwrap().is_empty(), "{id} {status}");
            if status.as_str() >= "400" {
                let problem = &response["content"]["application/problem+json"]["schema"]["$ref"];
                assert_eq!(problem, "#/components/schemas/Problem", "{id} {status}");
            } else {
                content(response);
            }
        }
        content(&operation["requestBody"]);

        // Each name in braces is a parameter, and each parameter says what it takes.
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        let of_path: Vec<_> = parameters.iter().filter(|it| it["in"] == "path").map(|it| &it["name"]).collect();
        let in_braces: Vec<_> = path.split('{').skip(1).map(|rest| rest.split('}').next().unwrap()).collect();
        assert_eq!(of_path.len(), in_braces.len(), "{id}");
        assert!(in_braces.iter().all(|name| of_path.iter().any(|it| *it == name)), "{id}: {of_path:?}");
        assert!(parameters.iter().all(|it| !it["schema"].is_null()), "{id}");
    }
}

#[test]
fn every_type_has_the_fields_of_the_contract() {
    let schemas = DOCUMENT["components"]["schemas"].as_object().unwrap();
    for line in TYPES.trim().lines() {
        let (name, fields) = line.split_once(": ").unwrap();
        let schema = schemas.get(name).unwrap_or_else(|| panic!("no type {name}"));
        if fields.contains(" / ") {
            assert_eq!(kind(schema), fields, "{name}");
            continue;
        }
        let expected: BTreeMap<_, _> = fields.split(", ").map(|field| field.split_once(' ').unwrap()).collect();
        let required = schema["required"].as_array().unwrap();
        let found = schema["properties"].as_object().unwrap().iter().map(|(field, schema)| {
            let mark = if required.iter().any(|it| it == field) { "" } else { "?" };
            (format!("{field}{mark}"), kind(schema))
        });
        let found: BTreeMap<_, _> = found.collect();
        let found: BTreeMap<_, _> = found.iter().map(|(field, kind)| (field.as_str(), kind.as_str())).collect();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn nothing_in_the_document_is_null_or_means_nothing() {
    fn walk(value: &Value, at: &str) {
        match value {
            Value::Object(members) => {
                // What generators stumble over: a type that is all of two types.
                assert!(!members.contains_key("allOf"), "{at}");
                if let Some(reference) = members.get("$ref") {
                    let target = reference.as_str().unwrap().trim_start_matches('#');
                    assert!(DOCUMENT.pointer(target).is_some(), "{at} refers to {target}");
                }
                // The contract has no null; only a body may be left out.
                let is_null = members.get("type").is_some_and(|kind| kind.to_string().contains("null"));
                assert!(!is_null || at.contains("/requestBody/"), "{at}");
                members.iter().for_each(|(name, value)| walk(value, &format!("{at}/{name}")));
            }
            Value::Array(items) => items.iter().enumerate().for_each(|(n, item)| walk(item, &format!("{at}/{n}"))),
            other => assert!(!other.is_null(), "{at}"),
        }
    }
    walk(&DOCUMENT, "");
}

//! Checks that an OpenAPI document agrees with the contract and is committed. Both services include this file in their
//! tests, by its path, with the contract as tables.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::{Client, DOCUMENT};

/// The contract of a service.
pub struct Contract {
    /// The prefix of all paths.
    pub base: &'static str,
    /// Every operation: method, path below `base`, query parameters, body, success status and answer. `(public)` needs
    /// no sign-in.
    pub operations: &'static str,
    /// The fields of every type: optional ones with a question mark; the bounds of a string are its length, of an array
    /// the smallest number of items.
    pub types: &'static str,
}

/// Asserts that a file of the repository has this content. With `UPDATE_DOCS=1`, writes the file first.
pub fn pinned(path: &str, expected: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    if std::env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1") {
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

/// Asserts that the part of a document between the markers of this name has this content. With `UPDATE_DOCS=1`, writes
/// it first.
pub fn pinned_part(path: &str, name: &str, expected: &str) {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).unwrap();
    let (begin, end) = (format!("<!-- {name}: begin -->\n"), format!("<!-- {name}: end -->\n"));
    let (before, rest) = page.split_once(&begin).unwrap();
    let (_, after) = rest.split_once(&end).unwrap();
    pinned(path, &format!("{before}{begin}{expected}{end}{after}"));
}

/// A schema in the notation of the tables of [`Contract`].
fn kind(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.strip_prefix("#/components/schemas/").unwrap();
        let target = &DOCUMENT["components"]["schemas"][name];
        let is_number = target["type"] == "integer" && !target["enum"].is_null();
        let is_type = is_number || ["properties", "allOf", "oneOf"].iter().any(|member| !target[member].is_null());
        return if is_type { name.to_owned() } else { kind(target) };
    }
    if let Some(one_of) = schema["oneOf"].as_array() {
        // null is an alternative where a value may be left out.
        return one_of.iter().filter(|schema| !may_be_null(schema)).map(kind).collect::<Vec<_>>().join(" / ");
    }
    if let Some(words) = schema["enum"].as_array() {
        let word = |word: &Value| word.as_str().map_or_else(|| word.to_string(), str::to_owned);
        return words.iter().map(word).collect::<Vec<_>>().join("|");
    }
    let types = schema["type"].as_array().map_or(std::slice::from_ref(&schema["type"]), Vec::as_slice);
    let without_null = types.iter().filter_map(Value::as_str).find(|name| *name != "null");
    match (without_null, schema["format"].as_str()) {
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
    let mut forms = content.iter().filter(|(media_type, _)| *media_type != "application/x-ndjson");
    let (media_type, content) = forms.next().unwrap();
    assert!(forms.next().is_none(), "{body}");
    let has_example = ["example", "examples"].iter().any(|member| !content[member].is_null());
    assert!(has_example || media_type == "image/*", "no example: {body}");
    Some((media_type.clone(), kind(&content["schema"])))
}

/// Whether an operation accepts a credential, and whether it needs one.
fn credential(operation: &Value) -> (bool, bool) {
    let any_of = operation["security"].as_array();
    let takes = any_of.is_none_or(|any_of| any_of.iter().any(|needed| *needed != json!({})));
    (takes, any_of.is_none_or(|any_of| !any_of.contains(&json!({}))))
}

/// The line of the table for an operation of the document.
fn line(method: &str, path: &str, operation: &Value, status: &str) -> String {
    let mut words = vec![method.to_owned(), path.to_owned()];
    words.extend(query(operation).into_iter().map(|name| format!("?{name}")));
    let shown = |(media_type, kind): (String, String)| if media_type == "application/json" { kind } else { media_type };
    words.extend(content(&operation["requestBody"]).map(shown));
    if !credential(operation).1 {
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

impl Contract {
    /// Checks that the document has the `count` operations of the contract, and that all others are tagged as
    /// additions.
    pub fn every_operation_is_there_and_no_other_but_additions(&self, count: usize) {
        let mut expected = self.operations.trim().lines().collect::<Vec<_>>();
        assert_eq!(expected.len(), count);
        for (method, path, operation) in operations() {
            let (method, name) = (method.to_uppercase(), path.strip_prefix(self.base).unwrap_or(path));
            let found = expected.iter().position(|line| line.starts_with(&format!("{method} {name} ")));
            let is_addition = operation["tags"].as_array().unwrap().iter().any(|tag| tag == "additions");
            assert_eq!(
                found.is_none(),
                is_addition,
                "{method} {path}: an addition has `tags = [\"…\", \"additions\"]`, and only an addition"
            );
            let Some(found) = found else { continue };
            let expected = expected.remove(found);
            let status = expected.split(" -> ").nth(1).unwrap().split(' ').next().unwrap();
            // Parameters may have any order, and the document may have more of them than the contract.
            let words = |line: &str| line.split(' ').map(str::to_owned).collect::<BTreeSet<_>>();
            let mut document = words(&line(&method, name, operation, status));
            let expected = words(expected);
            document.retain(|word| !word.starts_with('?') || expected.contains(word));
            assert_eq!(document, expected, "{method} {path}");
        }
        assert!(expected.is_empty(), "missing: {expected:#?}");
    }

    /// Every type has the fields of the contract, and `more` that were added to one.
    pub fn every_type_has_its_fields(&self, more: &[(&str, &str)]) {
        let schemas = DOCUMENT["components"]["schemas"].as_object().unwrap();
        let mut differences = Vec::new();
        for line in self.types.trim().lines() {
            let (name, expected) = line.split_once(": ").unwrap();
            let schema = schemas.get(name).unwrap_or_else(|| panic!("no type {name}"));
            if expected.contains(" / ") || !expected.contains(' ') {
                assert_eq!(kind(schema), expected, "{name}");
                continue;
            }
            let expected: BTreeMap<_, _> = expected.split(", ").map(|field| field.split_once(' ').unwrap()).collect();
            let found = fields(schema);
            let found = found.iter().map(|(field, kind)| (field.as_str(), kind.as_str()));
            let found: BTreeMap<_, _> = found.filter(|(field, _)| !more.contains(&(name, field))).collect();
            let missing = expected.iter().filter(|(field, kind)| found.get(*field) != Some(kind));
            differences.extend(missing.map(|(field, kind)| format!("{name}: no field `{field}` of type {kind}")));
            let added = found.iter().filter(|(field, kind)| expected.get(*field) != Some(kind));
            differences.extend(added.map(|(field, kind)| {
                format!("{name}: the field `{field}` of type {kind} is not an argument of this function")
            }));
        }
        assert!(differences.is_empty(), "{differences:#?}");
    }
}

/// Checks that the example of each refusal has a code that the operation answers with.
pub fn refusals_have_fitting_examples() {
    for (method, path, operation) in operations() {
        for (status, response) in operation["responses"].as_object().unwrap() {
            let Some(code) = response["content"]["application/problem+json"]["example"]["code"].as_str() else {
                assert!(status.as_str() < "400", "{method} {path} {status} has no example");
                continue;
            };
            let description = response["description"].as_str().unwrap();
            let is_named = description.contains(&format!("`{code}`"));
            assert!(status != "409" || is_named, "{method} {path}: {description} {code}");
            let is_of_body = code == "invalid-body" && operation["requestBody"].is_null();
            assert!(!is_of_body, "{method} {path} takes no body");
        }
    }
}

/// The fields of an object, those of the types that it consists of included.
fn fields(schema: &Value) -> BTreeMap<String, String> {
    if let Some(reference) = schema["$ref"].as_str() {
        return fields(DOCUMENT.pointer(reference.trim_start_matches('#')).unwrap());
    }
    if let Some(all) = schema["allOf"].as_array() {
        return all.iter().flat_map(fields).collect();
    }
    let required = |field: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|it| it == field));
    let properties = schema["properties"].as_object().unwrap().iter();
    let field = |(field, schema): (&String, &Value)| {
        let mark = if required(field) { "" } else { "?" };
        (format!("{field}{mark}"), kind(schema))
    };
    properties.map(field).collect()
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
        let (takes, needs) = credential(operation);
        let has_body = !operation["requestBody"].is_null();
        let in_path = path.contains('{');
        let due = [("429", true), ("500", true), ("503", true), ("401", takes), ("403", needs), ("404", in_path)];
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
        for parameter in &parameters {
            assert!(!parameter["schema"].is_null(), "{id}: {parameter}");
            assert!(parameter["description"].as_str().is_some_and(|text| !text.is_empty()), "{id}: {parameter}");
        }
    }
}

/// The pointers of the types to which a part of the document refers, and those to which these refer.
fn types_of<'a>(part: &'a Value, found: &mut BTreeSet<&'a str>) {
    match part {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get("$ref") {
                let pointer = reference.trim_start_matches('#');
                if found.insert(pointer) {
                    types_of(DOCUMENT.pointer(pointer).unwrap(), found);
                }
            }
            members.values().for_each(|member| types_of(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| types_of(item, found)),
        _ => {}
    }
}

fn may_be_null(schema: &Value) -> bool {
    let alternatives = schema["oneOf"].as_array();
    schema["type"] == "null"
        || schema["type"].as_array().is_some_and(|types| types.contains(&json!("null")))
        || alternatives.is_some_and(|alternatives| alternatives.iter().any(may_be_null))
}

/// null means the same as a missing field in requests, and is in no answer (contract, "JSON").
#[test]
fn optional_fields_may_be_null_in_requests_only() {
    let mut in_answers = BTreeSet::new();
    operations().for_each(|(_, _, operation)| types_of(&operation["responses"], &mut in_answers));
    for (name, schema) in DOCUMENT["components"]["schemas"].as_object().unwrap() {
        let is_in_answers = in_answers.contains(&*format!("/components/schemas/{name}"));
        // A type with `#[serde(flatten)]` has its own fields in a part of `allOf`.
        for part in schema["allOf"].as_array().into_iter().flatten().chain([schema]) {
            for (field, property) in part["properties"].as_object().into_iter().flatten() {
                let is_required = part["required"].as_array().is_some_and(|all| all.iter().any(|it| it == field));
                assert_eq!(
                    may_be_null(property),
                    !is_in_answers && !is_required,
                    "{name}: `{field}`; an optional field has #[schema(nullable = false)] in types of answers only"
                );
            }
        }
    }
}

#[test]
fn every_text_has_its_own_bounds() {
    let schemas = DOCUMENT["components"]["schemas"].as_object().unwrap();
    assert!(!schemas.contains_key("Text"), "a field of type `Text` has #[schema(inline)]");
}

#[test]
fn texts_and_numbers_of_requests_have_bounds() {
    /// How many texts and numbers a schema contains.
    fn checked(schema: &Value, at: &str) -> usize {
        let has = |keyword: &str| !schema[keyword].is_null();
        let is_of = |name: &str| {
            schema["type"] == name || schema["type"].as_array().is_some_and(|types| types.contains(&json!(name)))
        };
        let is_number = is_of("integer") || is_of("number");
        let has_bounds = if is_number {
            has("minimum") && has("maximum")
        } else {
            ["maxLength", "pattern", "format"].into_iter().any(has)
        };
        let is_checked = is_number || is_of("string");
        assert!(has_bounds || has("enum") || !is_checked, "{at}: its #[schema] says no bounds: {schema}");
        let members: Vec<_> = match schema {
            Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), value)).collect(),
            Value::Array(items) => items.iter().enumerate().map(|(n, item)| (n.to_string(), item)).collect(),
            _ => Vec::new(),
        };
        usize::from(is_checked)
            + members.iter().map(|(name, value)| checked(value, &format!("{at}/{name}"))).sum::<usize>()
    }
    let mut types = BTreeSet::new();
    operations().for_each(|(_, _, operation)| types_of(&operation["requestBody"], &mut types));
    let count: usize = types.into_iter().map(|at| checked(DOCUMENT.pointer(at).unwrap(), at)).sum();
    assert!(count > 20, "only {count} texts and numbers");
}

/// The fields of a body, or of its alternatives, that may be null.
fn nullable_fields(schema: &'static Value) -> Vec<&'static str> {
    if let Some(reference) = schema["$ref"].as_str() {
        return nullable_fields(DOCUMENT.pointer(reference.trim_start_matches('#')).unwrap());
    }
    if let Some(alternatives) = schema["oneOf"].as_array() {
        return alternatives.iter().flat_map(nullable_fields).collect();
    }
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties.filter(|(_, property)| may_be_null(property)).map(|(name, _)| name.as_str()).collect()
}

/// Checks that each operation accepts null for the optional fields of its body. The objects in the paths do not exist.
pub fn optional_fields_accept_null(client: &Client<'_>) {
    let mut fields = 0;
    for (method, path, operation) in operations() {
        let nullable = nullable_fields(&operation["requestBody"]["content"]["application/json"]["schema"]);
        let segment =
            |segment: &str| if segment.starts_with('{') { Uuid::now_v7().to_string() } else { segment.into() };
        let path = path.split('/').map(segment).collect::<Vec<_>>().join("/");
        let body: Value = nullable.iter().map(|name| ((*name).to_owned(), Value::Null)).collect();
        if nullable.is_empty() {
            continue;
        }
        let pointers = client.send(&method.to_uppercase(), &path, Some(body)).pointers();
        let refused = pointers.iter().filter(|pointer| nullable.contains(&&pointer[1..])).collect::<Vec<_>>();
        assert!(refused.is_empty(), "{method} {path}: {refused:?}");
        fields += nullable.len();
    }
    assert!(fields > 10, "only {fields} fields");
}

#[test]
fn nothing_in_the_document_is_null_or_means_nothing() {
    fn walk(value: &Value, at: &str) {
        match value {
            Value::Object(members) => {
                // What generators stumble over: a field that is all of two types. A type may consist of others.
                let is_type = at.strip_prefix("/components/schemas/").is_some_and(|name| !name.contains('/'));
                assert!(is_type || !members.contains_key("allOf"), "{at}: an `allOf` outside a type of its own");
                if let Some(reference) = members.get("$ref") {
                    let target = reference.as_str().unwrap().trim_start_matches('#');
                    assert!(DOCUMENT.pointer(target).is_some(), "{at} refers to {target}");
                }
                assert!(!at.contains("/parameters/") || !may_be_null(value), "{at}: a parameter is never null");
                members.iter().for_each(|(name, value)| walk(value, &format!("{at}/{name}")));
            }
            Value::Array(items) => items.iter().enumerate().for_each(|(n, item)| walk(item, &format!("{at}/{n}"))),
            other => assert!(!other.is_null(), "{at} is null"),
        }
    }
    walk(&DOCUMENT, "");
}

//! What every operation of a document has in common, so that no operation needs to say it.

use common::problem::{Code, Legacy, Problem, Rule, code};
use serde_json::{Value, json};
use utoipa::openapi::{
    Components, Content, Deprecated, Header, OpenApi, Ref, RefOr, Required, Response, ResponseBuilder,
    path::{Operation, ParameterBuilder, ParameterIn},
    schema::{ArrayBuilder, ArrayItems, ObjectBuilder, Schema, Type},
    security::SecurityRequirement,
};

use super::reply::PROBLEM_MEDIA_TYPE;

/// Completes every operation: the descriptions of ids, the refusals that follow from what it takes, the problem body of
/// each refusal, and examples of bodies from the examples of their types. Describes properties that mean the same in
/// every type. If the document has a schema `Problem`, its properties are added: the members of the service's own
/// problems.
pub fn complete(document: &mut OpenApi, codes: &[&'static Code], legacy: Legacy) {
    let components = document.components.get_or_insert_default();
    let fields = components.schemas.remove("Problem");
    components.schemas.insert("Problem".to_owned(), problem_schema(fields, codes, legacy));
    for schema in components.schemas.values_mut() {
        join_descriptions(schema);
        describe_properties(schema);
    }
    let components = components.clone();
    for item in document.paths.paths.values_mut() {
        // A `PATCH` without a body changes nothing (contract, "JSON").
        if let Some(RefOr::T(body)) = item.patch.as_mut().and_then(|operation| operation.request_body.as_mut()) {
            body.required = Some(Required::False);
        }
        let operations = [
            (&mut item.get, Kind::Read),
            (&mut item.post, Kind::Create),
            (&mut item.put, Kind::Change),
            (&mut item.patch, Kind::Change),
            (&mut item.delete, Kind::Delete),
        ];
        for (operation, kind) in operations {
            let Some(operation) = operation else { continue };
            describe_ids(operation);
            add_conditions(operation, kind, &components);
            add_refusals(operation, codes, legacy);
            add_examples(operation, &components);
        }
    }
}

/// What the operations of a method do.
#[derive(Clone, Copy)]
enum Kind {
    Read,
    Create,
    Change,
    Delete,
}

/// Whether an operation takes a credential, and whether it needs one. An empty requirement beside others makes sign-in
/// optional; a bad credential is an error even then.
fn credential(operation: &Operation) -> (bool, bool) {
    let is_empty = |needed: &SecurityRequirement| *needed == SecurityRequirement::default();
    let security = operation.security.as_deref();
    let takes = security.is_none_or(|any_of| any_of.iter().any(|needed| !is_empty(needed)));
    (takes, security.is_none_or(|any_of| !any_of.iter().any(is_empty)))
}

/// Conditional requests, safe retries and pages (contract, "Conditional requests and retries" and "Lists").
fn add_conditions(operation: &mut Operation, kind: Kind, components: &Components) {
    let (takes_credential, _) = credential(operation);
    match kind {
        Kind::Read => {
            let Some(answer) = success(operation, "200") else { return };
            let is_list = answer.content.values().any(|content| {
                let RefOr::T(content) = content else { return false };
                content.schema.as_ref().is_some_and(|schema| is_array(schema, components))
            });
            add_header(answer, "ETag", TAG);
            if is_list {
                add_header(answer, "Link", "`<…>; rel=\"next\"` when `limit` cut the list (RFC 8288)");
                let limit = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(1000));
                add_parameter(
                    operation,
                    ParameterIn::Query,
                    "limit",
                    limit,
                    "The most entries; without it, the complete list",
                );
                add_parameter(
                    operation,
                    ParameterIn::Query,
                    "cursor",
                    text().pattern(Some(CURSOR)),
                    "The cursor in the `Link` of the previous page",
                );
            }
            add_parameter(
                operation,
                ParameterIn::Header,
                "If-None-Match",
                text(),
                "Tags of answers that the caller has",
            );
            add_response(operation, "304", "The caller has it already");
        }
        Kind::Create if takes_credential => {
            for status in ["200", "201", "204"] {
                if let Some(answer) = success(operation, status) {
                    add_header(answer, "Idempotency-Replayed", "`true` when the request had been answered before");
                }
            }
            let key = text().min_length(Some(1)).max_length(Some(255));
            let description =
                "Makes a retry safe: the same request with the same key is answered the same for 24 hours";
            add_parameter(operation, ParameterIn::Header, "Idempotency-Key", key, description);
            add_response(operation, "422", "The `Idempotency-Key` came with another request before");
        }
        // An anonymous caller cannot be recognized, so a stored answer cannot be sent again.
        Kind::Create => {}
        Kind::Change | Kind::Delete => {
            if let (Kind::Change, Some(changed)) = (kind, success(operation, "200")) {
                add_header(changed, "ETag", TAG);
            }
            let description =
                "Tag of the version to change: that of the same path, or of the nearest path above that can be read";
            add_parameter(operation, ParameterIn::Header, "If-Match", text().pattern(Some(IF_MATCH)), description);
            add_response(operation, "412", "It has changed since; `ETag` is the present tag");
        }
    }
}

/// Base64 for URLs; empty counts as absent.
const CURSOR: &str = "^[A-Za-z0-9_-]*$";

/// `*` or entity tags, separated by commas (RFC 9110, section 13.1.1); empty counts as absent.
const IF_MATCH: &str = r#"^(\*|(W/)?"[^"]*"( *, *(W/)?"[^"]*")*)?$"#;

/// Whether a schema, or the one that it refers to, is an array.
fn is_array(schema: &RefOr<Schema>, components: &Components) -> bool {
    match schema {
        RefOr::T(schema) => matches!(schema, Schema::Array(_)),
        RefOr::Ref(reference) => {
            let name = reference.ref_location.rsplit('/').next().unwrap_or_default();
            matches!(components.schemas.get(name), Some(RefOr::T(Schema::Array(_))))
        }
    }
}

/// The description of `ETag`.
const TAG: &str = "Tag of this answer, for `If-None-Match` and `If-Match` (RFC 9110, section 8.8.3)";

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

fn success<'a>(operation: &'a mut Operation, status: &str) -> Option<&'a mut Response> {
    match operation.responses.responses.get_mut(status) {
        Some(RefOr::T(response)) => Some(response),
        _ => None,
    }
}

fn add_header(response: &mut Response, name: &str, description: &str) {
    let mut header = Header::new(text().build());
    header.description = Some(description.to_owned());
    response.headers.insert(name.to_owned(), RefOr::T(header));
}

fn add_parameter(operation: &mut Operation, place: ParameterIn, name: &str, schema: ObjectBuilder, description: &str) {
    let parameter = ParameterBuilder::new().name(name).parameter_in(place).required(Required::False);
    let parameter = parameter.description(Some(description)).schema(Some(schema.build())).build();
    operation.parameters.get_or_insert_default().push(RefOr::T(parameter));
}

fn add_response(operation: &mut Operation, status: &str, description: &str) {
    let responses = &mut operation.responses.responses;
    let response = || RefOr::T(ResponseBuilder::new().description(description).build());
    responses.entry(status.to_owned()).or_insert_with(response);
}

/// Ids of the demonstration data that are the same in every database.
const DEMO_IDS: [(&str, &str); 2] =
    [("user", "f4626cad-abe0-5cf0-9f8a-af69cd254c29"), ("group", "4e090077-6479-53f4-9b3a-da64d276f703")];

/// The parameters of a path without a description are ids: that of `draftEventID` is "Id of the draft event".
fn describe_ids(operation: &mut Operation) {
    for parameter in operation.parameters.iter_mut().flatten() {
        if let RefOr::T(parameter) = parameter
            && parameter.parameter_in == ParameterIn::Path
            && parameter.description.is_none()
        {
            let name = parameter.name.strip_suffix("ID").or_else(|| parameter.name.strip_suffix("Id"));
            let mut words = String::new();
            for letter in name.unwrap_or(&parameter.name).chars() {
                if letter.is_uppercase() {
                    words.push(' ');
                }
                words.extend(letter.to_lowercase());
            }
            let example = DEMO_IDS.iter().find(|(what, _)| *what == words).map(|(_, id)| json!(id));
            let described = ParameterBuilder::from(parameter.clone()).description(Some(format!("Id of the {words}")));
            *parameter = described.example(example).build();
        }
    }
}

/// Descriptions of the lists that mean the same in every type.
const LISTS: [(&str, &str); 3] = [
    ("admins", "Ids of the administrators"),
    ("invitees", "Ids of the users who are asked"),
    ("members", "Ids of the members"),
];

/// Descriptions of the other properties that mean the same in every type.
const PROPERTIES: [(&str, &str); 5] = [
    ("createdAt", "When it was created"),
    ("createdBy", "Id of the user who created it"),
    ("timeEnd", "When it ends; this instant is no part of it"),
    ("timeStart", "When it begins"),
    ("updatedAt", "When it was last changed"),
];

fn describe_properties(schema: &mut RefOr<Schema>) {
    let properties = match schema {
        RefOr::T(Schema::Object(object)) => &mut object.properties,
        RefOr::T(Schema::Array(array)) => {
            if let ArrayItems::RefOrSchema(items) = &mut array.items {
                describe_properties(items);
            }
            return;
        }
        RefOr::T(Schema::AllOf(all)) => return all.items.iter_mut().for_each(describe_properties),
        RefOr::T(Schema::OneOf(one)) => return one.items.iter_mut().for_each(describe_properties),
        RefOr::T(_) | RefOr::Ref(_) => return,
    };
    for (name, property) in properties {
        describe_properties(property);
        let texts = if matches!(property, RefOr::T(Schema::Array(_))) { LISTS.as_slice() } else { &PROPERTIES };
        let Some((_, text)) = texts.iter().find(|(known, _)| known == name) else { continue };
        let description = match property {
            RefOr::Ref(reference) if reference.description.is_empty() => {
                (*text).clone_into(&mut reference.description);
                continue;
            }
            RefOr::T(Schema::Object(object)) => &mut object.description,
            RefOr::T(Schema::Array(array)) => &mut array.description,
            RefOr::Ref(_) | RefOr::T(_) => continue,
        };
        description.get_or_insert_with(|| (*text).to_owned());
    }
}

/// utoipa writes an inlined field that has a description as "all of the schema and of an object with that description",
/// which no text or list is.
fn join_descriptions(schema: &mut RefOr<Schema>) {
    let RefOr::T(Schema::Object(object)) = schema else { return };
    for field in object.properties.values_mut() {
        if let RefOr::T(Schema::AllOf(all)) = field
            && let [RefOr::T(inlined), RefOr::T(Schema::Object(described))] = all.items.as_slice()
            && described.properties.is_empty()
        {
            let (mut inlined, description) = (inlined.clone(), described.description.clone());
            match &mut inlined {
                Schema::Object(inlined) => inlined.description = description,
                Schema::Array(inlined) => inlined.description = description,
                _ => continue,
            }
            *field = RefOr::T(inlined);
        }
    }
}

fn add_refusals(operation: &mut Operation, codes: &[&'static Code], legacy: Legacy) {
    let parameters = operation.parameters.as_deref().unwrap_or_default();
    let in_path = parameters
        .iter()
        .any(|parameter| matches!(parameter, RefOr::T(parameter) if parameter.parameter_in == ParameterIn::Path));
    let (takes_credential, needs_credential) = credential(operation);
    let has_body = operation.request_body.is_some();
    let refusals = [
        (has_body, "400", "The body (`invalid-body`) or a parameter breaks a rule; `violations` says which"),
        (!parameters.is_empty(), "400", "A parameter breaks a rule (`invalid-parameter`); `violations` says which"),
        (takes_credential, "401", "Not signed in, or the credential is not valid"),
        (needs_credential, "403", "Not allowed, or the account is not active"),
        (in_path, "404", "No such object that the caller may see"),
        (has_body, "413", "The body is too large"),
        (has_body, "415", "The body has another media type"),
        (true, "429", "Over the rate limit; try again after `Retry-After` seconds"),
        (true, "500", "A fault of the service"),
        (true, "503", "The database cannot be reached in time; try again after `Retry-After` seconds"),
    ];
    for (_, status, description) in refusals.into_iter().filter(|(applies, ..)| *applies) {
        add_response(operation, status, description);
    }
    for (status, response) in &mut operation.responses.responses {
        if let RefOr::T(response) = response
            && status.as_str() >= "400"
            && !response.content.contains_key(PROBLEM_MEDIA_TYPE)
        {
            let code = example_code(status, &response.description, codes);
            let mut content = Content::new(Some(Ref::from_schema_name("Problem")));
            content.example = code.map(|code| Problem::new(code).body("0198c0de-0000-7000-8000-00000000beef", legacy));
            response.content.insert(PROBLEM_MEDIA_TYPE.to_owned(), RefOr::T(content));
        }
    }
}

/// The code that a response shows as an example: the first one that its description names in backticks, else the first
/// common one with its status.
fn example_code(status: &str, description: &str, codes: &[&'static Code]) -> Option<&'static Code> {
    let has_status = |code: &&Code| code.status.to_string() == status;
    let all = code::ALL.iter().chain(codes).copied().filter(has_status);
    let position = |code: &Code| description.find(&format!("`{}`", code.name));
    let named = all.filter_map(|code| position(code).map(|position| (position, code))).min_by_key(|(at, _)| *at);
    named.map(|(_, code)| code).or_else(|| code::ALL.iter().copied().find(has_status))
}

fn add_examples(operation: &mut Operation, components: &Components) {
    let answers = operation.responses.responses.values_mut().filter_map(|response| match response {
        RefOr::T(response) => Some(response.content.values_mut().collect::<Vec<_>>()),
        RefOr::Ref(_) => None,
    });
    let bodies = operation.request_body.iter_mut().filter_map(|body| match body {
        RefOr::T(body) => Some(body.content.values_mut().collect()),
        RefOr::Ref(_) => None,
    });
    for content in answers.chain(bodies).flatten() {
        if let RefOr::T(content) = content
            && content.example.is_none()
        {
            content.example = content.schema.as_ref().and_then(|schema| example(schema, components));
        }
    }
}

fn example(schema: &RefOr<Schema>, components: &Components) -> Option<Value> {
    match schema {
        RefOr::Ref(reference) => {
            let name = reference.ref_location.rsplit('/').next()?;
            example(components.schemas.get(name)?, components)
        }
        RefOr::T(Schema::Object(object)) => object.example.clone().or_else(|| object.examples.first().cloned()),
        RefOr::T(Schema::Array(array)) => match (&array.example, &array.items) {
            (Some(example), _) => Some(example.clone()),
            (None, ArrayItems::RefOrSchema(items)) => example(items, components).map(|one| json!([one])),
            _ => None,
        },
        RefOr::T(Schema::AllOf(all)) => all.example.clone(),
        RefOr::T(Schema::OneOf(one)) => {
            one.examples.first().cloned().or_else(|| one.items.iter().find_map(|item| example(item, components)))
        }
        RefOr::T(_) => None,
    }
}

/// RFC 9457, as the contract's "Errors" extends it.
fn problem_schema(fields: Option<RefOr<Schema>>, codes: &[&'static Code], legacy: Legacy) -> RefOr<Schema> {
    let string = |description: &str| text().description(Some(description));
    let number = |description: &str| {
        ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0)).description(Some(description))
    };
    let names = code::ALL.iter().chain(codes).map(|code| code.name);
    let rules = Rule::ALL.iter().map(|rule| rule.code());
    let violation = ObjectBuilder::new()
        .property("pointer", string("Where in the body, as a JSON pointer (RFC 6901)"))
        .property("parameter", string("Or which parameter of the path or the query"))
        .property("row", number("Or which row of a table, as a spreadsheet counts (the header is 1); 0 for all of it"))
        .property("column", string("And which column, by name"))
        .property("code", string(Rule::CODES).enum_values(Some(rules)))
        .property("message", string("The rule in words"))
        .required("code")
        .required("message");
    let violations = ArrayBuilder::new().items(violation).description(Some("Broken rules"));
    let mut problem = ObjectBuilder::new()
        .description(Some("RFC 9457 problem; `GET /problems/{code}` explains each code."))
        .property("type", string("URI reference /problems/<code>"))
        .property("title", string("Summary, the same for every occurrence"))
        .property("status", number("The status of the answer"))
        .property("detail", string("What happened this time"))
        .property("instance", string("The request id"))
        .property("code", string("Stable name of the problem; later versions may know more").enum_values(Some(names)))
        .property("violations", violations)
        .property("moreViolations", number("How many more broken rules there are, after the first 100"));
    for name in ["type", "title", "status", "detail", "instance", "code"] {
        problem = problem.required(name);
    }
    let old = string("As `detail`, for older clients").deprecated(Some(Deprecated::True));
    problem = match legacy {
        Legacy::Errors => {
            let errors = ObjectBuilder::new().property("message", old).required("message");
            problem.property("errors", errors.deprecated(Some(Deprecated::True))).required("errors")
        }
        Legacy::Message => problem.property("message", old).required("message"),
    };
    let mut problem = problem.build();
    if let Some(RefOr::T(Schema::Object(fields))) = fields {
        problem.properties.extend(fields.properties);
    }
    problem.into()
}

//! A client that checks every answer against the contract's headers, the members of problems and the OpenAPI document.
//! The harnesses of both services include this file, by its path, as a module of theirs, and give it `Club` (the
//! service under test), `INFO` and `check_own_rules`.

use std::{
    collections::HashMap,
    fmt,
    sync::{LazyLock, RwLock},
};

use jsonschema::Validator;
use serde_json::{Value, json};

use super::{Club, INFO, check_own_rules};

/// A client with the credentials of a caller.
#[derive(Clone)]
pub struct Client<'club> {
    pub(super) club: &'club Club,
    pub(super) service: usize,
    pub(super) headers: Vec<(String, String)>,
}

impl Client<'_> {
    /// The same caller at another replica.
    pub fn at(mut self, service: usize) -> Self {
        self.service = service;
        self
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Removes every header of this name.
    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(header, _)| !header.eq_ignore_ascii_case(name));
        self
    }

    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, None)
    }

    pub fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, None)
    }

    pub fn post(&self, path: &str, body: Value) -> Answer {
        self.send("POST", path, Some(body))
    }

    pub fn put(&self, path: &str, body: Value) -> Answer {
        self.send("PUT", path, Some(body))
    }

    pub fn patch(&self, path: &str, body: Value) -> Answer {
        self.send("PATCH", path, Some(body))
    }

    /// Any request; a body is sent as JSON.
    pub fn send(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        let json = ("content-type".to_owned(), "application/json".to_owned());
        let body = body.map(|body| body.to_string().into_bytes());
        let client = if body.is_some() { self.clone().header(&json.0, &json.1) } else { self.clone() };
        client.send_bytes(method, path, body.unwrap_or_default())
    }

    /// Any request with any body, whose media type is a header. The answer is checked against the OpenAPI document.
    pub fn send_bytes(&self, method: &str, path: &str, body: Vec<u8>) -> Answer {
        let mut request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.club.services[self.service].address));
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let agent = &self.club.agent;
        let sent =
            if body.is_empty() { agent.run(request.body(()).unwrap()) } else { agent.run(request.body(body).unwrap()) };
        let mut response = sent.unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        let headers = response
            .headers()
            .iter()
            .map(|(name, value)| (name.as_str().to_owned(), value.to_str().unwrap().to_owned()))
            .collect();
        let answer = Answer {
            request: format!("{method} {}", path.chars().take(200).collect::<String>()),
            status: response.status().as_u16(),
            headers,
            body: response.body_mut().with_config().limit(64 << 20).read_to_vec().unwrap(),
        };
        check_headers(&answer);
        check_body(method, path.split('?').next().unwrap(), &answer);
        answer
    }
}

/// An answer.
#[derive(Clone)]
pub struct Answer {
    pub(super) request: String,
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {:?}: {}", self.request, self.status, self.headers, self.text())
    }
}

impl Answer {
    /// Asserts the status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert!(self.status == status, "{}: {} instead of {status}: {}", self.request, self.status, self.text());
        self
    }

    /// Asserts status and problem code.
    #[track_caller]
    pub fn refused(self, status: u16, code: &str) -> Value {
        let problem = self.expect(status).json();
        assert_eq!(problem["code"], code, "{problem}");
        problem
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{}: {error}: {}", self.request, self.text()))
    }

    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    /// The JSON pointers of the violations of a problem.
    pub fn pointers(&self) -> Vec<String> {
        let problem = self.json();
        let violations = problem["violations"].as_array().cloned().unwrap_or_default();
        let mut found: Vec<_> = violations
            .iter()
            .map(|violation| violation["pointer"].as_str().or(violation["parameter"].as_str()).unwrap().to_owned())
            .collect();
        found.sort();
        found
    }
}

/// Whether the answer is a refusal for a person.
fn is_page(answer: &Answer) -> bool {
    answer.status >= 400 && answer.header("content-type").is_some_and(|kind| kind.starts_with("text/html"))
}

/// Contract, "Headers on every answer" and "Errors".
fn check_headers(answer: &Answer) {
    assert!(answer.header("x-request-id").is_some(), "{} has no request id", answer.request);
    // A page of a front end in the place of a file that does not exist has none (contract, "A front end").
    let is_front_end = answer.header("content-type").is_some_and(|kind| kind.starts_with("text/html"))
        && answer.header("cache-control") == Some("public, no-cache");
    if !is_front_end {
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{}", answer.request);
    }
    assert_eq!(answer.header("referrer-policy"), Some("no-referrer"), "{}", answer.request);
    let has_problem = !answer.request.starts_with("HEAD") && !answer.request.contains("/readyz") && !is_page(answer);
    let mut problem = None;
    if answer.status >= 400 && has_problem {
        let body = answer.json();
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{body}");
        assert_eq!(body["status"], answer.status, "{body}");
        // A replayed answer has the id of the first request.
        if answer.header("idempotency-replayed").is_none() {
            assert_eq!(body["instance"].as_str(), answer.header("x-request-id"), "{body}");
        }
        assert_eq!(body["type"], format!("/problems/{}", body["code"].as_str().unwrap()), "{body}");
        problem = Some(body);
    }
    check_own_rules(answer, problem.as_ref());
}

/// The OpenAPI document in its JSON form.
pub static DOCUMENT: LazyLock<Value> = LazyLock::new(|| serde_json::to_value(INFO.openapi()).unwrap());

static VALIDATORS: LazyLock<RwLock<HashMap<String, Validator>>> = LazyLock::new(RwLock::default);

/// Checks an answer against the document's response for this operation and status.
fn check_body(method: &str, path: &str, answer: &Answer) {
    assert!(!contains_null(&answer.body), "{} has a null: {}", answer.request, answer.text());
    // The host is checked before the operation is known.
    if answer.status == 421 || is_page(answer) {
        return;
    }
    let Some((template, operation)) = operation(method, path) else { return };
    let response = &operation["responses"][answer.status.to_string()];
    assert!(
        !response.is_null(),
        "{method} {template} does not document status {} (in `responses`, or for 401 a way to sign in in `security`): {}",
        answer.status,
        answer.text()
    );
    let media_type = answer.header("content-type").map(|value| value.split(';').next().unwrap().trim());
    let Some(media_type) = media_type.filter(|_| !answer.body.is_empty()) else {
        assert!(response["content"].is_null() || method == "HEAD", "{} has no body", answer.request);
        return;
    };
    let media_type = if media_type.starts_with("image/") { "image/*" } else { media_type };
    let schema = &response["content"][media_type]["schema"];
    assert!(!schema.is_null(), "{} does not document {media_type}", answer.request);
    if !media_type.ends_with("json") || media_type.ends_with("ndjson") {
        return;
    }
    let key = format!("{method} {template} {} {media_type}", answer.status);
    if !VALIDATORS.read().unwrap().contains_key(&key) {
        let schema = json!({"components": DOCUMENT["components"], "allOf": [schema]});
        VALIDATORS.write().unwrap().insert(key.clone(), jsonschema::validator_for(&schema).unwrap());
    }
    let errors: Vec<_> =
        VALIDATORS.read().unwrap()[&key].iter_errors(&answer.json()).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{key}: {errors:?} in {}", answer.text());
}

fn contains_null(body: &[u8]) -> bool {
    fn in_value(value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::Array(items) => items.iter().any(in_value),
            // A change in the history of an object may have no old or no new value.
            Value::Object(members) => members.iter().any(|(name, value)| name != "changes" && in_value(value)),
            _ => false,
        }
    }
    serde_json::from_slice(body).is_ok_and(|value| in_value(&value))
}

/// The operation of a path. Literal segments take precedence over parameters.
fn operation(method: &str, path: &str) -> Option<(String, &'static Value)> {
    let segments: Vec<_> = path.split('/').collect();
    let paths = DOCUMENT["paths"].as_object().unwrap();
    let mut found: Vec<_> = paths
        .iter()
        .filter(|(template, _)| {
            let parts: Vec<_> = template.split('/').collect();
            parts.len() == segments.len()
                && parts.iter().zip(&segments).all(|(part, segment)| part.starts_with('{') || part == segment)
        })
        .collect();
    found.sort_by_key(|(template, _)| template.matches('{').count());
    let (template, item) = found.first()?;
    Some(((*template).clone(), item.get(method.to_lowercase())?))
}

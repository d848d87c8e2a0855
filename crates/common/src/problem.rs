//! Error answers: RFC 9457 problems with stable codes (contract, "Errors").
//!
//! A [`Code`] is declared once as a constant; `GET /problems` lists the declared ones. A [`Problem`] is one occurrence.
//! Its `instance` depends on the request and its legacy member on the service, so [`Problem::body`] takes both.

pub mod code;
mod rule;

use std::{fmt, ops::ControlFlow};

use deserr::{DeserializeError, ErrorKind, IntoValue, MergeWithError, ValueKind, ValuePointerRef};
use serde::Serialize;
use serde_json::{Map, Value, json};

pub use rule::Rule;

/// A kind of problem: the last segment of its `type`, its HTTP status and what it means.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Code {
    /// Stable kebab-case name, the `code` member and the end of the `type` reference.
    pub name: &'static str,
    /// HTTP status code of every answer with this code.
    pub status: u16,
    /// Short human-readable summary, the same for every occurrence.
    pub title: &'static str,
    /// What happened and what a client can do about it.
    pub about: &'static str,
}

/// Declares [`Code`] constants and the list of them all.
#[macro_export]
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $status:literal $code:literal, $title:literal, $about:literal;)+) => {
        $($(#[$doc])* pub const $name: &$crate::problem::Code =
            &$crate::problem::Code { name: $code, status: $status, title: $title, about: $about };)+
        /// Every code declared here, in order of declaration.
        pub const ALL: &[&$crate::problem::Code] = &[$($name),+];
    };
}

/// The place of a violation in a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Location {
    /// In the JSON body, as an RFC 6901 pointer.
    Pointer {
        /// For example `/tags/0/name`; empty for the whole body.
        pointer: String,
    },
    /// In the path or the query.
    Parameter {
        /// The parameter's name.
        parameter: String,
    },
    /// In an uploaded table.
    Cell {
        /// Number of the row, from 1 with the header, as a spreadsheet counts; 0 for the whole file.
        row: usize,
        /// Name of the column, left out for a violation of the whole row.
        #[serde(skip_serializing_if = "Option::is_none")]
        column: Option<String>,
    },
}

/// One broken rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The value that breaks the rule.
    #[serde(flatten)]
    pub location: Location,
    /// The rule.
    pub code: Rule,
    /// The rule in words.
    pub message: String,
}

impl Violation {
    /// A violation at a JSON pointer of the body.
    pub fn at(pointer: impl Into<String>, code: Rule, message: impl Into<String>) -> Self {
        Self { location: Location::Pointer { pointer: pointer.into() }, code, message: message.into() }
    }

    /// A violation of a path or query parameter.
    pub fn parameter(name: impl Into<String>, code: Rule, message: impl Into<String>) -> Self {
        Self { location: Location::Parameter { parameter: name.into() }, code, message: message.into() }
    }
}

/// All violations of one body, collected while it is deserialized.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Violations(pub Vec<Violation>);

impl Violations {
    /// A single violation, at a place in a body.
    pub fn one(at: ValuePointerRef<'_>, code: Rule, message: impl Into<String>) -> Self {
        Self(vec![Violation::at(pointer(at), code, message)])
    }

    /// Adds a violation at a JSON pointer.
    pub fn push(&mut self, pointer: impl Into<String>, code: Rule, message: impl Into<String>) {
        self.0.push(Violation::at(pointer, code, message));
    }

    /// `Ok` when there are no violations.
    ///
    /// # Errors
    /// 400 `invalid-body` with every violation.
    pub fn into_result(self) -> Result<(), Problem> {
        if self.0.is_empty() { Ok(()) } else { Err(self.into()) }
    }
}

/// The RFC 6901 pointer of a place in a body.
pub fn pointer(location: ValuePointerRef<'_>) -> String {
    match location {
        ValuePointerRef::Origin => String::new(),
        ValuePointerRef::Key { key, prev } => {
            format!("{}/{}", pointer(*prev), key.replace('~', "~0").replace('/', "~1"))
        }
        ValuePointerRef::Index { index, prev } => format!("{}/{index}", pointer(*prev)),
    }
}

impl MergeWithError<Self> for Violations {
    fn merge(self_: Option<Self>, other: Self, _: ValuePointerRef<'_>) -> ControlFlow<Self, Self> {
        let mut all = self_.unwrap_or_default();
        all.0.extend(other.0);
        ControlFlow::Continue(all)
    }
}

impl DeserializeError for Violations {
    fn error<V: IntoValue>(
        self_: Option<Self>,
        error: ErrorKind<'_, V>,
        location: ValuePointerRef<'_>,
    ) -> ControlFlow<Self, Self> {
        let mut all = self_.unwrap_or_default();
        let here = pointer(location);
        match error {
            ErrorKind::IncorrectValueKind { actual, accepted } => {
                // What accepts negative integers accepts the others too.
                let accepted = accepted.iter().filter(|kind| !matches!(kind, ValueKind::NegativeInteger));
                let accepted: Vec<_> = accepted.map(|kind| json_kind(*kind)).collect();
                let actual = json_kind(actual.kind());
                all.push(here, Rule::WrongType, format!("must be {}, not {actual}", accepted.join(" or ")));
            }
            ErrorKind::MissingField { field } => {
                let field = pointer(location.push_key(field));
                all.push(field, Rule::Required, "is required");
            }
            ErrorKind::UnknownKey { key, .. } => {
                let key = pointer(location.push_key(key));
                all.push(key, Rule::NotAllowed, "is not a field of this object");
            }
            ErrorKind::UnknownValue { accepted, .. } => {
                all.push(here, Rule::NotAllowed, format!("must be one of {}", accepted.join(", ")));
            }
            ErrorKind::BadSequenceLen { expected, .. } => {
                all.push(here, Rule::Length, format!("must have {expected} elements"));
            }
            ErrorKind::Unexpected { msg } => all.push(here, Rule::Invalid, msg),
        }
        ControlFlow::Continue(all)
    }
}

fn json_kind(kind: ValueKind) -> &'static str {
    match kind {
        ValueKind::Null => "null",
        ValueKind::Boolean => "a boolean",
        ValueKind::Integer => "an integer",
        ValueKind::NegativeInteger => "a negative integer",
        ValueKind::Float => "a number",
        ValueKind::String => "a string",
        ValueKind::Sequence => "an array",
        ValueKind::Map => "an object",
    }
}

/// The member that clients written before RFC 9457 read the message from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Legacy {
    /// `errors: {message}`, as the booking front ends expect.
    Errors,
    /// `message`, as the portfolio front ends expect.
    Message,
}

/// The maximum number of violations in the detail.
const EXPLAINED_VIOLATIONS: usize = 10;

/// The maximum number of violations in a body (contract, "JSON").
const LISTED_VIOLATIONS: usize = 100;

/// One occurrence of a failure.
pub struct Problem(Box<Inner>);

struct Inner {
    code: &'static Code,
    detail: Option<String>,
    violations: Vec<Violation>,
    members: Map<String, Value>,
    headers: Vec<(&'static str, String)>,
    cause: Option<String>,
}

impl Problem {
    /// A problem of this kind. Its detail is the `about` of the code until [`detail`](Self::detail) or
    /// [`violations`](Self::violations) replaces it.
    pub fn new(code: &'static Code) -> Self {
        let (violations, members, headers) = (Vec::new(), Map::new(), Vec::new());
        Self(Box::new(Inner { code, detail: None, violations, members, headers, cause: None }))
    }

    /// 404 `not-found`; `what` completes "There is no such …".
    pub fn not_found(what: &str) -> Self {
        Self::new(code::NOT_FOUND).detail(format!("There is no such {what}."))
    }

    /// 403 `forbidden`; `needed` completes "This needs …".
    pub fn forbidden(needed: &str) -> Self {
        Self::new(code::FORBIDDEN).detail(format!("This needs {needed}."))
    }

    /// 500 `internal-error`. The cause is logged and never sent to the client.
    pub fn internal(cause: impl fmt::Display) -> Self {
        Self::new(code::INTERNAL).because(cause)
    }

    /// 400 `invalid-body` with one violation at a JSON pointer.
    pub fn invalid(pointer: impl Into<String>, code: Rule, message: impl Into<String>) -> Self {
        Violations(vec![Violation::at(pointer, code, message)]).into()
    }

    /// 400 `invalid-parameter` for one path or query parameter.
    pub fn parameter(name: impl Into<String>, code: Rule, message: impl Into<String>) -> Self {
        Self::new(code::INVALID_PARAMETER).violations(vec![Violation::parameter(name, code, message)])
    }

    /// Sets the human-readable explanation of this occurrence.
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = Some(detail.into());
        self
    }

    /// Sets the violations. Without an explicit detail, the detail is a summary of them.
    pub fn violations(mut self, violations: Vec<Violation>) -> Self {
        self.0.violations = violations;
        self
    }

    /// Adds an extension member, such as `conflicts`.
    pub fn member(mut self, name: &str, value: Value) -> Self {
        self.0.members.insert(name.to_owned(), value);
        self
    }

    /// The violations.
    pub fn broken_rules(&self) -> &[Violation] {
        &self.0.violations
    }

    /// An extension member.
    pub fn extra(&self, name: &str) -> Option<&Value> {
        self.0.members.get(name)
    }

    /// Adds a header of the answer, such as `ETag`.
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.0.headers.push((name, value.into()));
        self
    }

    /// Sets the cause. It is logged and never sent to the client.
    pub fn because(mut self, cause: impl fmt::Display) -> Self {
        self.0.cause = Some(cause.to_string());
        self
    }

    /// Sets the `Retry-After` header, in seconds.
    pub fn retry_after(self, seconds: u64) -> Self {
        self.header("retry-after", seconds.to_string())
    }

    /// The kind of this problem.
    pub fn code(&self) -> &'static Code {
        self.0.code
    }

    /// The HTTP status.
    pub fn status(&self) -> u16 {
        self.0.code.status
    }

    /// The headers of the answer, besides those that every problem has.
    pub fn headers(&self) -> &[(&'static str, String)] {
        &self.0.headers
    }

    /// The cause, for the log.
    pub fn cause(&self) -> Option<&str> {
        self.0.cause.as_deref()
    }

    /// The `detail` of the body.
    pub fn explanation(&self) -> String {
        if let Some(detail) = &self.0.detail {
            return detail.clone();
        }
        let violations: Vec<_> = self.0.violations.iter().take(EXPLAINED_VIOLATIONS).map(ToString::to_string).collect();
        match self.0.violations.len() {
            0 => self.0.code.about.to_owned(),
            all if all > EXPLAINED_VIOLATIONS => {
                format!("{}; and {} more", violations.join("; "), all - EXPLAINED_VIOLATIONS)
            }
            _ => violations.join("; "),
        }
    }

    /// The `application/problem+json` object; `instance` is the request id.
    pub fn body(&self, instance: &str, legacy: Legacy) -> Value {
        let detail = self.explanation();
        let mut body = json!({
            "type": format!("/problems/{}", self.0.code.name),
            "title": self.0.code.title,
            "status": self.0.code.status,
            "detail": detail,
            "instance": instance,
            "code": self.0.code.name,
        });
        if !self.0.violations.is_empty() {
            let (listed, more) = self.0.violations.split_at(self.0.violations.len().min(LISTED_VIOLATIONS));
            body["violations"] = json!(listed);
            if !more.is_empty() {
                body["moreViolations"] = json!(more.len());
            }
        }
        for (name, value) in &self.0.members {
            body[name] = value.clone();
        }
        match legacy {
            Legacy::Errors => body["errors"] = json!({ "message": detail }),
            Legacy::Message => body["message"] = json!(detail),
        }
        body
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.location {
            Location::Pointer { pointer } if pointer.is_empty() => write!(f, "the body {}", self.message),
            Location::Pointer { pointer } => write!(f, "{pointer} {}", self.message),
            Location::Parameter { parameter } => write!(f, "{parameter} {}", self.message),
            Location::Cell { row, column: Some(column) } => write!(f, "row {row}, {column}: {}", self.message),
            Location::Cell { row, column: None } => write!(f, "row {row}: {}", self.message),
        }
    }
}

impl From<Violations> for Problem {
    fn from(violations: Violations) -> Self {
        Self::new(code::INVALID_BODY).violations(violations.0)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code.name, self.explanation())
    }
}

impl fmt::Debug for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} ({:?})", self.0.cause)
    }
}

impl std::error::Error for Problem {}

#[cfg(test)]
mod tests;

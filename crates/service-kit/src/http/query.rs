//! Query and path parameters: all violations at once, each naming its parameter.

use std::future::{Ready, ready};

use actix_web::{FromRequest, HttpRequest, dev::Payload, error::PathError, web::PathConfig};
use common::{
    input::Id,
    problem::{Location, Problem, Rule, Violation, Violations, code},
};
use deserr::Deserr;
use serde_json::{Map, Value};
use url::form_urlencoded;

use crate::error::{Error, Failure};

/// The query string parsed into `T`, whose fields are read from strings. Unknown parameters are ignored.
pub struct Query<T>(pub T);

impl<T: Deserr<Violations>> FromRequest for Query<T> {
    type Error = Failure;
    type Future = Ready<Result<Self, Failure>>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(parse(req.query_string()).map(Self).map_err(Failure::from))
    }
}

/// Parses a query string.
///
/// # Errors
/// 400 `invalid-parameter` with every parameter that cannot be used, or that is given twice.
pub fn parse<T: Deserr<Violations>>(query: &str) -> Result<T, Error> {
    let mut values = Map::new();
    let mut repeated = Vec::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        // An empty value counts as absent (contract, "JSON").
        if value.is_empty() {
            continue;
        }
        if values.insert(name.to_string(), Value::String(value.into_owned())).is_some() {
            repeated.push(name.into_owned());
        }
    }
    // No parameter is a list, so a repeated one that `T` has is refused; others are ignored.
    for name in &repeated {
        values.insert(name.clone(), Value::Array(Vec::new()));
    }
    deserr::deserialize::<T, _, Violations>(Value::Object(values)).map_err(|violations| {
        let violations = violations.0.into_iter().map(|violation| match in_query(violation) {
            Violation { location: Location::Parameter { parameter }, .. } if repeated.contains(&parameter) => {
                Violation::parameter(parameter, Rule::Duplicate, "must be given once")
            }
            violation => violation,
        });
        Problem::new(code::INVALID_PARAMETER).violations(violations.collect()).into()
    })
}

/// The parameters of a request.
pub fn pairs(req: &HttpRequest) -> Vec<(String, String)> {
    form_urlencoded::parse(req.query_string().as_bytes()).into_owned().collect()
}

/// The same violation, naming a parameter where it named a member of the body.
fn in_query(violation: Violation) -> Violation {
    match violation.location {
        Location::Pointer { pointer } => {
            let parameter = pointer.trim_start_matches('/').to_owned();
            Violation { location: Location::Parameter { parameter }, ..violation }
        }
        _ => violation,
    }
}

/// Answers a path parameter that is no identifier with 400, naming it. Identifiers are those named `…ID` or `…Id`.
pub fn path_config() -> PathConfig {
    PathConfig::default().error_handler(|_: PathError, req| {
        let violations = req
            .match_info()
            .iter()
            .filter(|(name, _)| name.ends_with("ID") || name.ends_with("Id"))
            .filter_map(|(name, value)| {
                value.parse::<Id>().err().map(|message| Violation::parameter(name, Rule::NotAUuid, message))
            })
            .collect();
        Failure(Problem::new(code::INVALID_PARAMETER).violations(violations)).into()
    })
}

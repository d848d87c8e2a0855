//! CORS (contract, "CORS"): off unless origins of other sites are configured.
//!
//! Here and not in a middleware of its own, so that an answer to a request that timed out or panicked has the headers
//! too, and so that a preflight gets those of every answer.

use actix_web::{
    HttpResponse,
    http::{
        Method,
        header::{self, HeaderMap, HeaderValue},
    },
};

use super::credential::Origins;

const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE";
const EXPOSED: &str = "ETag, Link, Location, Retry-After, X-Request-Id, X-KNOQ-Need-Authorization";
/// How long a browser may remember the answer to a preflight.
const SECONDS: &str = "3600";

/// What the answer to one request tells the browser about pages of other sites.
pub(super) enum Cors {
    /// Nothing: no other site is allowed.
    Off,
    /// Not to this page, but perhaps to another.
    Refused,
    /// It may call with credentials, and read the answer.
    Allowed(HeaderValue),
}

impl Cors {
    /// Looks at who asks.
    pub(super) fn of(headers: &HeaderMap, origins: &Origins) -> Self {
        if origins.allowed().is_empty() {
            return Self::Off;
        }
        match headers.get(header::ORIGIN) {
            Some(origin) if origins.allowed().iter().any(|allowed| allowed.as_bytes() == origin.as_bytes()) => {
                Self::Allowed(origin.clone())
            }
            _ => Self::Refused,
        }
    }

    /// The answer to a preflight of an allowed origin; every other request is for somebody else to answer.
    pub(super) fn preflight(&self, method: &Method, headers: &HeaderMap) -> Option<HttpResponse> {
        let is_preflight = *method == Method::OPTIONS && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        if !is_preflight || !matches!(self, Self::Allowed(_)) {
            return None;
        }
        let mut response = HttpResponse::NoContent();
        response
            .insert_header((header::ACCESS_CONTROL_ALLOW_METHODS, METHODS))
            .insert_header((header::ACCESS_CONTROL_MAX_AGE, SECONDS));
        // Any header may be sent; the wildcard means nothing together with credentials.
        if let Some(wanted) = headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
            response.insert_header((header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone()));
        }
        Some(response.finish())
    }

    /// Adds the headers of every answer.
    pub(super) fn add_to(&self, headers: &mut HeaderMap) {
        if let Self::Allowed(origin) = self {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            headers.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
        }
        if !matches!(self, Self::Off) {
            headers.append(header::VARY, HeaderValue::from_static("Origin"));
        }
    }
}

//! The credential of a request: a session cookie or a bearer token.

use actix_web::{HttpRequest, http::header};
use common::problem::{Problem, code};

/// A credential as the client sent it, not yet verified.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    /// The value of the session cookie.
    Session(String),
    /// The token behind `Authorization: Bearer`.
    Bearer(String),
}

impl Credential {
    /// The credential of a request; a token goes before a cookie.
    ///
    /// # Errors
    /// 401 when there is none, or the `Authorization` header has another scheme.
    pub fn from_request(req: &HttpRequest, cookie: &str) -> Result<Self, Problem> {
        if let Some(header) = req.headers().get(header::AUTHORIZATION) {
            return header
                .to_str()
                .ok()
                .and_then(|value| value.split_once(' '))
                .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
                .map(|(_, token)| Self::Bearer(token.trim().to_owned()))
                .ok_or_else(|| {
                    Problem::new(code::BAD_CREDENTIALS).detail("The Authorization header must be Bearer and a token.")
                });
        }
        match req.cookie(cookie) {
            Some(cookie) => Ok(Self::Session(cookie.value().to_owned())),
            None => Err(Problem::new(code::NOT_SIGNED_IN)),
        }
    }
}

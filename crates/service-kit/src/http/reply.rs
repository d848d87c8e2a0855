//! The answer of an operation as plain data: it can be made on a database thread, and kept.

use actix_web::{
    HttpRequest, HttpResponse, Responder,
    body::BoxBody,
    http::{
        StatusCode,
        header::{self, HeaderName, HeaderValue},
    },
};
use common::problem::Problem;
use serde::Serialize;

use crate::error::Error;

/// Status, headers and body of a successful answer.
#[derive(Debug, Clone)]
pub struct Reply {
    status: StatusCode,
    headers: Vec<(HeaderName, String)>,
    body: Vec<u8>,
}

impl Reply {
    /// 200 with a JSON body.
    ///
    /// # Errors
    /// 500 when the value cannot be serialized.
    pub fn json(value: &impl Serialize) -> Result<Self, Error> {
        let body = serde_json::to_vec(value).map_err(Problem::internal)?;
        Ok(Self::of(StatusCode::OK, "application/json", body))
    }

    /// 201 with a JSON body.
    ///
    /// # Errors
    /// 500 when the value cannot be serialized.
    pub fn created(value: &impl Serialize) -> Result<Self, Error> {
        Ok(Self { status: StatusCode::CREATED, ..Self::json(value)? })
    }

    /// 201 or 204 without a body.
    #[must_use]
    pub fn empty(status: StatusCode) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new() }
    }

    /// 204.
    #[must_use]
    pub fn no_content() -> Self {
        Self::empty(StatusCode::NO_CONTENT)
    }

    /// A body of another media type.
    #[must_use]
    pub fn of(status: StatusCode, media_type: &str, body: Vec<u8>) -> Self {
        Self { status, headers: vec![(header::CONTENT_TYPE, media_type.to_owned())], body }
    }

    /// Adds a header.
    #[must_use]
    pub fn with(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

impl Responder for Reply {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        let mut response = HttpResponse::build(self.status);
        for (name, value) in self.headers {
            // A value that is no header text cannot come from a caller; leaving it out beats a panic.
            if let Ok(value) = HeaderValue::try_from(value) {
                response.append_header((name, value));
            }
        }
        response.body(self.body)
    }
}

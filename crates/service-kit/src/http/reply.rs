//! The answer of an operation as plain data, which a database thread can make and the database can store.

use std::{fmt, pin::Pin};

use actix_web::{
    HttpRequest, HttpResponse, Responder,
    body::BoxBody,
    http::{
        StatusCode,
        header::{self, HeaderName, HeaderValue},
    },
    web::Bytes,
};
use common::problem::Problem;
use futures_util::{Stream, StreamExt, stream};
use serde::Serialize;

use crate::error::Error;

/// The media type of a problem (RFC 9457).
pub const PROBLEM_MEDIA_TYPE: &str = "application/problem+json";

/// The rest of a streamed body.
type Rest = Pin<Box<dyn Stream<Item = Result<Bytes, Problem>> + Send>>;

/// Status, headers and body of an answer.
pub struct Reply {
    status: StatusCode,
    headers: Vec<(HeaderName, String)>,
    body: Vec<u8>,
    is_secret: bool,
    rest: Option<Rest>,
}

impl Reply {
    /// 200 with a JSON body.
    pub fn json(value: &impl Serialize) -> Result<Self, Error> {
        let body = serde_json::to_vec(value).map_err(Problem::internal)?;
        Ok(Self::new(StatusCode::OK, "application/json", body))
    }

    /// 201 with a JSON body.
    pub fn created(value: &impl Serialize) -> Result<Self, Error> {
        Ok(Self { status: StatusCode::CREATED, ..Self::json(value)? })
    }

    /// 201 or 204 without a body.
    pub fn empty(status: StatusCode) -> Self {
        Self::raw(status, Vec::new())
    }

    /// A body without headers.
    pub fn raw(status: StatusCode, body: Vec<u8>) -> Self {
        Self { status, headers: Vec::new(), body, is_secret: false, rest: None }
    }

    /// 204.
    pub fn no_content() -> Self {
        Self::empty(StatusCode::NO_CONTENT)
    }

    /// A body of another media type.
    pub fn new(status: StatusCode, media_type: &str, body: Vec<u8>) -> Self {
        Self::raw(status, body).with(header::CONTENT_TYPE, media_type)
    }

    /// Adds a header.
    pub fn with(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Adds `Set-Cookie` headers.
    pub fn with_cookies(self, cookies: impl IntoIterator<Item = String>) -> Self {
        cookies.into_iter().fold(self, |reply, cookie| reply.with(header::SET_COOKIE, cookie))
    }

    /// Removes a header.
    pub fn without(mut self, name: &HeaderName) -> Self {
        self.headers.retain(|(other, _)| other != name);
        self
    }

    /// The same answer with another status.
    pub fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// Marks the body as secret: no cache stores it, and the database stores it encrypted.
    pub fn secret(mut self) -> Self {
        self.is_secret = true;
        self.headers.retain(|(name, _)| *name != header::CACHE_CONTROL);
        self.with(header::CACHE_CONTROL, "no-store")
    }

    /// Marks the answer as the same for everybody: shared caches may store it, and must revalidate it.
    pub fn public(self) -> Self {
        self.with(header::CACHE_CONTROL, "public, no-cache")
    }

    /// Marks the answer as the same for everybody for ever: its address has a hash of it.
    pub fn immutable(self) -> Self {
        self.with(header::CACHE_CONTROL, "public, max-age=31536000, immutable")
    }

    /// 304 with the headers of this answer.
    pub fn into_not_modified(mut self) -> Self {
        self.headers.retain(|(name, _)| *name != header::CONTENT_TYPE);
        Self { headers: self.headers, ..Self::empty(StatusCode::NOT_MODIFIED) }
    }

    /// Adds a stream that follows the body. If it fails, the connection is closed before the end of the body, which the
    /// client notices.
    pub fn followed_by(mut self, rest: impl Stream<Item = Result<Bytes, Problem>> + Send + 'static) -> Self {
        self.rest = Some(Box::pin(rest));
        self
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// All headers.
    pub fn headers(&self) -> &[(HeaderName, String)] {
        &self.headers
    }

    /// The first value of a header.
    pub fn header(&self, name: &HeaderName) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// The body.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Whether the body holds a secret.
    pub fn is_secret(&self) -> bool {
        self.is_secret
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Neither body nor headers: they may hold secrets.
        f.debug_struct("Reply").field("status", &self.status).field("bytes", &self.body.len()).finish_non_exhaustive()
    }
}

impl Responder for Reply {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        let mut response = HttpResponse::build(self.status);
        for (name, value) in self.headers {
            // No value comes from a caller unchecked, so none is left out.
            if let Ok(value) = HeaderValue::try_from(value) {
                response.append_header((name, value));
            }
        }
        let Some(rest) = self.rest else { return response.body(self.body) };
        let start = stream::once(async { Ok(Bytes::from(self.body)) });
        response.streaming(start.chain(rest))
    }
}

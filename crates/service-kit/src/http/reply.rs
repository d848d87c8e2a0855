//! The answer of an operation as plain data: it can be made on a database thread, and kept.

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

use super::Page;
use crate::error::{Error, Failure};

/// A list without rows.
const EMPTY_LIST: &[u8] = b"[]";

/// What follows the body, made while it is sent.
type Tail = Pin<Box<dyn Stream<Item = Result<Bytes, Problem>> + Send>>;

/// A reply to come, or why there is none. In a box, so that the future of a handler stays below the kilobyte up to which
/// the allocator of the C library gives a thread back what it had, and beyond which it makes others wait.
pub type Answer = Pin<Box<dyn Future<Output = Result<Reply, Failure>>>>;

/// Status, headers and body of an answer.
pub struct Reply {
    status: StatusCode,
    headers: Vec<(HeaderName, String)>,
    body: Vec<u8>,
    is_secret: bool,
    problem: Option<Problem>,
    rest: Option<Box<Page>>,
    tail: Option<Tail>,
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
        Self::raw(status, Vec::new())
    }

    /// A body without any header yet.
    #[must_use]
    pub fn raw(status: StatusCode, body: Vec<u8>) -> Self {
        Self { status, headers: Vec::new(), body, is_secret: false, problem: None, rest: None, tail: None }
    }

    /// A refusal that was decided in a transaction which is to be committed all the same.
    #[must_use]
    pub fn problem(problem: Problem) -> Self {
        let status = StatusCode::from_u16(problem.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self { problem: Some(problem), ..Self::empty(status) }
    }

    /// 204.
    #[must_use]
    pub fn no_content() -> Self {
        Self::empty(StatusCode::NO_CONTENT)
    }

    /// A body of another media type.
    #[must_use]
    pub fn of(status: StatusCode, media_type: &str, body: Vec<u8>) -> Self {
        Self::raw(status, body).with(header::CONTENT_TYPE, media_type)
    }

    /// Adds a header.
    #[must_use]
    pub fn with(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Says that the body holds a secret: no cache keeps it, and the database only sealed.
    #[must_use]
    pub fn secret(mut self) -> Self {
        self.is_secret = true;
        self.headers.retain(|(name, _)| *name != header::CACHE_CONTROL);
        self.with(header::CACHE_CONTROL, "no-store")
    }

    /// Says that everybody is answered the same: a cache may keep it for all, and asks whether it still holds.
    #[must_use]
    pub fn public(self) -> Self {
        self.with(header::CACHE_CONTROL, "public, no-cache")
    }

    /// That the caller has this answer already: 304, with the headers that keep it fresh.
    #[must_use]
    pub fn not_modified(mut self) -> Self {
        self.headers.retain(|(name, _)| *name != header::CONTENT_TYPE);
        Self { headers: self.headers, ..Self::empty(StatusCode::NOT_MODIFIED) }
    }

    /// Says that the list goes on there.
    #[must_use]
    pub fn and_then(self, rest: Page) -> Self {
        Self { rest: Some(Box::new(rest)), ..self }
    }

    /// Whether the list goes on beyond the body.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        self.rest.is_some()
    }

    /// The whole list, if this is not all of it: `more` reads what follows, part by part, as fast as the client takes
    /// it. An error on the way breaks the answer off, which the client can tell from an end.
    #[must_use]
    pub fn whole<F>(mut self, more: impl Fn(Page) -> F + Send + 'static) -> Self
    where
        F: Future<Output = Result<Self, Error>> + Send + 'static,
    {
        let Some(rest) = self.rest.take() else { return self };
        // The closing bracket goes last.
        self.body.pop();
        let parts = stream::try_unfold((Some(rest), more), |(rest, more)| async move {
            let Some(rest) = rest else { return Ok::<_, Problem>(None) };
            let mut part = more(*rest).await.map_err(Error::into_problem)?;
            let rest = part.rest.take();
            let mut rows = part.body;
            if rows.len() > EMPTY_LIST.len() {
                rows[0] = b',';
            } else {
                rows.remove(0);
            }
            if rest.is_some() {
                rows.pop();
            }
            Ok(Some((Bytes::from(rows), (rest, more))))
        });
        Self { tail: Some(Box::pin(parts)), ..self }
    }

    /// The status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// All headers.
    #[must_use]
    pub fn headers(&self) -> &[(HeaderName, String)] {
        &self.headers
    }

    /// The first value of a header.
    #[must_use]
    pub fn header(&self, name: &HeaderName) -> Option<&str> {
        self.headers.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str())
    }

    /// The body.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Whether the body holds a secret.
    #[must_use]
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
        if let Some(problem) = self.problem {
            return HttpResponse::from_error(Failure(problem));
        }
        let mut response = HttpResponse::build(self.status);
        for (name, value) in self.headers {
            // A value that is no header text cannot come from a caller; leaving it out beats a panic.
            if let Ok(value) = HeaderValue::try_from(value) {
                response.append_header((name, value));
            }
        }
        let Some(tail) = self.tail else { return response.body(self.body) };
        let begun = stream::once(async { Ok(Bytes::from(self.body)) });
        response.streaming(begun.chain(tail))
    }
}

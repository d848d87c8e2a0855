//! The frame around every request: request id, HEAD, time-out, panics, problem bodies, headers of every answer, one
//! line in the log and one count in the metrics.

use std::{
    error::Error as StdError,
    iter::successors,
    panic::AssertUnwindSafe,
    pin::Pin,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use actix_web::{
    Error, HttpMessage, HttpRequest, HttpResponse,
    body::{BodySize, BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    error::InternalError,
    http::{
        Method, StatusCode,
        header::{self, HeaderMap, HeaderName, HeaderValue},
    },
    middleware::Next,
    web::{Bytes, Data},
};
use common::problem::{Problem, code};
use futures_util::FutureExt;
use uuid::Uuid;

use super::etag;
use crate::{error::Failure, metrics::InFlight, server::AppState};

/// The header that carries the request id in both directions.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Who made a request, for the log: put into the request's extensions by whoever finds out.
pub struct LoggedCaller(pub Uuid);

/// In place of a route: a file of the front end, or one of its pages.
const FILE: &str = "static";

struct RequestId(String);

/// The id of a request that has come through the frame.
pub(super) fn id_of(req: &HttpRequest) -> String {
    req.extensions().get::<RequestId>().map(|id| id.0.clone()).unwrap_or_default()
}

/// The media type of a problem.
pub(super) const PROBLEM: &str = "application/problem+json";

/// The outermost middleware: all but the rendering of problems.
///
/// # Errors
/// Only finished responses travel as errors: those to requests that timed out or panicked.
pub async fn frame<B: MessageBody + 'static>(
    mut req: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let Some(service) = req.app_data::<Data<AppState>>().cloned() else {
        return Ok(req.into_response(HttpResponse::InternalServerError().finish()));
    };
    let mut line = Line {
        method: known(req.method()),
        // Asked before the request goes in, as one that times out or panics does not come out again.
        route: req.match_pattern().unwrap_or_else(|| {
            let is_file = service.front_end_of(req.request()).is_some();
            if is_file { FILE.to_owned() } else { "-".to_owned() }
        }),
        status: NO_ANSWER,
        is_broken: false,
        bytes: 0,
        id: request_id(req.headers()),
        caller: None,
        begun: Instant::now(),
        _in_flight: service.metrics().begin(),
        service: service.clone(),
    };
    req.extensions_mut().insert(RequestId(line.id.clone()));
    // HEAD is GET without the body, everywhere.
    if req.method() == Method::HEAD {
        req.head_mut().method = Method::GET;
    }
    // Else a path with a parameter would take it, and say that `me` is no identifier. OPTIONS may be a preflight.
    if req.method() != Method::OPTIONS && service.routes().refuses(req.path(), req.method()) {
        let mut response = HttpResponse::MethodNotAllowed();
        if let Some(methods) = service.routes().allow(req.path()) {
            response.insert_header((header::ALLOW, methods));
        }
        return Ok(req.into_response(complete(line, response.finish())));
    }
    let answer = AssertUnwindSafe(tokio::time::timeout(service.request_timeout(), next.call(req))).catch_unwind().await;
    // Without an answer there is no request any more either, so that what is left can only travel as an error.
    let error = match answer {
        Ok(Ok(Ok(answered))) => {
            let (req, response) = answered.map_into_boxed_body().into_parts();
            line.caller = req.extensions().get::<LoggedCaller>().map(|caller| caller.0);
            return Ok(ServiceResponse::new(req, complete(line, response)));
        }
        Ok(Ok(Err(error))) => error,
        Ok(Err(_)) => Failure(Problem::new(code::UNAVAILABLE).because("the request passed its time limit")).into(),
        Err(_) => Failure(Problem::internal("the handler panicked")).into(),
    };
    let response = complete(line, HttpResponse::from_error(error));
    Err(InternalError::from_response("", response).into())
}

/// The innermost middleware: renders problems, before they are compressed.
///
/// # Errors
/// Passes on what it is given.
pub async fn problems<B: MessageBody + 'static>(
    req: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let (req, response) = next.call(req).await?.map_into_boxed_body().into_parts();
    let rendered = match (req.app_data::<Data<AppState>>(), req.extensions().get::<RequestId>()) {
        (Some(service), Some(id)) => as_problem(service, &id.0, response),
        _ => response,
    };
    Ok(ServiceResponse::new(req, rendered))
}

/// A method as the log and the metrics name it. Others are text of the caller's: a secret perhaps, and a series of
/// numbers for each would let anybody fill the memory.
fn known(method: &Method) -> &'static str {
    let all = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    all.into_iter().find(|known| method == known).unwrap_or("other")
}

/// Adds what every answer carries.
fn complete(mut line: Line, response: HttpResponse) -> HttpResponse {
    let mut response = as_problem(&line.service, &line.id, response);
    let headers = response.headers_mut();
    let mut set = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    };
    set(REQUEST_ID, &line.id);
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::REFERRER_POLICY, "no-referrer");
    for (name, value) in line.service.about().headers {
        set(HeaderName::from_static(name), value);
    }
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    }
    // Files of a front end are the same for everybody.
    if line.route != FILE
        && let Ok(vary) = HeaderValue::from_str(line.service.vary())
    {
        headers.append(header::VARY, vary);
    }
    tell_codings_apart(headers);
    if !headers.contains_key(header::CONTENT_SECURITY_POLICY) {
        let page = headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
        let policy = if page { PAGE_POLICY } else { DATA_POLICY };
        headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    }
    line.status = response.status().as_u16();
    response.map_body(|_, body| BoxBody::new(Counted { body, line }))
}

/// A compressed answer is another representation, which has a tag of its own (RFC 9110, section 8.8.3.3).
fn tell_codings_apart(headers: &mut HeaderMap) {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let (Some(tag), Some(coding)) = (text(header::ETAG), text(header::CONTENT_ENCODING)) else { return };
    if let Some(Ok(tag)) = etag::in_coding(tag, coding).map(HeaderValue::try_from) {
        headers.insert(header::ETAG, tag);
    }
}

/// For answers that are data: a browser that shows one as a page runs nothing of it.
const DATA_POLICY: &str = "default-src 'none'; frame-ancestors 'none'";
/// For our own pages: nothing from elsewhere.
const PAGE_POLICY: &str = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
    form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// Logs a 5xx once with its cause, for who answers it with a page of their own. The frame does so for all others.
pub fn log_fault(req: &HttpRequest, problem: &Problem) {
    if let Some(id) = req.extensions().get::<RequestId>() {
        log(&id.0, problem);
    }
}

fn log(id: &str, problem: &Problem) {
    if problem.status() >= 500 {
        let cause = problem.cause().unwrap_or("unknown");
        log::error!(target: "problem", request_id = id, code = problem.code().name; "{cause}");
    }
}

/// Renders the problem behind a response, or the one that its status stands for when it has no body of its own.
fn as_problem(service: &AppState, id: &str, response: HttpResponse) -> HttpResponse {
    let status = response.status();
    let failure = response.error().and_then(|error| error.as_error::<Failure>());
    // The encoder's own refusal is the one answer that has a text of another kind.
    let has_body = response.error().is_none()
        && status != StatusCode::NOT_ACCEPTABLE
        && !matches!(response.body().size(), BodySize::None | BodySize::Sized(0));
    if !(status.is_client_error() || status.is_server_error()) || (failure.is_none() && has_body) {
        return response;
    }
    let generic = of_status(status);
    let problem = failure.map_or(&generic, |failure| &failure.0);
    log(id, problem);
    let mut rendered = HttpResponse::build(StatusCode::from_u16(problem.status()).unwrap_or(status));
    for (name, value) in response.headers() {
        if !matches!(*name, header::CONTENT_TYPE | header::CONTENT_LENGTH | header::CONTENT_ENCODING) {
            rendered.append_header((name, value));
        }
    }
    rendered.insert_header((header::CACHE_CONTROL, "no-store"));
    if matches!(problem.status(), 429 | 503) {
        rendered.insert_header((header::RETRY_AFTER, "1"));
    }
    for (name, value) in problem.headers() {
        rendered.insert_header((*name, value.as_str()));
    }
    if problem.status() == 401 {
        for (name, value) in service.about().unauthorized_headers {
            rendered.insert_header((*name, *value));
        }
    }
    let body = problem.body(id, service.about().legacy).to_string();
    rendered.content_type(PROBLEM).body(body)
}

/// The problem of an answer that actix made without us.
fn of_status(status: StatusCode) -> Problem {
    let code = match status.as_u16() {
        404 => code::NOT_FOUND,
        405 => code::METHOD_NOT_ALLOWED,
        408 => code::REQUEST_TIMEOUT,
        413 => code::TOO_LARGE,
        415 => code::UNSUPPORTED_MEDIA_TYPE,
        503 => code::UNAVAILABLE,
        500.. => code::INTERNAL,
        _ => code::BAD_REQUEST,
    };
    Problem::new(code)
}

/// The caller's id when it is short and plain, so that it can stand in a log line; else a new one.
fn request_id(headers: &HeaderMap) -> String {
    headers
        .get(REQUEST_ID)
        .and_then(|id| id.to_str().ok())
        .filter(|id| (1..=128).contains(&id.len()))
        .filter(|id| id.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.')))
        .map_or_else(|| Uuid::now_v7().to_string(), str::to_owned)
}

/// In place of a status: the client was gone before there was an answer, or the service ended. Many proxies have it as
/// well.
const NO_ANSWER: u16 = 499;

/// What the log says of a request, written when it goes: however a request ends, even by being dropped.
struct Line {
    method: &'static str,
    route: String,
    status: u16,
    is_broken: bool,
    bytes: u64,
    id: String,
    caller: Option<Uuid>,
    begun: Instant,
    _in_flight: InFlight,
    service: Data<AppState>,
}

impl Line {
    /// The answer ends here, though its head has said that all is well: that is a fault of ours.
    fn break_off(&mut self, error: &(dyn StdError + 'static)) {
        self.is_broken = true;
        self.status = 500;
        let mut all = successors(Some(error), |&error| error.source());
        let problem = all.find_map(|error| error.downcast_ref::<Problem>());
        let cause = problem.and_then(Problem::cause).map_or_else(|| error.to_string(), str::to_owned);
        log(&self.id, &Problem::internal(format!("the answer was broken off while it was sent: {cause}")));
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let took: Duration = self.begun.elapsed();
        self.service.metrics().count(self.method, &self.route, self.status, took.as_secs_f64());
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let caller = self.caller.map_or_else(|| "-".to_owned(), |caller| caller.to_string());
        log::info!(
            target: "access",
            method = self.method,
            route = self.route.as_str(),
            status = self.status,
            duration_us = micros,
            bytes = self.bytes,
            request_id = self.id.as_str(),
            caller = caller.as_str();
            "{}", if self.is_broken { "request, answer broken off" } else { "request" }
        );
    }
}

/// A body with its line, which is written when the body has been sent, or given up.
struct Counted {
    body: BoxBody,
    line: Line,
}

impl MessageBody for Counted {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        // Whatever would be made for it would be thrown away, as fast as it can be made.
        if self.line.method == "HEAD" {
            return Poll::Ready(None);
        }
        let next = Pin::new(&mut self.body).poll_next(cx);
        match &next {
            Poll::Ready(Some(Ok(chunk))) => self.line.bytes += chunk.len() as u64,
            Poll::Ready(Some(Err(error))) => self.line.break_off(&**error),
            _ => {}
        }
        next
    }
}

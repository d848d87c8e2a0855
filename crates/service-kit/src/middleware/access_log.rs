//! One log record and one count in the metrics for each request. The record of an error has the code of its problem,
//! and that of a failure the cause.

use std::{
    error::Error as StdError,
    iter::successors,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
    time::Instant,
};

use actix_web::{
    Error,
    body::{BodySize, BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::Method,
    middleware::Next,
    web::{Bytes, Data},
};
use common::problem::{Problem, code};
use log::{Level, Record, kv::Value};
use uuid::Uuid;

use super::{app_state, map_response};
use crate::{http::notes::RequestNotes, metrics::InFlight, state::AppState};

/// The problem of an error, for the log. It is in the extensions of the response.
#[derive(Clone)]
pub struct LoggedProblem {
    code: &'static str,
    /// Of a 5xx.
    cause: Option<String>,
}

impl LoggedProblem {
    pub(super) fn new(problem: &Problem) -> Self {
        let cause = (problem.status() >= 500).then(|| problem.cause().unwrap_or("unknown").trim_end().to_owned());
        Self { code: problem.code().name, cause }
    }
}

/// Logged instead of a route for a file or page of a front end.
const FRONT_END: &str = "static";

/// Logged instead of a status when the client left, or the service stopped, before there was an answer. nginx logs the
/// same number.
const NO_ANSWER: u16 = 499;

/// Writes the record when the answer has been sent or given up.
pub async fn access_log<B: MessageBody + 'static>(
    req: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let state = app_state(&req)?;
    let mut entry = AccessLogEntry {
        method: method_name(req.method()),
        // Read now, because a request that times out or panics is dropped.
        route: route(&req, &state),
        status: NO_ANSWER,
        is_truncated: false,
        bytes: 0,
        request_id: RequestNotes::read(req.request(), |notes| notes.request_id.clone()),
        user: None,
        problem: None,
        start: Instant::now(),
        _in_flight: state.metrics.begin(),
        state,
    };
    let result = next.call(req).await;
    if let Ok(response) = &result {
        entry.user = RequestNotes::read(response.request(), |notes| notes.user);
    }
    map_response(result, |response| {
        entry.status = response.status().as_u16();
        entry.problem = response.extensions().get::<LoggedProblem>().cloned();
        response.map_body(|_, body| BoxBody::new(LoggedBody { body, entry }))
    })
}

/// The template of the path, [`FRONT_END`], or `-`. actix-web names the template that was registered first, such as
/// `/users/{userId}` for `/users/sync`, so a path without parameters stands for itself.
fn route(req: &ServiceRequest, state: &AppState) -> String {
    if state.paths.is_literal(req.path()) {
        return req.path().to_owned();
    }
    req.match_pattern().unwrap_or_else(|| {
        let is_file = state.front_end_for(req.request()).is_some();
        if is_file { FRONT_END.to_owned() } else { "-".to_owned() }
    })
}

/// The method as a label. Unknown methods are the caller's text: they may hold a secret, and one series of metrics for
/// each would let anybody fill the memory.
fn method_name(method: &Method) -> &'static str {
    let all = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    all.into_iter().find(|name| method == name).unwrap_or("other")
}

/// The log record of a request. It is written on drop, so there is one however the request ends.
struct AccessLogEntry {
    method: &'static str,
    route: String,
    status: u16,
    is_truncated: bool,
    bytes: u64,
    request_id: Rc<str>,
    user: Option<Uuid>,
    problem: Option<LoggedProblem>,
    start: Instant,
    _in_flight: InFlight,
    state: Data<AppState>,
}

impl AccessLogEntry {
    /// Notes that the body failed after its headers were sent. The status becomes 500.
    fn body_failed(&mut self, error: &(dyn StdError + 'static)) {
        self.is_truncated = true;
        self.status = 500;
        let mut chain = successors(Some(error), |&error| error.source());
        let problem = chain.find_map(|error| error.downcast_ref::<Problem>());
        let cause = problem.and_then(Problem::cause).map_or_else(|| error.to_string(), str::to_owned);
        self.problem = Some(LoggedProblem { code: code::INTERNAL.name, cause: Some(cause) });
    }

    /// A failure is an error of the program, or a warning when something else is unavailable. One that is part of an
    /// outage of the database is neither: the outage has records of its own.
    fn level(&self) -> Level {
        match self.status {
            ..500 => Level::Info,
            503 if self.state.database.is_out_of_reach() => Level::Info,
            503 => Level::Warn,
            _ => Level::Error,
        }
    }
}

impl Drop for AccessLogEntry {
    fn drop(&mut self) {
        let duration = self.start.elapsed();
        self.state.metrics.count(self.method, &self.route, self.status, duration.as_secs_f64());
        if !log::log_enabled!(target: "access", self.level()) {
            return;
        }
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let user = self.user.map_or_else(|| "-".to_owned(), |user| user.to_string());
        let mut fields = vec![
            ("method", Value::from(self.method)),
            ("route", Value::from(&*self.route)),
            ("status", Value::from(self.status)),
            ("duration_us", Value::from(micros)),
            ("bytes", Value::from(self.bytes)),
            ("request_id", Value::from(&*self.request_id)),
            ("caller", Value::from(&*user)),
        ];
        if let Some(problem) = &self.problem {
            fields.push(("code", Value::from(problem.code)));
            fields.extend(problem.cause.as_deref().map(|cause| ("cause", Value::from(cause))));
        }
        let message = if self.is_truncated { "request, answer truncated" } else { "request" };
        let mut record = Record::builder();
        let record = record.target("access").level(self.level()).key_values(&fields);
        log::logger().log(&record.args(format_args!("{message}")).build());
    }
}

/// A body that counts its bytes and owns its log entry.
struct LoggedBody {
    body: BoxBody,
    entry: AccessLogEntry,
}

impl MessageBody for LoggedBody {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        // The server discards the body of an answer to HEAD, so a streamed one is not produced.
        if self.entry.method == "HEAD" {
            return Poll::Ready(None);
        }
        let next = Pin::new(&mut self.body).poll_next(cx);
        match &next {
            Poll::Ready(Some(Ok(chunk))) => self.entry.bytes += chunk.len() as u64,
            Poll::Ready(Some(Err(error))) => self.entry.body_failed(&**error),
            _ => {}
        }
        next
    }
}

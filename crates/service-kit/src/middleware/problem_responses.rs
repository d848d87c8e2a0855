//! Problem bodies (RFC 9457) for every answer that is an error.

use actix_cors::CorsError;
use actix_web::{
    Error, HttpResponse,
    body::{BodySize, BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::{StatusCode, header},
    middleware::Next,
};
use common::problem::{Problem, code};

use super::{access_log::LoggedProblem, app_state, map_response};
use crate::{
    error::Failure,
    http::{PROBLEM_MEDIA_TYPE, notes::RequestNotes},
    page::problem_page,
    state::{AppState, ProblemPage},
};

/// Renders the problem behind an error response, and notes it for the log. An answer that has a body
/// already stays as it is, so that the middleware can be applied inside and outside of compression.
pub async fn problem_responses<B: MessageBody + 'static>(
    req: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let state = app_state(&req)?;
    let id = RequestNotes::read(req.request(), |notes| notes.request_id.clone());
    // Looked up now, because a request that times out or panics is dropped.
    let page = (state.info.problem_page)(req.request()).or_else(|| problem_page(req.request()));
    map_response(next.call(req).await, |response| render(&state, &id, page, response))
}

fn render(state: &AppState, id: &str, page: Option<ProblemPage>, response: HttpResponse) -> HttpResponse {
    let status = response.status();
    let failure = response.error().and_then(|error| error.as_error::<Failure>());
    let has_body = response.error().is_none() && !matches!(response.body().size(), BodySize::None | BodySize::Sized(0));
    if !(status.is_client_error() || status.is_server_error()) || (failure.is_none() && has_body) {
        return response;
    }
    // A refused preflight request.
    let generic = match response.error().and_then(|error| error.as_error::<CorsError>()) {
        Some(CorsError::OriginNotAllowed) => {
            Problem::new(code::CROSS_SITE).detail("the header Origin names none of --allowed-origins")
        }
        Some(error) => Problem::new(code::BAD_REQUEST).detail(error.to_string()),
        None => of_status(status),
    };
    let problem = failure.map_or(&generic, |failure| &failure.0);
    let mut rendered = HttpResponse::build(StatusCode::from_u16(problem.status()).unwrap_or(status));
    rendered.extensions_mut().insert(LoggedProblem::new(problem));
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
        for (name, value) in state.info.unauthorized_headers {
            rendered.insert_header((*name, *value));
        }
    }
    if let Some(page) = page {
        let page = page(problem);
        for (name, value) in page.headers() {
            rendered.insert_header((name.clone(), value.as_str()));
        }
        return rendered.body(page.body().to_vec());
    }
    let body = problem.body(id, state.info.legacy).to_string();
    rendered.content_type(PROBLEM_MEDIA_TYPE).body(body)
}

/// The problem of an error response that actix made by itself.
fn of_status(status: StatusCode) -> Problem {
    let code = match status.as_u16() {
        404 => code::NOT_FOUND,
        405 => code::METHOD_NOT_ALLOWED,
        408 => code::REQUEST_TIMEOUT,
        413 => code::TOO_LARGE,
        415 => code::UNSUPPORTED_MEDIA_TYPE,
        421 => code::MISDIRECTED,
        503 => code::UNAVAILABLE,
        500.. => code::INTERNAL,
        _ => code::BAD_REQUEST,
    };
    Problem::new(code)
}

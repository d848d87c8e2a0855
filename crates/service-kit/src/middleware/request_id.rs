//! The id of a request, in its log records and in its answer.

use std::rc::Rc;

use actix_web::{
    Error,
    body::{BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::header::{HeaderMap, HeaderName, HeaderValue},
    middleware::Next,
};
use uuid::Uuid;

use super::map_response;
use crate::http::notes::RequestNotes;

/// The header that carries the request id in both directions.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Gives each request an id and each answer the header.
pub async fn request_id<B: MessageBody + 'static>(
    req: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let id: Rc<str> = accepted(req.headers()).unwrap_or_else(|| Uuid::now_v7().to_string()).into();
    RequestNotes::change(req.request(), |notes| notes.request_id = id.clone());
    map_response(next.call(req).await, |mut response| {
        if let Ok(value) = HeaderValue::from_str(&id) {
            response.headers_mut().insert(REQUEST_ID, value);
        }
        response
    })
}

/// The client's id if it has 1 to 128 letters, digits, `-`, `_` and `.`, so that it is safe in a log line.
fn accepted(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(REQUEST_ID)?.to_str().ok()?;
    let is_plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.');
    ((1..=128).contains(&id.len()) && id.bytes().all(is_plain)).then(|| id.to_owned())
}

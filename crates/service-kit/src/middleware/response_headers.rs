//! Headers of every answer: browser protections, caching, and those of the service.

use actix_web::{
    Error,
    body::{BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::{
        StatusCode,
        header::{self, HeaderName, HeaderValue},
    },
    middleware::Next,
};

use super::{app_state, map_response};
use crate::http::static_files::MayBeSniffed;

/// The policy for data: a browser that shows it as a page runs nothing.
const DATA_POLICY: &str = "default-src 'none'; frame-ancestors 'none'";
/// The policy for the service's own pages: everything from the service itself.
const PAGE_POLICY: &str = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
    form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// Adds the headers. `Cache-Control` and `Content-Security-Policy` of the inner service stay.
pub async fn response_headers<B: MessageBody + 'static>(
    req: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let state = app_state(&req)?;
    let is_file = state.is_front_end_file(req.request());
    map_response(next.call(req).await, |mut response| {
        let may_be_sniffed = response.extensions().contains::<MayBeSniffed>();
        let is_not_modified = response.status() == StatusCode::NOT_MODIFIED;
        let headers = response.headers_mut();
        if !may_be_sniffed {
            headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        }
        headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        if !headers.contains_key(header::CACHE_CONTROL) {
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
        }
        // A browser gives the page that it has the headers of a 304 (RFC 9111, section 3.2).
        if !is_not_modified && !headers.contains_key(header::CONTENT_SECURITY_POLICY) {
            let is_page =
                headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
            let policy = if is_page { PAGE_POLICY } else { DATA_POLICY };
            headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
        }
        for (name, value) in state.info.headers {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        // Files of a front end are the same for everybody.
        if !is_file && let Ok(vary) = HeaderValue::from_str(&state.answer_options.vary) {
            headers.append(header::VARY, vary);
        }
        response
    })
}

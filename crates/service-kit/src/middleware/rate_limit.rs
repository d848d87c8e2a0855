//! Charges each request to its user or to its client's address.

use actix_web::{
    Error, HttpMessage, HttpResponse,
    body::{BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::StatusCode,
    middleware::Next,
};

use super::app_state;
use crate::{
    error::Failure,
    http::{
        client_ip::ClientIp,
        rate_limit::{RateLimitCharged, RateLimitKey},
    },
};

/// Paths that load balancers and monitors may always ask.
const EXEMPT: [&str; 3] = ["/livez", "/readyz", "/metrics"];

/// A request without a credential is charged to its client's address before it is handled. A request with a credential
/// is charged to its user by the guard, or to the address afterwards if the credential was not good; after too many bad
/// credentials of an address, its credentials are not looked up for the rest of the minute. A failure of the
/// service is not charged, and neither are files of a front end, as one page loads dozens of them.
pub async fn rate_limit<B: MessageBody + 'static>(
    req: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let state = app_state(&req)?;
    if state.is_front_end_file(req.request()) || EXEMPT.contains(&req.path()) {
        return Ok(next.call(req).await?.map_into_boxed_body());
    }
    let key = RateLimitKey::from(ClientIp::extract(req.request()));
    if !(state.info.has_credential)(req.request()) {
        if let Err(problem) = state.rate_limit.charge(key) {
            return Ok(req.error_response(Failure(problem)));
        }
        return Ok(next.call(req).await?.map_into_boxed_body());
    }
    if let Err(problem) = state.bad_credentials.check(key) {
        return Ok(req.error_response(Failure(problem)));
    }
    let (req, response) = next.call(req).await?.map_into_boxed_body().into_parts();
    if response.status() == StatusCode::UNAUTHORIZED {
        state.bad_credentials.record(key);
    }
    let is_free = response.status().is_server_error() || req.extensions().contains::<RateLimitCharged>();
    let charge = if is_free { Ok(()) } else { state.rate_limit.charge(key) };
    let response = charge.map_or_else(|problem| HttpResponse::from_error(Failure(problem)), |()| response);
    Ok(ServiceResponse::new(req, response))
}

//! Charges each request to its user or to its client's address.

use actix_web::{
    Error, HttpResponse,
    body::{BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::StatusCode,
    middleware::Next,
};

use super::app_state;
use crate::{
    error::Failure,
    http::{client_ip::ClientIp, notes::RequestNotes, rate_limit::RateLimitKey},
};

/// Paths that load balancers and monitors may always ask.
const EXEMPT: [&str; 3] = ["/livez", "/readyz", "/metrics"];

/// A request without a credential is charged to its client's address before it is handled. A request with a credential
/// is charged to its user by the guard. If the credential was not good, it is charged afterwards to the refused requests
/// of the address, or to the address if no credential was needed. A failure of the service is not charged, and neither
/// are files of a front end, as one page loads dozens of them.
pub async fn rate_limit<B: MessageBody + 'static>(
    req: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let state = app_state(&req)?;
    if state.is_front_end_file(req.request()) || EXEMPT.contains(&req.path()) {
        return Ok(next.call(req).await?.map_into_boxed_body());
    }
    let address = ClientIp::extract(req.request());
    if !(state.info.has_credential)(req.request()) {
        if let Err(problem) = state.rate_limit.charge(address.into()) {
            return Ok(req.error_response(Failure(problem)));
        }
        return Ok(next.call(req).await?.map_into_boxed_body());
    }
    let (req, response) = next.call(req).await?.map_into_boxed_body().into_parts();
    let is_refused = response.status() == StatusCode::UNAUTHORIZED;
    let key = if is_refused { RateLimitKey::refused(address) } else { address.into() };
    let is_free = response.status().is_server_error() || RequestNotes::read(&req, |notes| notes.is_charged);
    let charge = if is_free { Ok(()) } else { state.rate_limit.charge(key) };
    let response = charge.map_or_else(|problem| HttpResponse::from_error(Failure(problem)), |()| response);
    Ok(ServiceResponse::new(req, response))
}

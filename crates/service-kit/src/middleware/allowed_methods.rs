//! 405 for a literal path that does not have the method of a request.

use actix_web::{
    Error, HttpResponse,
    body::{BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::{Method, header},
    middleware::Next,
};

use super::app_state;

/// Without this, a template such as `/users/{userId}` would match `/users/me` and say that `me` is no identifier.
/// `OPTIONS` passes, as it may be a CORS preflight.
pub async fn allowed_methods<B: MessageBody + 'static>(
    req: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let state = app_state(&req)?;
    if req.method() != Method::OPTIONS
        && state.paths.refuses(req.path(), req.method())
        && let Some(allow) = state.paths.allow(req.path())
    {
        return Ok(req.into_response(HttpResponse::MethodNotAllowed().insert_header((header::ALLOW, allow)).finish()));
    }
    Ok(next.call(req).await?.map_into_boxed_body())
}

//! 405 for a literal path that does not have the method of a request.

use actix_web::{
    Error, HttpResponse,
    body::{BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::{Method, header},
    middleware::Next,
    web::Data,
};

use crate::state::AppState;

/// Without this, a template such as `/users/{userId}` would match `/users/me` and say that `me` is no identifier.
/// `OPTIONS` passes, as it may be a CORS preflight.
pub async fn allowed_methods<B: MessageBody + 'static>(
    req: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let allow = req.app_data::<Data<AppState>>().and_then(|state| {
        let is_refused = req.method() != Method::OPTIONS && state.paths().refuses(req.path(), req.method());
        if is_refused { state.paths().allow(req.path()) } else { None }
    });
    match allow {
        Some(allow) => {
            Ok(req.into_response(HttpResponse::MethodNotAllowed().insert_header((header::ALLOW, allow)).finish()))
        }
        None => Ok(next.call(req).await?.map_into_boxed_body()),
    }
}

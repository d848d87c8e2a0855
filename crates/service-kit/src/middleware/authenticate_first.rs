//! 401 and 403 before 400 (contract, "Fairness").

use actix_web::{
    HttpMessage, HttpResponse,
    body::{BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::StatusCode,
    middleware::Next,
};

use crate::{error::Failure, http::admission::Admission};

/// Admits a request that was refused as malformed before its operation ran. If the caller may not do this anyway, that
/// is answered instead, so that a client whose session has ended learns that first.
pub async fn authenticate_first<B: MessageBody + 'static>(
    req: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, actix_web::Error> {
    let response = next.call(req).await?.map_into_boxed_body();
    let is_malformed = matches!(
        response.status(),
        StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE | StatusCode::UNSUPPORTED_MEDIA_TYPE
    );
    if !is_malformed || !response.request().extensions().contains::<Admission>() {
        return Ok(response);
    }
    Ok(match Admission::wait(response.request()).await {
        Ok(_) => response,
        Err(problem) => response.into_response(HttpResponse::from_error(Failure(problem))),
    })
}

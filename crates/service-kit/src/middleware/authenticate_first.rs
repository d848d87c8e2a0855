//! 401 before 400 (contract, "Order of refusals").

use actix_web::{
    Error, HttpMessage, HttpResponse,
    body::{BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::StatusCode,
    middleware::Next,
};

use crate::{error::Failure, guard::Unauthenticated};

/// Looks up the credential of a request that was refused as malformed before its operation ran. A bad credential is
/// answered instead, so that a client whose session has ended learns that first.
pub async fn authenticate_first<B: MessageBody + 'static>(
    req: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let answered = next.call(req).await?.map_into_boxed_body();
    let is_malformed = matches!(
        answered.status(),
        StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE | StatusCode::UNSUPPORTED_MEDIA_TYPE
    );
    let unauthenticated = answered.request().extensions_mut().remove::<Unauthenticated>().filter(|_| is_malformed);
    let Some(unauthenticated) = unauthenticated else { return Ok(answered) };
    Ok(match unauthenticated.0.await {
        Ok(()) => answered,
        Err(error) => answered.into_response(HttpResponse::from_error(Failure::from(error))),
    })
}

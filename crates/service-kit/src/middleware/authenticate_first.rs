//! 401 before 400 (contract, "Order of refusals").

use actix_web::{
    HttpMessage, HttpRequest, HttpResponse,
    body::{BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::StatusCode,
    middleware::Next,
};
use futures_util::future::LocalBoxFuture;

use crate::error::{Error, Failure};

/// Looks up the credential of a request. In the extensions of the request until its operation runs, which looks the
/// credential up itself.
pub(crate) struct PendingAuthentication(pub fn(HttpRequest) -> LocalBoxFuture<'static, Result<(), Error>>);

/// Looks up the credential of a request that was refused as malformed before its operation ran. A bad credential is
/// answered instead, so that a client whose session has ended learns that first.
pub async fn authenticate_first<B: MessageBody + 'static>(
    req: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, actix_web::Error> {
    let response = next.call(req).await?.map_into_boxed_body();
    let is_malformed = matches!(
        response.status(),
        StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE | StatusCode::UNSUPPORTED_MEDIA_TYPE
    );
    let pending = response.request().extensions_mut().remove::<PendingAuthentication>().filter(|_| is_malformed);
    let Some(pending) = pending else { return Ok(response) };
    Ok(match (pending.0)(response.request().clone()).await {
        Ok(()) => response,
        Err(error) => response.into_response(HttpResponse::from_error(Failure::from(error))),
    })
}

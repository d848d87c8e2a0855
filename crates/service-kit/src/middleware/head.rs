//! `HEAD` for every path that has `GET`.

use actix_web::{
    Error,
    body::MessageBody,
    dev::{ServiceRequest, ServiceResponse},
    http::Method,
    middleware::Next,
};

/// Handles `HEAD` as `GET`. The server leaves the body out, as the client's request was `HEAD`.
pub async fn head_as_get<B: MessageBody>(mut req: ServiceRequest, next: Next<B>) -> Result<ServiceResponse<B>, Error> {
    if req.method() == Method::HEAD {
        req.head_mut().method = Method::GET;
    }
    next.call(req).await
}

//! Ends requests that take too long or panic, with an answer.

use std::panic::AssertUnwindSafe;

use actix_web::{
    Error,
    body::{BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    middleware::Next,
};
use common::problem::{Problem, code};
use futures_util::FutureExt;

use super::app_state;
use crate::error::Failure;

/// Answers 503 after the service's request time-out and 500 after a panic. Both drop the request, so the answer is an
/// `Err`.
pub async fn time_limit<B: MessageBody + 'static>(
    req: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let limit = app_state(&req)?.request_timeout;
    match AssertUnwindSafe(tokio::time::timeout(limit, next.call(req))).catch_unwind().await {
        Ok(Ok(response)) => Ok(response?.map_into_boxed_body()),
        Ok(Err(_)) => Err(Failure(Problem::new(code::UNAVAILABLE).because("the request timed out")).into()),
        Err(_) => Err(Failure(Problem::internal("the handler panicked")).into()),
    }
}

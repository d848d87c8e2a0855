//! Everything around a handler, one file for each concern. [`server`](crate::server) puts them in order.

pub mod access_log;
pub mod allowed_methods;
pub mod authenticate_first;
pub mod compression;
pub mod head;
pub mod loopback_host;
pub mod parameter_names;
pub mod problem_responses;
pub mod rate_limit;
pub mod request_id;
pub mod response_headers;
pub mod time_limit;

use actix_web::{
    Error, HttpResponse,
    body::{BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    error::InternalError,
    web::Data,
};

use crate::{error::Failure, state::AppState};

/// The state of the service that a request is for.
fn app_state(req: &ServiceRequest) -> Result<Data<AppState>, Failure> {
    Ok(AppState::from_request(req.request())?)
}

/// Changes a response. After a time-out or a panic, the response is in an error without its request, and is changed as
/// well.
fn map_response<B: MessageBody + 'static>(
    result: Result<ServiceResponse<B>, Error>,
    change: impl FnOnce(HttpResponse) -> HttpResponse,
) -> Result<ServiceResponse<BoxBody>, Error> {
    match result {
        Ok(response) => {
            let (req, response) = response.map_into_boxed_body().into_parts();
            Ok(ServiceResponse::new(req, change(response)))
        }
        Err(error) => Err(InternalError::from_response("", change(HttpResponse::from_error(error))).into()),
    }
}

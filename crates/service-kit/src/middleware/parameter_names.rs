//! Query parameters in any case of letters.

use actix_web::{
    Error,
    body::MessageBody,
    dev::{ServiceRequest, ServiceResponse},
    error::HttpError,
    http::Uri,
    middleware::Next,
};

use common::problem::Problem;

use super::app_state;
use crate::error::Failure;

/// Corrects the case of the names in the query. A parameter in the wrong case would be ignored as an unknown one, and
/// `dryrun=true` would write.
pub async fn parameter_names<B: MessageBody>(
    mut req: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<B>, Error> {
    if let Some(query) = app_state(&req)?.interface.parameter_names.corrected(req.query_string()) {
        let uri = with_query(req.uri(), &query).map_err(|error| Failure(Problem::internal(error)))?;
        req.head_mut().uri = uri;
    }
    next.call(req).await
}

fn with_query(uri: &Uri, query: &str) -> Result<Uri, HttpError> {
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(format!("{}?{query}", uri.path()).parse()?);
    Ok(Uri::from_parts(parts)?)
}

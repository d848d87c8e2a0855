//! Which build of the service answers.

use actix_web::get;
use serde::Serialize;
use service_kit::{error::Failure, http::Reply};
use utoipa::ToSchema;
use utoipa_actix_web::service_config::ServiceConfig;

/// Version of the package.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The source it was built from: the environment variable `REVISION` of the build.
const REVISION: &str = match option_env!("REVISION") {
    Some(revision) => revision,
    None => "unknown",
};

/// Registers the operation.
pub fn routes(config: &mut ServiceConfig<'_>) {
    config.service(version);
}

/// A build of the service.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"version": "0.1.0", "revision": "4b825dc642cb"}))]
struct Version {
    version: &'static str,
    /// The commit, or `unknown`.
    revision: &'static str,
}

/// The version of the service
#[utoipa::path(
    tag = "version",
    operation_id = "getVersion",
    security(()),
    responses((status = 200, description = "Version and revision", body = Version))
)]
#[get("/version")]
async fn version() -> Result<Reply, Failure> {
    Ok(Reply::json(&Version { version: VERSION, revision: REVISION })?)
}

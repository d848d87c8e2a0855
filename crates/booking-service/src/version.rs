//! The version of the service.

use actix_web::{HttpRequest, get};
use serde::Serialize;
use service_kit::{error::Failure, guard::conditional::Conditions, http::Reply};
use utoipa::ToSchema;
use utoipa_actix_web::service_config::ServiceConfig;

/// Registers the operation.
pub fn routes(config: &mut ServiceConfig<'_>) {
    config.service(version);
}

/// Version and revision of the service.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = version, example = json!({"version": "1.0.0", "revision": "5f3c2a1"}))]
struct Version {
    /// The version of the service, such as `1.0.0`.
    version: &'static str,
    /// The commit it was built from, or `unknown`.
    revision: &'static str,
}

/// Version and revision
#[utoipa::path(
    tag = "version",
    operation_id = "getVersion",
    security(()),
    responses((status = 200, description = "The build", body = Version))
)]
#[get("/version")]
async fn version(req: HttpRequest) -> Result<Reply, Failure> {
    // The build sets the variable; a checkout without git builds as well.
    let revision = option_env!("REVISION").unwrap_or("unknown");
    let reply = Reply::json(&Version { version: env!("CARGO_PKG_VERSION"), revision })?;
    Ok(Conditions::from_request(&req)?.tag(reply.public(), None))
}

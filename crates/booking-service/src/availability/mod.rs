//! The search for free times: when rooms are free, and how many of some people are free then.

mod handlers;
pub mod hours;
pub mod queries;
mod wire;

use utoipa_actix_web::service_config::ServiceConfig;

/// Registers the operation at `/availability`.
pub fn routes(config: &mut ServiceConfig<'_>) {
    config.service(handlers::find);
}

//! Finding a time: when rooms are free, and for how many of some people.

mod handlers;
pub mod queries;
pub mod stretches;
mod wire;

use utoipa_actix_web::service_config::ServiceConfig;

/// Registers the operation at `/availability`.
pub fn routes(config: &mut ServiceConfig<'_>) {
    config.service(handlers::find);
}

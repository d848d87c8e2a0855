//! Users: members of the club as the directory knows them, and who of them is privileged.
//!
//! A user is never deleted; one who left stays as the maker and attendee of past events, with their name.

mod handlers;
pub mod queries;
mod wire;

use utoipa_actix_web::service_config::ServiceConfig;

/// Registers the operations.
pub fn routes(config: &mut ServiceConfig<'_>) {
    config.service(handlers::list).service(handlers::me);
}

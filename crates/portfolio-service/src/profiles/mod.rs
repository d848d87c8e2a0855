//! The projects and results of one member: the page `/people/{name}` and the résumé; and the list of members. Both are the same for everybody,
//! and only active members have them.

mod handlers;
mod page;
pub mod queries;
mod resume;

use actix_web::web;
use utoipa_actix_web::service_config::ServiceConfig;

/// Registers the operation below `/users`.
pub fn routes_of_users(config: &mut ServiceConfig<'_>) {
    config.service(handlers::resume);
}

pub fn pages(config: &mut web::ServiceConfig) {
    config.route("/people", web::get().to(handlers::people)).route("/people/{name}", web::get().to(handlers::person));
}

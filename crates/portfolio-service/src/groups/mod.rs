//! Groups of the club's directory, with the history of their members. No operation edits them: the sync updates them
//! and records the semesters in which members join and leave.

mod handlers;
mod page;
pub mod queries;
mod wire;

use actix_web::web;
use utoipa_actix_web::service_config::ServiceConfig;

/// Registers the operations below `/groups`.
pub fn routes(config: &mut ServiceConfig<'_>) {
    config.service(handlers::list).service(handlers::get);
}

/// Registers the operations below `/users`.
pub fn routes_of_users(config: &mut ServiceConfig<'_>) {
    config.service(handlers::of_user);
}

pub fn pages(config: &mut web::ServiceConfig) {
    config.route("/groups", web::get().to(page::list)).route("/groups/{groupId}", web::get().to(page::show));
}

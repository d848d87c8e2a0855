//! Contests that members took part in, with their [teams](crate::teams). A deleted contest deletes its teams.

mod handlers;
mod page;
pub mod queries;
pub(crate) mod restoration;
mod wire;

pub use self::{
    handlers::{fields, recorded, show_created, target},
    wire::{CreateContestRequest, EditContestRequest},
};

use actix_web::web;
use utoipa_actix_web::service_config::ServiceConfig;

/// Registers the operations below `/contests`.
pub fn routes(config: &mut ServiceConfig<'_>) {
    config
        .service(handlers::list)
        .service(handlers::create)
        .service(handlers::get)
        .service(handlers::update)
        .service(handlers::delete)
        .service(handlers::restore);
}

/// Registers the operations below `/users`.
pub fn routes_of_users(config: &mut ServiceConfig<'_>) {
    config.service(handlers::of_user);
}

pub fn pages(config: &mut web::ServiceConfig) {
    config.route("/contests", web::get().to(page::list)).route("/contests/{contestId}", web::get().to(page::show));
}

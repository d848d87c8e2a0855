//! Projects: what members make together, over semesters.
//!
//! * A member's span is stored as sent. Answers have its part inside the project's span, or all of it if the two do not
//!   overlap (contract, "Member spans"). So the project's span and the list of members are not checked against each
//!   other, and concurrent changes of both are possible in any order.
//! * An edge that was sent equal to the project's own follows the project's.
//! * A change of a project or of its members locks the project's row.

mod handlers;
mod page;
pub mod queries;
pub(crate) mod restoration;
mod wire;

pub use self::{
    handlers::{fields, recorded, recorded_members, show_created, target},
    wire::{CreateProjectRequest, EditProjectRequest},
};

use actix_web::web;
use utoipa_actix_web::service_config::ServiceConfig;

/// Registers the operations below `/projects`.
pub fn routes(config: &mut ServiceConfig<'_>) {
    config
        .service(handlers::list)
        .service(handlers::create)
        .service(handlers::get)
        .service(handlers::update)
        .service(handlers::delete)
        .service(handlers::restore)
        .service(handlers::list_members)
        .service(handlers::put_members);
}

/// Registers the operations below `/users`.
pub fn routes_of_users(config: &mut ServiceConfig<'_>) {
    config.service(handlers::of_user);
}

pub fn pages(config: &mut web::ServiceConfig) {
    config.route("/projects", web::get().to(page::list)).route("/projects/{projectId}", web::get().to(page::show));
}

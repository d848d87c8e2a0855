//! Users: the members of the club, copied from the directory, and which of them are privileged.
//!
//! * Users are never deleted. A former member remains the creator and attendee of past events.
//! * The id identifies a user. Names are unique at any time, but a name may move from one user to another.
//! * [`sync`] copies users and their groups from the directory. Nothing else changes names and states.
//! * The last active privileged user cannot lose the privilege, except by becoming inactive in the directory.

mod handlers;
mod icon;
pub mod queries;
mod sign_in_name;
pub mod suspension;
pub mod sync;
mod synced_groups;
mod wire;

pub use self::{sign_in_name::NAMES, wire::ResponseUser};

use actix_web::web;
use utoipa_actix_web::service_config::ServiceConfig;

/// Registers the operations below `/users`.
pub fn routes(config: &mut ServiceConfig<'_>) {
    config
        .service(handlers::list)
        .service(handlers::me)
        .service(handlers::get)
        .service(handlers::synchronize)
        .service(handlers::set_privileged);
}

/// Registers the built-in icons.
pub fn pages(config: &mut web::ServiceConfig) {
    icon::routes(config);
}

//! Users: members of the club as the directory knows them, and who of them is privileged.
//!
//! * A user is never deleted; one who left stays as the maker and attendee of past events, with their name.
//! * The id is who they are; names are unique at any time, but may move from one user to another.
//! * [`sync`] copies users and their groups from the directory; nothing else changes names and states.
//! * Once there is a privileged user, there is one: the last one cannot give it up.

mod handlers;
mod icon;
pub mod queries;
pub mod sync;
mod wire;

pub use self::wire::ResponseUser;

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

/// Registers the built-in pictures.
pub fn pages(config: &mut web::ServiceConfig) {
    icon::routes(config);
}

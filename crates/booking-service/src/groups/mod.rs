//! Groups: each event is for one group. One list contains three kinds (contract, "Groups").
//!
//! * Groups made here: their admins and privileged users change them. Anybody can join and leave an open group.
//! * Directory groups: copies that only the sync changes ([`crate::users::sync`]).
//! * The everyone group: its members are all active users. They are read from `users` and not stored again.
//! * A deleted group keeps its members and admins, and only its past events show it.

pub(crate) mod changes;
mod handlers;
pub mod queries;
mod wire;

pub use self::{
    handlers::{parent, recorded, show_created, target},
    queries::EVERYONE,
    wire::{RequestGroup, ResponseGroup},
};

use utoipa_actix_web::service_config::ServiceConfig;

/// Registers the operations below `/groups`.
pub fn routes(config: &mut ServiceConfig<'_>) {
    config
        .service(handlers::list)
        .service(handlers::create)
        .service(handlers::get)
        .service(handlers::update)
        .service(handlers::delete)
        .service(handlers::restore)
        .service(handlers::join)
        .service(handlers::leave);
}

/// Registers the operations below `/users`.
pub fn routes_of_users(config: &mut ServiceConfig<'_>) {
    config.service(handlers::mine).service(handlers::of_user);
}

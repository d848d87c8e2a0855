//! Groups: whom an event is for. Three kinds in one list (contract, "Groups").
//!
//! * Groups made here: their admins and privileged users change them, and if open everybody joins and leaves.
//! * Directory groups: copies, which only the sync changes ([`crate::users::sync`]).
//! * The everyone group: its members are all active users, found when asked for and never stored.
//! * A deleted group stays for its past events, with its people. For everything else it is not there.

pub(crate) mod changes;
mod handlers;
pub mod queries;
mod wire;

pub use self::{queries::EVERYONE, wire::ResponseGroup};

use utoipa_actix_web::service_config::ServiceConfig;

/// Registers the operations below `/groups`.
pub fn routes(config: &mut ServiceConfig<'_>) {
    config
        .service(handlers::list)
        .service(handlers::create)
        .service(handlers::get)
        .service(handlers::update)
        .service(handlers::delete)
        .service(handlers::join)
        .service(handlers::leave);
}

/// Registers the operations below `/users`.
pub fn routes_of_users(config: &mut ServiceConfig<'_>) {
    config.service(handlers::mine).service(handlers::of_user);
}

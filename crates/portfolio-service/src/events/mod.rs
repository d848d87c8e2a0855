//! Events: a copy of the booking-service's events, and the level of each, which says who sees it.
//!
//! * A background task updates the copy ([`copy`]); reads never wait for it. Of several replicas, only the holder of a
//!   lease in the database updates the copy ([`service_kit::lease`]).
//! * The booking-service knows no levels. They are stored apart from the copy and are not deleted with it. An event
//!   without a level is anonymous.
//! * Only its hosts and admins see a private event. Only its hosts and admins see the hosts of an anonymous event, also
//!   in lists of the events of a user.

pub mod copy;
mod handlers;
pub mod queries;
mod reading;
mod store;
mod wire;

use utoipa_actix_web::service_config::ServiceConfig;

/// Registers the operations below `/events`.
pub fn routes(config: &mut ServiceConfig<'_>) {
    config.service(handlers::list).service(handlers::get).service(handlers::update);
}

/// Registers the operations below `/users`.
pub fn routes_of_users(config: &mut ServiceConfig<'_>) {
    config.service(handlers::of_user);
}

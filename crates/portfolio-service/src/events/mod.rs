//! Events: a copy of what the booking-service has, and how much of each is shown outside.
//!
//! * A background task copies ([`copy`]); reads never wait for it. With several replicas the holder of a lease in the
//!   database copies, the others look on ([`lease`]).
//! * The level of an event is this service's own: it is kept apart from the copy and outlives it. An event without one
//!   is anonymous.
//! * A private event is there for its hosts and admins only; the hosts of an anonymous one are shown to themselves and
//!   admins only, also by way of what a user hosted.

pub mod copy;
mod handlers;
pub mod lease;
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

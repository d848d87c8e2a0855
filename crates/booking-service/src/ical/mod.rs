//! The personal calendar feed: public by a secret in its address (contract, "The calendar feed").
//!
//! The secret is derived from the user, a random nonce in their row and the key of the installation. So it cannot be
//! computed from the database alone. A new nonce changes the address at once. A new key changes it as well; the old
//! address works as long as the old key is one of the former keys.
//!
//! An address imported from the system that this service replaces is stored as a hash. It works beside the present one
//! until its owner requests a new one.

pub mod feed;
mod handlers;
pub mod queries;
mod wire;

pub use self::handlers::{address, one_event, target};
use utoipa_actix_web::service_config::ServiceConfig;

/// Registers the feed.
pub fn routes(config: &mut ServiceConfig<'_>) {
    config.service(handlers::feed);
}

/// Registers the operations below `/users`.
pub fn routes_of_users(config: &mut ServiceConfig<'_>) {
    config.service(handlers::get_secret).service(handlers::replace_secret);
}

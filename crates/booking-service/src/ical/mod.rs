//! The personal calendar feed: public by a secret in its address (contract, "The calendar feed").
//!
//! The secret is derived from the user, a random nonce in their row and the key of the installation. So the database
//! alone does not tell it, and a new nonce makes a new address at once. A new key makes a new address as well; the old
//! one goes on while the old key is among the former ones.
//!
//! An address that was imported from the system that this service replaces is kept as a hash, and is good beside the
//! present one until its owner asks for a new one.

pub mod feed;
mod handlers;
pub mod queries;
mod wire;

use utoipa_actix_web::service_config::ServiceConfig;

/// Registers the feed.
pub fn routes(config: &mut ServiceConfig<'_>) {
    config.service(handlers::feed);
}

/// Registers the operations below `/users`.
pub fn routes_of_users(config: &mut ServiceConfig<'_>) {
    config.service(handlers::get_secret).service(handlers::replace_secret);
}

//! Webhooks: programs and channels that are told what has changed (contract, "Webhooks").
//!
//! * **The history is the outbox** ([`outbox`]): a row of it becomes a delivery for each webhook that wants it. What is
//!   sent at a time is due until a delivery says that it was sent ([`timed`]).
//! * One replica at a time sends ([`worker`]): at least once, and what is about one object in its order.
//! * What is sent is written at the first attempt ([`preparation`]): for programs ([`standard`]), or as a message for
//!   people ([`messages`], [`digest`]) in the markup of their chat ([`markup`]).
//! * Receivers are in the public internet, or in networks that the operator lists ([`networks`]).
//! * Addresses and secrets are encrypted in the database, and never shown again.

pub mod changes;
pub mod digest;
pub mod facts;
mod handlers;
pub mod happened;
pub mod kinds;
pub mod markup;
pub mod messages;
pub mod networks;
pub mod outbox;
pub mod preparation;
pub mod queries;
pub mod results;
mod sending;
pub mod standard;
pub mod timed;
mod wire;
mod worker;

use utoipa_actix_web::service_config::ServiceConfig;

pub use self::{
    handlers::{create_recorded, delete_recorded, recorded, target},
    wire::{RequestWebhook, RequestWebhookChange},
    worker::{Wake, start},
};

/// Registers the operations below `/webhooks`.
pub fn routes(config: &mut ServiceConfig<'_>) {
    config
        .service(handlers::list)
        .service(handlers::create)
        .service(handlers::get)
        .service(handlers::update)
        .service(handlers::delete)
        .service(handlers::test)
        .service(handlers::rotate)
        .service(handlers::deliveries)
        .service(handlers::retry);
}

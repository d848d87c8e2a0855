//! Events: declarations that a room is used during a span inside its period.
//!
//! An event that names a place owns the unverified room that is made for it. The room moves, changes and is deleted
//! with the event, as long as no other event uses it ([`changes`]). Deleted events are only marked as deleted, for the
//! activity list and the feeds.

pub(crate) mod attendance;
pub(crate) mod changes;
pub(crate) mod creation;
pub(crate) mod event_tags;
pub mod filter;
mod handlers;
pub mod latest;
mod params;
pub mod queries;
mod requests;
pub(crate) mod restoration;
pub mod search;
pub mod selection;
pub(crate) mod several;
mod target;
mod undo;
pub(crate) mod venue;
mod wire;

use utoipa_actix_web::service_config::ServiceConfig;

pub use self::{
    params::{ChangeQuery, parse_filter},
    requests::{RequestEvent, RequestEventTag, RequestEventTags, RequestSchedule},
    target::{fields, lock_name, parent, record_changes, record_created, record_new, recorded, show_created, target},
    undo::revert_to,
    wire::{ResponseEvent, ResponseEventDetail, ResponseEventTag},
};

/// Registers the operations below `/events`.
pub fn routes(config: &mut ServiceConfig<'_>) {
    config
        .service(handlers::list)
        .service(handlers::create)
        .service(handlers::get)
        .service(handlers::update)
        .service(handlers::delete)
        .service(handlers::answer)
        .service(handlers::add_tag)
        .service(handlers::remove_tag)
        .service(undo::restore)
        .service(undo::revert);
}

/// Registers the operations below `/rooms`.
pub fn routes_of_rooms(config: &mut ServiceConfig<'_>) {
    config.service(handlers::of_room);
}

/// Registers the operations below `/groups`.
pub fn routes_of_groups(config: &mut ServiceConfig<'_>) {
    config.service(handlers::of_group);
}

/// Registers the operations below `/users`.
pub fn routes_of_users(config: &mut ServiceConfig<'_>) {
    config.service(handlers::mine).service(handlers::of_user);
}

/// Registers the list of recent changes.
pub fn routes_of_activity(config: &mut ServiceConfig<'_>) {
    config.service(handlers::activity);
}

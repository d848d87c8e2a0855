//! Series of events (contract, additions, "Series of events").
//!
//! * A series is a [rule], which is expanded when the series is made. Its occurrences are ordinary events with the id of
//!   the series; a date that could not be booked is a skipped occurrence.
//! * All changes of a series run one after another (its target is recorded in the history). They lock the targets of its
//!   events, so that a change of one event does not mix with them, then groups and places, in the order of all
//!   transactions, and then read the events again.
//! * [`events::several`](crate::events::several) books and changes the events.

mod changes;
pub mod creation;
pub mod extension;
mod handlers;
mod occurrences;
pub mod queries;
pub mod refused;
mod requests;
pub(crate) mod revision;
pub mod rule;
mod target;
mod wire;

use utoipa_actix_web::service_config::ServiceConfig;

pub use self::{
    changes::{delete as delete_occurrences, restore as restore_occurrences},
    occurrences::add as add_occurrence,
    requests::{RequestEventSeries, RequestEventSeriesUpdate, RequestOccurrence},
    target::{all_occurrences, extended, later_occurrences, record_new_series},
    wire::{SkippedDate, series_conflict},
};

/// Registers the operations below `/event-series`.
pub fn routes(config: &mut ServiceConfig<'_>) {
    config
        .service(handlers::create)
        .service(handlers::get)
        .service(handlers::update)
        .service(handlers::delete)
        .service(handlers::add_occurrence);
}

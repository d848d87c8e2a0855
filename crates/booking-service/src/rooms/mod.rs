//! Rooms: places during a period, such as "S516, 18:00 to 21:00 on 4 April".
//!
//! Invariants, which hold under the lock of the place ([`booking`]):
//! * two verified rooms of one place never overlap;
//! * no two events conflict (contract, "No double booking"); [`overlap`] decides which do.

pub mod booking;
pub mod changes;
mod csv;
pub mod existing_conflicts;
mod handlers;
mod import;
mod interval;
pub mod overlap;
pub mod place;
pub mod place_keys;
pub mod queries;
mod table;
mod wire;

use utoipa_actix_web::service_config::ServiceConfig;

pub use self::{
    csv::decode,
    handlers::{import_recorded, parent, recorded, target},
    interval::Interval,
    wire::{ResponseRoom, check_span, out_of_order},
};

/// Registers the operations below `/rooms`.
pub fn routes(config: &mut ServiceConfig<'_>) {
    config
        .service(handlers::list)
        .service(handlers::create)
        .service(handlers::import)
        .service(handlers::verify)
        .service(handlers::unverify)
        .service(handlers::restore)
        .service(handlers::get)
        .service(handlers::delete);
}

//! The board: rooms and events of a day or a week as a page, for people and for screens at rooms.
//!
//! * Every caller of `GET /events` may see it, and so may a kiosk token, which allows nothing else.
//! * A page shows seven days, [`queries::MAX_ROOMS`] rooms and [`queries::MAX_EVENTS`] events at most, and says so when
//!   it shows less than there is.

mod drawing;
mod handlers;
mod kiosk;
mod page;
mod positions;
pub mod queries;
mod reader;
mod times;
mod timetable;
mod wire;

pub use self::handlers::problem_page;
use actix_web::web;

/// Registers the page.
pub fn pages(config: &mut web::ServiceConfig) {
    config.route(handlers::PATH, web::get().to(handlers::board));
}

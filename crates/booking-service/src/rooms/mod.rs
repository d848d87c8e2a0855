//! Rooms: windows of time on a place.

pub mod import;
pub mod overlap;
pub mod place;

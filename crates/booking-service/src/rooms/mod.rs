//! Rooms: windows of time on a place.

pub mod overlap;
pub mod place;

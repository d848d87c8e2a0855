//! b

pub mod rooms;

pub mod events;

pub mod ical;

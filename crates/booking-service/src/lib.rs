//! b

pub mod rooms;

pub mod events;

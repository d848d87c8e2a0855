//! b

pub mod rooms;

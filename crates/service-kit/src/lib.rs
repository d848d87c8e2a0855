//! k

pub mod directory;

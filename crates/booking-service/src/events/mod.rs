//! Events: declared uses of a room.

pub mod filter;

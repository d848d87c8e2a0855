//! The personal calendar feed.

pub mod feed;

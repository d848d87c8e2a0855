//! Tests of the parts together: the door to the database on both databases, and the frame on a real server.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod database;
mod server;

mod body;
mod door;
mod frame;

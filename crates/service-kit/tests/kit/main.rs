//! Integration tests: the executor on both databases, the middleware and routes on a real server.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod database;
mod freezing_proxy;
mod server;

mod body;
mod copy_to;
mod executor;
mod frame;
mod imports;
mod message_language;
mod static_files;
mod texts;

//! Tests of the whole service over HTTP, each on SQLite and on PostgreSQL, each on a database of its own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod harness;
mod objects;

mod accounts;
mod demo;
mod identity;
mod leaks;
mod service;
mod statements;
mod sync;
mod users;

//! Tests of the parts together: the door to the database on both databases, the frame on a real server, and
//! tokens of a real issuer.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod database;
mod server;

mod body;
mod copy_to;
mod executor;
mod frame;
mod id_in;
mod imports;
mod provider;
mod sifted;
mod static_files;

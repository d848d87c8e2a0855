//! Tests of the whole service over HTTP, each on SQLite and on PostgreSQL, each on a database of its own.

mod harness;

mod accounts;
mod demo;
mod identity;
mod service;
mod sync;
mod users;

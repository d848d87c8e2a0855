//! Tests of the whole service over HTTP, each on SQLite and on PostgreSQL, each on a database of its own.

mod harness;
mod process;

mod commands;
mod frame;
mod lifecycle;
mod log;
mod outage;
mod schema;
mod users;

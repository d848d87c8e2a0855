//! Tests of the whole service over HTTP, each on SQLite and on PostgreSQL, each on a database of its own.

mod builders;
mod contests;
mod harness;

mod projects;
mod service;
mod teams;
mod users;

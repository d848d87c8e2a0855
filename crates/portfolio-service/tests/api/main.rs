//! Tests of the whole service over HTTP, each on SQLite and on PostgreSQL, each on a database of its own.

mod booking;
mod builders;
mod harness;

mod accounts;
mod contests;
mod event_copy;
mod events;
mod identity;
mod projects;
mod service;
mod teams;
mod users;

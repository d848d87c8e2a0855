//! Tests of the whole service over HTTP, each on SQLite and on PostgreSQL, each on a database of its own.

mod builders;
mod harness;

mod double_booking;
mod events;
mod ical;
mod plans;
mod q_filter;
mod rooms;
mod sign_in;
mod tokens;
mod users;

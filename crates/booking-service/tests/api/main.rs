//! Tests of the whole service over HTTP, each on SQLite and on PostgreSQL, each on a database of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod builders;
mod harness;
mod issuer;
mod process;

mod availability;
mod backup;
mod commands;
mod conditions;
mod demo;
mod docs_page;
mod double_booking;
mod editors;
mod events;
mod frame;
mod groups;
mod guards;
mod health;
mod ical;
mod key_rotation;
mod lifecycle;
mod limits;
mod log;
mod matrix;
mod openapi;
mod outage;
mod pages;
mod plans;
mod poll_answers;
mod poll_confirmation;
mod polls;
mod provider;
mod provider_attacks;
mod provider_outages;
mod q_filter;
mod races;
mod rate_limits;
mod readme;
mod real_sign_in;
mod retries;
mod rooms;
mod schema;
mod secret_options;
mod secrets;
mod sessions;
mod sign_in;
mod static_files;
mod structure;
mod sync;
mod tags;
mod tokens;
mod tour;
mod updated_since;
mod users;

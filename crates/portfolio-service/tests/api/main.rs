//! Tests of the whole service over HTTP, each on SQLite and on PostgreSQL, each on a database of its own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod booking;
mod builders;
mod front_page;
mod harness;
mod history;
#[path = "../../../service-kit/tests/shared/issuer.rs"]
#[allow(dead_code, reason = "not every crate's tests need all of it")]
mod issuer;
mod objects;

mod accounts;
mod backup;
mod commands;
mod contests;
mod demo;
mod docs_page;
mod event_copy;
mod event_pages;
mod events;
mod examples;
mod feeds;
mod former_members;
mod groups;
mod identity;
mod import;
mod leaks;
mod load;
mod matrix;
mod member_forms;
mod member_history;
mod openapi;
mod operations;
mod people;
mod pictures;
mod plans;
mod projects;
mod provider;
mod rate_limits;
mod readme;
mod real_browser;
mod real_issuer;
mod real_proxy;
mod schema;
mod search_engines;
mod secrets;
mod service;
mod sign_in;
mod statements;
mod static_files;
mod structure;
mod sync;
mod teams;
mod unchanged;
mod users;

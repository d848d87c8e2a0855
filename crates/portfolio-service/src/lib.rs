//! The portfolio-service: what the members of a student club make and take part in, for the club's public site, and
//! for the dashboard that edits it.
//!
//! A slice for each resource; each may use those above it and the first block of modules below, nothing else:
//!
//! 1. [`users`]: members, as the directory knows them
//! 2. [`accounts`]: their accounts elsewhere
//! 3. [`groups`]: groups of the directory, with the history of their members
//! 4. [`events`]: a copy of what the booking-service has
//! 5. [`projects`]: what members make together, over semesters
//! 6. [`teams`]: who took part in a contest together
//! 7. [`contests`]: with their teams
//! 8. [`profiles`]: what one member has done
//! 9. [`feeds`]: what has changed
//!
//! [`sync`] copies users and groups from the directory, [`server`] puts everything together, [`commands`] is the command
//! line, [`demo`] fills the database of a made-up club, [`import`] brings in the data of the system that the
//! service replaces.

pub mod account_type;
pub mod auth;
pub mod booking;
pub mod caller;
pub mod club;
pub mod codes;
pub mod config;
pub mod identity;
pub mod link;
pub mod page;
pub mod rights;
pub mod schema;
pub mod span;
pub mod timeline;

pub mod accounts;
pub mod contests;
pub mod events;
pub mod feeds;
pub mod groups;
pub mod profiles;
pub mod projects;
pub mod teams;
pub mod users;

pub mod commands;
pub mod demo;
mod front_page;
pub mod import;
pub mod server;
pub mod sync;

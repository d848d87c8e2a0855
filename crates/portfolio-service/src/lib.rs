//! The portfolio-service: projects, contests, groups, events and accounts of a student club's members, for the club's
//! public site and for the dashboard that edits it.
//!
//! There is one slice for each resource. A slice may use the slices above it in this list and the modules of the first
//! block below:
//!
//! 1. [`users`]: members of the club
//! 2. [`accounts`]: members' accounts on other sites
//! 3. [`groups`]: groups of the directory and the history of their members
//! 4. [`events`]: a copy of the booking-service's events
//! 5. [`projects`]: projects and their members over semesters
//! 6. [`pictures`]: pictures of projects and users
//! 7. [`teams`]: teams of contests and their members
//! 8. [`contests`]: contests with their teams
//! 9. [`profiles`]: public pages and résumés of members
//! 10. [`feeds`]: Atom feeds of recent changes
//! 11. [`sitemap`]: the addresses of the public pages
//! 12. [`history`]: who changed what
//! 13. [`pages`]: the pages on which members act
//!
//! [`sync`] copies users and groups from the directory, [`server`] assembles the service, [`commands`] is the command
//! line, [`sign_in`] signs people in, `development` does that on this machine, [`demo`] fills the database with a made-up
//! club, and [`import`] imports the data of the system that the service replaces.

#![expect(missing_docs, reason = "what has a clear name needs no sentence; this is no library")]

pub mod account_type;
pub mod auth;
pub mod bearer;
pub mod booking;
pub mod caller;
pub mod club;
pub mod codes;
pub mod config;
pub mod deletion;
pub mod departures;
pub mod identity;
pub mod link;
pub mod metadata;
pub mod objects;
pub mod page;
pub mod picture;
pub mod proxy_user;
pub mod rights;
pub mod schema;
pub mod span;
pub mod timeline;

pub mod accounts;
pub mod contests;
pub mod events;
pub mod feeds;
pub mod groups;
pub mod history;
pub mod pages;
pub mod pictures;
pub mod profiles;
pub mod projects;
pub mod sitemap;
pub mod teams;
pub mod users;

pub mod commands;
pub mod demo;
mod development;
mod front_page;
pub mod import;
pub mod server;
pub mod sign_in;
pub mod sync;

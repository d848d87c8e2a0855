//! The portfolio-service: what the members of a student club make and take part in, for the club's public site, and
//! for the dashboard that edits it.
//!
//! A slice for each resource; each may use those above it and `auth`, `club`, `codes`, `policy`, `schema`, `span`,
//! nothing below:
//!
//! 1. [`users`]: members, as the directory knows them
//! 2. [`projects`]: what members make together, over semesters
//! 3. [`teams`]: who took part in a contest together
//! 4. [`contests`]: with their teams
//!
//! [`server`] puts them together, [`commands`] is the command line.

pub mod auth;
pub mod club;
pub mod codes;
pub mod config;
pub mod policy;
pub mod schema;
pub mod span;

pub mod contests;
pub mod projects;
pub mod teams;
pub mod users;

pub mod commands;
pub mod server;

//! The booking-service: lecture rooms that the club holds, declarations of their use, groups, attendance, tags, a
//! calendar feed, sign-in.
//!
//! A slice for each resource; each may use those above it and `auth`, `club`, `codes`, `limits`, `schema`, `wall_clock`, nothing
//! below:
//!
//! 1. [`users`]: members, privileges, the copy from the directory
//! 2. [`groups`]: made here, from the directory, and the everyone group
//! 3. [`tags`]: names for events
//! 4. [`rooms`]: periods on places; free times; the rule of double booking; import
//! 5. [`events`]: declarations of use, attendance, the `q` filter, the activity list
//! 6. [`availability`]: when rooms and people are free
//! 7. [`polls`]: when can everybody come? Candidate slots, answers, confirmation as an event
//! 8. [`ical`]: the personal calendar feed
//! 9. [`sign_in`]: sign-in providers, who is who there, sessions, API tokens
//! 10. [`board`]: rooms and events of a day or a week as a page
//!
//! [`server`] puts them together, [`commands`] is the command line, [`demo`] fills the database of a made-up club,
//! [`import`] brings in the data of the system that the service replaces.

#[macro_use]
pub mod overlapping;

pub mod auth;
pub mod club;
pub mod codes;
pub mod commands;
pub mod config;
pub mod last_use;
pub mod limits;
pub mod schema;
pub mod wall_clock;

pub mod availability;
pub mod board;
pub mod events;
pub mod groups;
pub mod ical;
pub mod polls;
pub mod rooms;
pub mod sign_in;
pub mod tags;
pub mod users;

pub mod demo;
pub mod import;
pub mod server;
mod version;

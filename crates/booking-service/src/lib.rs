//! The booking-service: lecture rooms that the club holds, declarations of their use, groups, attendance, tags, a
//! calendar feed, sign-in.
//!
//! Each resource has a module, called a slice. A slice uses only the slices above it and the shared modules `auth`,
//! `club`, `codes`, `config`, `deletion`, `expressions`, `invitations`, `last_use`, `limits`, `objects`,
//! `period_filter`, `schedule`, `schema` and `wall_clock`:
//!
//! 1. [`users`]: members, privileges, the copy of the directory
//! 2. [`groups`]: groups created here, directory groups and the everyone group
//! 3. [`tags`]: names for events
//! 4. [`rooms`]: places during periods, free times, the rule against double booking, the CSV import
//! 5. [`events`]: declarations of use, attendance, the `q` filter, the activity list
//! 6. [`series`]: events that repeat
//! 7. [`availability`]: when rooms and people are free
//! 8. [`polls`]: candidate slots, answers, confirmation as an event
//! 9. [`history`]: who changed what
//! 10. [`ical`]: the personal calendar feed
//! 11. [`join_links`]: invitations by which people become members
//! 12. [`sign_in`]: sign-in providers, identities, sessions, API tokens
//! 13. [`board`]: rooms and events of a day or a week as a page
//! 14. [`webhooks`]: programs and channels that are told what has changed
//! 15. [`pages`]: the pages on which members act
//!
//! [`server`] assembles them, [`commands`] is the command line, [`demo`] fills an empty database with an example club,
//! [`import`] copies the data of the system that the service replaces.

#![expect(missing_docs, reason = "what has a clear name needs no sentence; this is no library")]

#[macro_use]
pub mod period_filter;

pub mod auth;
pub mod club;
pub mod codes;
pub mod commands;
pub mod config;
pub mod deletion;
pub mod expressions;
pub mod invitations;
pub mod last_use;
pub mod limits;
pub mod objects;
pub mod schedule;
pub mod schema;
pub mod wall_clock;

pub mod availability;
pub mod board;
pub mod events;
pub mod groups;
pub mod history;
pub mod ical;
pub mod join_links;
pub mod pages;
pub mod polls;
pub mod rooms;
pub mod series;
pub mod sign_in;
pub mod tags;
pub mod users;
pub mod webhooks;

pub mod demo;
pub mod import;
pub mod server;
mod version;

//! What every HTTP service of the club needs to run. Each module uses only those before it, but all may use
//! `database::error_class`, the messages of the databases:
//!
//! * [`error`]: errors and how they become problems. [`credentials`]: keys, secrets and their hashes. [`progress`]: what
//!   a long command is doing.
//! * [`database`]: transactions on SQLite or PostgreSQL, migrations. [`command`]: errors and exit status of commands.
//! * [`maintenance`]: backup, restore, copy.
//! * [`copies`]: the age of copies of data of other servers, and which sources are suspicious. [`directory`]: the club
//!   directory.
//! * [`http`]: values read from requests and parts of answers, independent of the service's state.
//! * [`logging`], [`metrics`]. [`config`]: options, secrets, and the checks of `check-config`.
//! * [`history`]: who changed what, one row for each change of an object. [`removal`]: removes old rows.
//! * [`state`]: what the workers share. [`page`]: layout, language and forms of pages. [`middleware`]: what surrounds
//!   every request.
//! * [`lease`]: which replica does a background task.
//! * [`retention`]: when what is kept for a time only is removed.
//! * [`guard`]: authentication, rights, conditional requests and safe retries of every operation.
//! * [`audit`]: the list of all changes.
//! * [`front_page`]: what people see first.
//! * [`routes`], [`server`]: health, metrics and documentation; start and shutdown. [`health`]: asks a running service.
//! * [`cli`]: the commands that every service has.

#[macro_use]
mod text_enum;

pub mod audit;
pub mod cli;
pub mod command;
pub mod config;
pub mod copies;
pub mod credentials;
pub mod database;
pub mod directory;
pub mod error;
pub mod front_page;
pub mod guard;
pub mod health;
pub mod history;
pub mod http;
pub mod lease;
pub mod logging;
pub mod maintenance;
pub mod metrics;
pub mod middleware;
pub mod page;
mod process;
pub mod progress;
pub mod removal;
pub mod retention;
pub mod routes;
mod secret;
pub mod server;
pub mod state;

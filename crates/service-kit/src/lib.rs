//! What any HTTP service of the club needs to run, and neither may write twice.
//!
//! * [`database`]: the one door to the database, SQLite or PostgreSQL by URL; migrations at start.
//! * [`error`]: what a handler or a query may fail with, and how that becomes a problem.
//! * [`http`]: extractors for bodies, parameters and credentials; replies; the frame around every request.
//! * [`server`]: start, readiness and graceful drain.
//! * [`config`]: the options that every service has; secrets; what `check-config` prints.
//! * [`logging`], [`metrics`]: one line and a few numbers a request.
//! * [`credentials`]: secrets, their hashes, and the sealed cookies.
//! * [`copies`]: how old the copies of what other services have are.
//! * [`kept`]: what another server said, fetched again now and then, for those who cannot wait for it each time.
//! * [`directory`]: where users and groups come from.
//! * [`health`]: asks a running service whether it can serve.

pub mod config;
pub mod copies;
pub mod credentials;
pub mod database;
pub mod directory;
pub mod error;
pub mod health;
pub mod http;
pub mod kept;
pub mod logging;
pub mod maintenance;
pub mod metrics;
mod process;
pub mod server;

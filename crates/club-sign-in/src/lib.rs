//! How a browser gets a session of a service (contract, "Sign-in"). Each service has its own key, cookies, sessions and
//! users; nothing of one is worth anything at the other.
//!
//! * Only a cookie of the browser stores a pending sign-in ([`pending::PendingSignIn`]); any replica can finish it,
//!   once.
//! * A browser may have several. The first to finish creates the session; the others redirect to the front end.
//! * A session is stored as a hash; it cannot be read back from the database.
//! * A provider authenticates a person ([`provider`]); [`identities`] finds the user of that identity.
//! * Each sign-in creates a new session and ends the browser's previous one.
//!
//! [`config`] has the options, [`site`] what differs between services, [`sessions`] the database, [`flow`] the requests.

pub mod codes;
pub mod config;
mod failure;
pub mod flow;
pub mod identities;
pub mod pending;
pub mod provider;
pub mod schema;
pub mod sessions;
pub mod site;

pub use self::{config::SignInPolicy, flow::SignIn, site::Site};

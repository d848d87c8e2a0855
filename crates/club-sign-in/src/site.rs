//! What differs between the services and installations that sign people in.

use service_kit::credentials::Keys;

use crate::identities::Users;

/// A service at its address.
#[derive(Debug, Clone)]
pub struct Site {
    /// The keys of this service.
    pub keys: Keys,
    /// Scheme and authority of the web address, without a slash at the end.
    pub origin: String,
    /// Whether cookies must be `Secure`.
    pub is_https: bool,
    /// Whether anybody on this machine chooses a user instead of signing in.
    pub is_development: bool,
    /// What the service calls things.
    pub service: &'static Service,
}

/// The names, paths and users of a service.
#[derive(Debug)]
pub struct Service {
    /// The name of the session cookie. Two services on one host need different ones.
    pub session_cookie: &'static str,
    /// The path to which the provider redirects browsers.
    pub callback: &'static str,
    /// Where a browser goes after a sign-in that no page began.
    pub arrival: &'static str,
    /// Its users.
    pub users: Users,
}

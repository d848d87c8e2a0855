//! What a provider exchanges: the code that a browser comes back with, for the user that it stands for.

use service_kit::database::types::DbUuid;

use crate::sign_in::identities::Person;

/// With what a browser came back.
#[derive(Debug)]
pub struct Returned {
    /// The code to exchange.
    pub code: String,
    /// The provider that says it sent the browser (RFC 9207).
    pub issuer: Option<String>,
}

/// Whom a code stands for.
#[derive(Debug, Clone)]
pub enum Who {
    /// A user of ours.
    User(DbUuid),
    /// Somebody whom the provider knows.
    Person(Person),
}

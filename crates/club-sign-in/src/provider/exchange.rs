//! The input and the result of the exchange of a code.

use service_kit::database::types::DbUuid;

use crate::identities::Identity;

/// The parameters of a successful callback.
#[derive(Debug)]
pub struct AuthorizationResponse {
    /// The code to exchange.
    pub code: String,
    /// The issuer that the callback names (RFC 9207).
    pub issuer: Option<String>,
}

/// The user of a code.
#[derive(Debug, Clone)]
pub enum Principal {
    /// A user of this service, in development mode.
    User(DbUuid),
    /// An account at the provider.
    Identity(Identity),
}

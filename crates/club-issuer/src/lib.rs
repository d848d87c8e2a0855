//! How the services trust an OpenID Connect issuer, and how they send requests to other servers. Each module uses only
//! those before it:
//!
//! * [`outbound`]: the HTTP client for every other server.
//! * [`cached_fetch`]: an answer of another server that is cached.
//! * [`issuer`]: the metadata and the keys of an issuer.
//! * [`verify`]: verification of a token. [`claim`]: a condition on what it says of a person.
//! * [`joining`]: the name and the id of a person at a provider, and whether rules make them a member.
//!
//! The authorization code flow is in `club-sign-in`.

pub mod cached_fetch;
pub mod claim;
pub mod issuer;
pub mod joining;
pub mod outbound;
mod ring;
pub mod verify;

pub use self::{
    claim::ClaimValue,
    issuer::{Issuer, Metadata},
    verify::{Claims, Expectations, Fault, OtherAudiences, SignIn, SignatureAlgorithm, Verifier, VerifyError},
};

//! Invitations: links by which people become members (contract, additions, "Invitations").
//!
//! * A link has a secret, which is stored as a hash and shown once.
//! * It ends after its time, after so many uses, when it is deleted, and when whoever made it is no longer privileged.
//! * It is used only for a person who is no member without it, or for the privilege. `club_sign_in` asks for that while
//!   it finishes the sign-in.

mod changes;
mod handlers;
pub mod queries;
mod wire;

use utoipa_actix_web::service_config::ServiceConfig;

pub use self::{
    changes::{accept, create_recorded, delete, find},
    handlers::{address, target},
    wire::{NewInvitation, RequestInvitation},
};

/// Registers the operations below `/invitations`.
pub fn routes(config: &mut ServiceConfig<'_>) {
    config.service(handlers::list).service(handlers::create).service(handlers::delete);
}

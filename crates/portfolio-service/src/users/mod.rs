//! Users: members of the club, copied from the directory.
//!
//! * A user is never deleted. Former members stay in the histories of projects, contests and groups.
//! * The real name leaves this slice only through [`Person`], and only if its owner publishes it.

mod handlers;
pub mod queries;
pub mod references;
mod wire;

use utoipa_actix_web::service_config::ServiceConfig;

pub use self::{
    handlers::{fields, recorded},
    queries::Person,
    wire::{Account, EditUserRequest, User, as_person, face, on_page},
};

/// Registers the operations below `/users`.
pub fn routes(config: &mut ServiceConfig<'_>) {
    config.service(handlers::list).service(handlers::me).service(handlers::get).service(handlers::edit);
}

//! Users: members of the club as the directory knows them.
//!
//! * A user is never deleted: one who left stays in the histories of projects, contests and groups, with their name.
//! * The real name leaves this slice only through [`Person`], and only when its owner publishes it.

mod handlers;
pub mod known;
pub mod queries;
mod wire;

use utoipa_actix_web::service_config::ServiceConfig;

pub use self::{
    queries::Person,
    wire::{Account, User, on_page},
};

/// Registers the operations below `/users`.
pub fn routes(config: &mut ServiceConfig<'_>) {
    config.service(handlers::list).service(handlers::me).service(handlers::get).service(handlers::edit);
}

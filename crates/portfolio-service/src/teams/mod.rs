//! Teams of contests, with their members and results.
//!
//! * A team is found only below its own contest.
//! * A change of a team or of its members locks the team's row, so concurrent changes of both are safe.

mod handlers;
pub mod queries;
mod restoration;
mod wire;

use utoipa_actix_web::service_config::ServiceConfig;

pub use self::{
    handlers::{fields, recorded, remove, show_created, target},
    restoration::Stored,
    wire::{AddContestTeamRequest, ContestTeam, ContestTeamWithoutMembers, EditContestTeamRequest},
};

/// Registers the operations below `/contests`.
pub fn routes(config: &mut ServiceConfig<'_>) {
    config
        .service(handlers::list)
        .service(handlers::create)
        .service(handlers::get)
        .service(handlers::update)
        .service(handlers::delete)
        .service(handlers::list_members)
        .service(handlers::put_members);
}

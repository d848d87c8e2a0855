//! Teams of a contest: who took part in it, under which name, and how it ended for them.
//!
//! * A team is found only below its own contest.
//! * Whoever changes a team or its members first locks the team's row, so that changes to both may come at once.

mod handlers;
pub mod queries;
mod wire;

use utoipa_actix_web::service_config::ServiceConfig;

pub use self::wire::{ContestTeam, ContestTeamWithoutMembers};

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

//! Sign-in: how a browser gets a session, and the API tokens of programs (contract, "Sign-in").
//!
//! * A sign-in under way ([`pending::Pending`]) lives in the browser's cookie alone; any replica can finish it, once.
//! * A session or token is kept as its hash; neither can be read back from the database.
//! * Who somebody is, a provider says ([`provider`]); which user that is, [`identities`] says.
//! * The session is a new one at each sign-in, and the one that the browser had before ends.

mod handlers;
mod html;
pub mod identities;
mod pages;
pub mod pending;
pub mod provider;
pub mod queries;
pub mod tokens;
mod wire;

use actix_web::web;
use common::problem::Problem;
use utoipa_actix_web::service_config::ServiceConfig;

use crate::codes;

pub use self::handlers::{show_sessions, show_tokens};

/// Registers the operations.
pub fn routes(config: &mut ServiceConfig<'_>) {
    config
        .service(handlers::auth_params)
        .service(handlers::callback)
        .service(handlers::logout)
        .service(handlers::list_sessions)
        .service(handlers::end_session)
        .service(handlers::create_token)
        .service(handlers::list_tokens)
        .service(handlers::revoke_token);
}

/// Registers the pages of a development installation, which has no front end.
pub fn pages(config: &mut web::ServiceConfig) {
    config.route("/dev/sign-in", web::get().to(pages::choose)).route("/callback", web::get().to(pages::arrived));
}

/// The one answer to every sign-in that cannot be finished: which of the reasons it is helps nobody but an attacker.
fn bad_login() -> Problem {
    Problem::new(codes::BAD_LOGIN)
}

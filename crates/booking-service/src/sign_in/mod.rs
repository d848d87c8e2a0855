//! Sign-in: how a browser gets a session, and the API tokens of programs (contract, "Sign-in").
//!
//! * Only a cookie of the browser stores a pending sign-in ([`pending::PendingSignIn`]); any replica can finish it,
//!   once.
//! * A browser may have several. The first to finish creates the session; the others redirect to the front end.
//! * A session or token is stored as a hash; neither can be read back from the database.
//! * A provider authenticates a person ([`provider`]); [`identities`] finds the user of that identity.
//! * Each sign-in creates a new session and ends the browser's previous one.

mod failure;
mod handlers;
pub mod identities;
mod pages;
pub mod pending;
pub mod provider;
pub mod queries;
pub mod tokens;
mod wire;

pub use self::{
    handlers::{problem_page, sessions_target, tokens_target},
    wire::RequestToken,
};
use actix_web::web;
use service_kit::{page::ask_to_sign_out, state::SIGN_OUT_PATH};
use utoipa_actix_web::service_config::ServiceConfig;

pub use self::pages::PAGE;

/// Registers signing in and out.
pub fn routes(config: &mut ServiceConfig<'_>) {
    config.service(handlers::auth_params).service(handlers::callback).service(handlers::logout);
}

/// Registers the operations below `/users`.
pub fn routes_of_users(config: &mut ServiceConfig<'_>) {
    config
        .service(handlers::list_sessions)
        .service(handlers::end_session)
        .service(handlers::create_token)
        .service(handlers::list_tokens)
        .service(handlers::revoke_token);
}

/// Registers the page of a development installation.
pub fn pages(config: &mut web::ServiceConfig) {
    config.route("/dev/sign-in", web::get().to(pages::choose));
}

/// Registers the pages of an installation without a front end.
pub fn front_pages(config: &mut web::ServiceConfig) {
    config
        .route(PAGE, web::get().to(pages::begin))
        .route("/callback", web::get().to(pages::callback))
        .service(web::resource(SIGN_OUT_PATH).get(ask_to_sign_out).post(pages::sign_out));
}

//! Sign-in: how a browser gets a session, and the API tokens of programs (contract, "Sign-in").
//!
//! * A sign-in under way ([`pending::Pending`]) lives in a cookie of the browser alone; any replica can finish it, once.
//! * A browser may have several under way. The first one to end makes the session, and the others lead to the front end.
//! * A session or token is kept as its hash; neither can be read back from the database.
//! * Who somebody is, a provider says ([`provider`]); which user that is, [`identities`] says.
//! * The session is a new one at each sign-in, and the one that the browser had before ends.

mod failure;
mod handlers;
pub mod identities;
mod pages;
pub mod pending;
pub mod provider;
pub mod queries;
pub mod tokens;
mod wire;

pub use self::handlers::problem_page;
use actix_web::web;
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

/// Registers the pages that stand in for those of a front end.
pub fn front_pages(config: &mut web::ServiceConfig) {
    config
        .route("/", web::get().to(pages::front))
        .route(PAGE, web::get().to(pages::begin))
        .route("/callback", web::get().to(pages::arrived));
}

//! Sign-in: how a browser gets a session, and the API tokens of programs (contract, "Sign-in").
//!
//! * A sign-in under way ([`pending::Pending`]) lives in a cookie of the browser alone; any replica can finish it, once.
//! * A browser may have several under way. The first one to end makes the session, and the others lead to the front end.
//! * A session or token is kept as its hash; neither can be read back from the database.
//! * Who somebody is, a provider says ([`provider`]); which user that is, [`identities`] says.
//! * The session is a new one at each sign-in, and the one that the browser had before ends.

mod failure;
mod handlers;
mod html;
pub mod identities;
mod pages;
pub mod pending;
pub mod provider;
pub mod queries;
pub mod tokens;
mod wire;

pub use self::handlers::problem_page;
use actix_web::{
    guard::fn_guard,
    web::{self, Data},
};
use service_kit::state::AppState;
use utoipa_actix_web::service_config::ServiceConfig;

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

/// Registers the pages of a development installation. Where there is a front end, `/callback` is its own.
pub fn pages(config: &mut web::ServiceConfig) {
    let without_front_end =
        fn_guard(|ctx| ctx.app_data::<Data<AppState>>().is_some_and(|service| !service.has_front_end()));
    let arrived = web::resource("/callback").guard(without_front_end).route(web::get().to(pages::arrived));
    config.route("/dev/sign-in", web::get().to(pages::choose)).service(arrived);
}

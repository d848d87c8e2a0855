//! Sign-in, sessions and API tokens (contract, "Sign-in"). `club_sign_in` signs people in; here are its operations, pages
//! and users. A token is stored as a hash, and cannot be read back from the database.

mod changes;
mod handlers;
mod pages;
pub mod tokens;
mod wire;

use actix_web::web;
use club_sign_in::{flow::PAGE, site::Service};
use service_kit::{page::ask_to_sign_out, state::SIGN_OUT_PATH};
use utoipa_actix_web::service_config::ServiceConfig;

pub use self::{
    handlers::{sessions_target, tokens_target},
    wire::RequestToken,
};
use crate::{auth::SESSION_COOKIE, config::CALLBACK};

/// What sign-in needs to know of this service.
pub static SERVICE: Service =
    Service { session_cookie: SESSION_COOKIE, callback: CALLBACK, arrival: "/callback", users: changes::USERS };

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

/// The page of an invitation.
pub const JOIN: &str = "/join/{secret}";

/// Where its link leads to. Not a form: browsers do not follow one to another site, because of `form-action`.
pub const JOIN_NOW: &str = "/join/{secret}/sign-in";

/// Registers the page of a development installation, and that of an invitation.
pub fn pages(config: &mut web::ServiceConfig) {
    config
        .route("/dev/sign-in", web::get().to(pages::choose))
        .route(JOIN, web::get().to(pages::join))
        .route(JOIN_NOW, web::get().to(pages::begin_to_join));
}

/// Registers the pages of an installation without a front end.
pub fn front_pages(config: &mut web::ServiceConfig) {
    config
        .route(PAGE, web::get().to(pages::begin))
        .route("/callback", web::get().to(pages::callback))
        .service(web::resource(SIGN_OUT_PATH).get(ask_to_sign_out).post(pages::sign_out));
}

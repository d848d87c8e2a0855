//! Users: the members of the club, copied from the directory, and which of them are privileged.
//!
//! * Users are never deleted. A former member remains the creator and attendee of past events.
//! * The id identifies a user. Names are unique at any time, but a name may move from one user to another.
//! * [`sync`] copies users and their groups from the directory. Nothing else changes names and states.
//! * The last active privileged user cannot lose the privilege, except by becoming inactive in the directory.

mod handlers;
mod icon;
pub mod queries;
pub mod sync;
mod wire;

pub use self::wire::ResponseUser;

use actix_web::web;
use service_kit::directory::NameRule;
use utoipa_actix_web::service_config::ServiceConfig;

/// Users with other names stay in the copy of the directory, because groups and events may name them.
pub const NAMES: NameRule = NameRule { accepts: is_sign_in_name, otherwise: "cannot sign in" };

/// Whether this is a sign-in name (contract, "Sign-in names"). Other characters could imitate another user's name.
#[must_use]
pub fn is_sign_in_name(name: &str) -> bool {
    let is_allowed = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'.' | b'@' | b'+' | b'-');
    (1..=32).contains(&name.len()) && name.bytes().all(is_allowed)
}

/// Registers the operations below `/users`.
pub fn routes(config: &mut ServiceConfig<'_>) {
    config
        .service(handlers::list)
        .service(handlers::me)
        .service(handlers::get)
        .service(handlers::synchronize)
        .service(handlers::set_privileged);
}

/// Registers the built-in icons.
pub fn pages(config: &mut web::ServiceConfig) {
    icon::routes(config);
}

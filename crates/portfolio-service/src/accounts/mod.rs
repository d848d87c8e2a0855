//! Accounts of members on other sites. A user has at most one account of each [type](crate::account_type), and the type
//! accepts its address.

mod handlers;
pub(crate) mod queries;
mod wire;

pub use self::{
    handlers::{fields, recorded, remove, show_created, target},
    wire::{AddAccountRequest, EditUserAccountRequest},
};

use utoipa_actix_web::service_config::ServiceConfig;

/// Registers the list of account types.
pub fn routes(config: &mut ServiceConfig<'_>) {
    config.service(handlers::types);
}

/// Registers the operations below `/users`.
pub fn routes_of_users(config: &mut ServiceConfig<'_>) {
    config
        .service(handlers::list)
        .service(handlers::add)
        .service(handlers::get)
        .service(handlers::edit)
        .service(handlers::delete);
}

//! Pictures of projects and users.
//!
//! * A picture is decoded within bounds, one at a time, and stored encoded again in two sizes: without any metadata.
//! * The row of the project or user has the hash of its picture, so lists need no other table. Only this slice sets it.
//! * The picture of a deleted project stays until the project is removed for good.

mod encoding;
mod handlers;
pub mod queries;
mod wire;

pub use self::{
    encoding::Encoded,
    handlers::{Subject, delete, put},
};

use utoipa_actix_web::service_config::ServiceConfig;

/// Registers the operations below `/projects`.
pub fn routes_of_projects(config: &mut ServiceConfig<'_>) {
    config.service(handlers::of_project).service(handlers::put_of_project).service(handlers::delete_of_project);
}

/// Registers the operations below `/users`.
pub fn routes_of_users(config: &mut ServiceConfig<'_>) {
    config.service(handlers::of_user).service(handlers::put_of_user).service(handlers::delete_of_user);
}

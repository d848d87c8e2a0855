//! Availability polls: "When can everybody come?" On the wire they are called draft events.
//!
//! * A poll has candidate slots. Its invitees and administrators, and anybody if it is open, answer which slots suit
//!   them.
//! * Its status is computed when it is read: confirmed while it has an event that is not deleted, closed after the
//!   deadline, else open.
//! * Answers and changes are possible until the deadline, which a change can move. The administrators can confirm a
//!   slot at any time ([`confirmation`]).
//! * A change of a poll locks its row; an answer takes a shared lock. So a concurrent confirmation either takes an
//!   answer into account, or the answer is refused.

pub(crate) mod answers;
pub(crate) mod changes;
pub(crate) mod confirmation;
mod handlers;
pub mod queries;
mod requests;
pub mod results;
mod slots;
mod target;
mod wire;

pub use self::{
    handlers::parent,
    requests::{RequestAvailability, RequestConfirmation, RequestDraftEvent, RequestDraftEventUpdate},
    target::{changed, confirmed, record_created, target},
};

use utoipa_actix_web::service_config::ServiceConfig;

/// Registers the operations below `/draft-events`.
pub fn routes(config: &mut ServiceConfig<'_>) {
    config
        .service(handlers::create)
        .service(handlers::get)
        .service(handlers::update)
        .service(handlers::delete)
        .service(handlers::restore)
        .service(handlers::results)
        .service(handlers::all_answers)
        .service(handlers::own_answer)
        .service(handlers::create_answer)
        .service(handlers::update_answer)
        .service(handlers::confirm);
}

/// Registers the operations below `/users`.
pub fn routes_of_users(config: &mut ServiceConfig<'_>) {
    config.service(handlers::mine).service(handlers::of_user);
}

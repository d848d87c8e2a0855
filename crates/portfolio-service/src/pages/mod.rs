//! The pages on which members act, if the service serves no front end.
//!
//! They are one slice, after all others: a page shows things of many slices. A form is parsed into the request of an
//! operation and runs by the guard and the function of that operation, so no rule is here. The public pages are in the
//! slices of what they show.

mod accounts;
mod contests;
mod fields;
mod history;
mod me;
mod members;
mod pictures;
mod projects;
mod teams;

use actix_web::{
    middleware::from_fn,
    web::{ServiceConfig, resource},
};
use service_kit::state::SIGN_OUT_PATH;

use crate::{identity::DEVELOPMENT_PAGE, proxy_user::proxy_user};

/// The paths of all pages of an installation without a front end.
pub const PATHS: &[&str] = &[
    "/",
    "/people",
    "/people/{name}",
    "/projects",
    "/projects/{projectId}",
    "/contests",
    "/contests/{contestId}",
    "/groups",
    "/groups/{groupId}",
    "/me",
    "/people/{userId}/accounts/new",
    "/people/{userId}/accounts/{accountId}",
    "/projects/new",
    "/projects/{projectId}/edit",
    "/projects/{projectId}/delete",
    "/projects/{projectId}/history",
    "/projects/{projectId}/members",
    "/projects/{projectId}/members/{userId}",
    "/contests/new",
    "/contests/{contestId}/edit",
    "/contests/{contestId}/delete",
    "/contests/{contestId}/history",
    "/contests/{contestId}/teams/new",
    "/contests/{contestId}/teams/{teamId}",
    "/contests/{contestId}/teams/{teamId}/delete",
    "/deleted",
    DEVELOPMENT_PAGE,
    SIGN_OUT_PATH,
];

/// The paths to which they send forms.
pub const FORM_PATHS: &[&str] = &[
    "/people/{userId}/profile",
    "/people/{userId}/picture",
    "/people/{userId}/picture/delete",
    "/people/{userId}/accounts/new",
    "/people/{userId}/accounts/{accountId}",
    "/people/{userId}/accounts/{accountId}/delete",
    "/projects/new",
    "/projects/{projectId}/edit",
    "/projects/{projectId}/picture",
    "/projects/{projectId}/picture/delete",
    "/projects/{projectId}/delete",
    "/projects/{projectId}/restore",
    "/projects/{projectId}/members",
    "/projects/{projectId}/members/{userId}",
    "/projects/{projectId}/members/{userId}/remove",
    "/contests/new",
    "/contests/{contestId}/edit",
    "/contests/{contestId}/delete",
    "/contests/{contestId}/restore",
    "/contests/{contestId}/teams/new",
    "/contests/{contestId}/teams/{teamId}",
    "/contests/{contestId}/teams/{teamId}/delete",
    DEVELOPMENT_PAGE,
    SIGN_OUT_PATH,
];

pub fn routes(config: &mut ServiceConfig) {
    macro_rules! page {
        ($path:literal) => {
            resource($path).wrap(from_fn(proxy_user))
        };
    }
    config
        .service(page!("/me").get(me::show))
        .service(page!("/people/{userId}/profile").post(me::update))
        .service(page!("/people/{userId}/picture").post(pictures::put_of_user))
        .service(page!("/people/{userId}/picture/delete").post(pictures::delete_of_user))
        .service(page!("/people/{userId}/accounts/new").get(accounts::new).post(accounts::create))
        .service(page!("/people/{userId}/accounts/{accountId}").get(accounts::edit).post(accounts::update))
        .service(page!("/people/{userId}/accounts/{accountId}/delete").post(accounts::delete))
        .service(page!("/projects/new").get(projects::new).post(projects::create))
        .service(page!("/projects/{projectId}/edit").get(projects::edit).post(projects::update))
        .service(page!("/projects/{projectId}/picture").post(pictures::put_of_project))
        .service(page!("/projects/{projectId}/picture/delete").post(pictures::delete_of_project))
        .service(page!("/projects/{projectId}/delete").get(projects::ask_to_delete).post(projects::delete))
        .service(page!("/projects/{projectId}/history").get(history::of_project))
        .service(page!("/projects/{projectId}/restore").post(history::restore_project))
        .service(page!("/projects/{projectId}/members").get(members::list).post(members::add))
        .service(page!("/projects/{projectId}/members/{userId}").get(members::edit).post(members::update))
        .service(page!("/projects/{projectId}/members/{userId}/remove").post(members::remove))
        .service(page!("/contests/new").get(contests::new).post(contests::create))
        .service(page!("/contests/{contestId}/edit").get(contests::edit).post(contests::update))
        .service(page!("/contests/{contestId}/delete").get(contests::ask_to_delete).post(contests::delete))
        .service(page!("/contests/{contestId}/history").get(history::of_contest))
        .service(page!("/contests/{contestId}/restore").post(history::restore_contest))
        .service(page!("/deleted").get(history::list_deleted))
        .service(page!("/contests/{contestId}/teams/new").get(teams::new).post(teams::create))
        .service(page!("/contests/{contestId}/teams/{teamId}").get(teams::edit).post(teams::update))
        .service(page!("/contests/{contestId}/teams/{teamId}/delete").get(teams::ask_to_delete).post(teams::delete));
}

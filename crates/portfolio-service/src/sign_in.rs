//! Signing in with a provider (contract, "Sign-in"), if one is configured. `club_sign_in` does it; here are its pages and
//! users.

use actix_web::{
    HttpRequest,
    web::{Data, ServiceConfig, get, resource},
};
use club_sign_in::{
    SignIn,
    flow::PAGE,
    identities::{Identity, Users, retry_if_exists},
    site::Service,
};
use common::problem::Problem;
use diesel::prelude::*;
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, Failure},
    http::{Reply, client_ip::ClientIp},
    state::{AppState, TimeDependent},
};

use crate::{caller::ACTIVE, config::CALLBACK, schema::users};

/// What sign-in needs to know of this service.
pub static SERVICE: Service = Service {
    session_cookie: "portfolio_session",
    callback: CALLBACK,
    arrival: "/",
    users: Users {
        create,
        set_privileged,
        // The booking-service has invitations.
        invitation: |_, _, _| Ok(None),
        accept: |_, _, _, _| Ok(()),
    },
};

/// The paths of the pages.
pub const PATHS: &[&str] = &[PAGE, CALLBACK];

pub fn pages(config: &mut ServiceConfig) {
    config.service(resource(PAGE).route(get().to(begin))).service(resource(CALLBACK).route(get().to(finish)));
}

/// Begins a sign-in and sends the browser to the provider.
async fn begin(req: HttpRequest, state: Data<AppState>, from: ClientIp, now: TimeDependent) -> Result<Reply, Failure> {
    sign_in(&req)?.begin_page(&req, &state, from, now.0).await
}

/// Finishes the sign-in with which the provider sends the browser back.
async fn finish(req: HttpRequest, state: Data<AppState>, from: ClientIp, now: TimeDependent) -> Result<Reply, Failure> {
    sign_in(&req)?.finish(&req, &state, from, now.0).await
}

/// 404 without a provider.
fn sign_in(req: &HttpRequest) -> Result<Data<SignIn>, Problem> {
    req.app_data::<Data<SignIn>>().cloned().ok_or_else(|| Problem::not_found("path"))
}

/// Creates the user of an identity. The name at the provider is shown only if its owner publishes it, as that of the
/// directory.
fn create(
    conn: &mut AnyConnection,
    identity: &Identity,
    id: DbUuid,
    name: &str,
    now: DbTimestamp,
) -> Result<(), Error> {
    retry_if_exists(
        diesel::insert_into(users::table)
            .values((
                users::id.eq(id),
                users::name.eq(name),
                users::real_name.eq(&identity.display_name),
                users::state.eq(ACTIVE),
                users::in_directory.eq(false),
                users::created_at.eq(now),
                users::updated_at.eq(now),
            ))
            .execute(conn),
    )
}

/// Makes the user an admin, or no admin, as the provider says.
fn set_privileged(conn: &mut AnyConnection, user: DbUuid, is_admin: bool, now: DbTimestamp) -> Result<(), Error> {
    let other = users::table.find(user).filter(users::admin.ne(is_admin));
    diesel::update(other).set((users::admin.eq(is_admin), users::updated_at.eq(now))).execute(conn)?;
    Ok(())
}

//! The operations on users.

use actix_web::{
    get,
    http::StatusCode,
    patch, post,
    web::{Data, Path},
};
use common::input::Id;
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    directory::COPY,
    error::{Error, Failure},
    guard::Target,
    history::{self, Action},
    http::{Page, Query, Reply, body::OptionalBody},
    state::{AppState, Now},
};

use super::{
    queries, sync,
    wire::{ListQuery, RequestPrivileged, ResponseUser, SyncQuery},
};
use crate::{
    auth::{Privileged, SignedIn},
    club::Club,
    objects::USER,
};

fn show(conn: &mut AnyConnection, id: DbUuid, origin: &str) -> Result<Reply, Error> {
    Reply::json(&ResponseUser::new(queries::get(conn, id)?, origin))
}

/// List users
///
/// Ordered by name.
#[utoipa::path(
    tag = "users",
    operation_id = "getUsers",
    params(ListQuery),
    responses((status = 200, description = "Users", body = [ResponseUser]))
)]
#[get("")]
pub async fn list(who: SignedIn, club: Club, page: Page, query: Query<ListQuery>) -> Result<Reply, Failure> {
    who.list(page, move |conn, _, page| {
        let users = queries::list(conn, query.0.include_suspended.0, &page.bounds()?)?;
        page.rows(users, |user| (user.name.clone(), user.id), |user| Ok(ResponseUser::new(user, &club.origin)))
    })
    .await
}

/// The signed-in user
#[utoipa::path(
    tag = "users",
    operation_id = "getMe",
    responses((status = 200, description = "The caller", body = ResponseUser))
)]
#[get("/me")]
pub async fn me(who: SignedIn, club: Club) -> Result<Reply, Failure> {
    who.read(move |conn, me| show(conn, me.id, &club.origin)).await
}

/// One user
#[utoipa::path(
    tags = ["users", "additions"],
    operation_id = "getUser",
    params(("userID" = uuid::Uuid, Path)),
    responses((status = 200, description = "The user", body = ResponseUser))
)]
#[get("/{userID}")]
pub async fn get(who: SignedIn, club: Club, id: Path<Id>) -> Result<Reply, Failure> {
    who.read(move |conn, _| show(conn, (*id).into(), &club.origin)).await
}

/// Copy users and groups from the directory
///
/// Needs a privileged user. Adds and renames users, changes their states, deactivates those whom the directory no
/// longer lists, and replaces the directory's groups. A user who is no longer active loses sessions, tokens and feed.
/// Answers 503 and changes nothing if the directory cannot be read or is not configured.
#[utoipa::path(
    tag = "users",
    operation_id = "syncUsers",
    params(SyncQuery),
    responses(
        (status = 201, description = "Users and groups match the directory"),
        (status = 409, description = "The directory would take access from more than half of the active \
            members (`suspicious-directory`)")
    )
)]
#[post("/sync")]
pub async fn synchronize(
    who: Privileged,
    state: Data<AppState>,
    club: Club,
    now: Now,
    query: Query<SyncQuery>,
) -> Result<Reply, Failure> {
    // Reading the directory takes long, so the caller's rights are also checked before it.
    who.authorize().await?;
    let directory = service_kit::directory::fetch(club.directory.as_ref()).await?;
    let outcome = who.create(move |conn, _| {
        sync::apply(conn, &directory, query.0.force.0, DbTimestamp(now.0))?;
        Ok(Reply::empty(StatusCode::CREATED))
    });
    let reply = outcome.await?;
    state.copies.record_success(COPY, now.0);
    Ok(reply)
}

/// Grant or revoke the privilege of a user
///
/// Needs a privileged user. Without a body the privilege is granted.
#[utoipa::path(
    tag = "users",
    operation_id = "grantPrivilege",
    params(("userID" = uuid::Uuid, Path)),
    request_body(content = Option<RequestPrivileged>),
    responses(
        (status = 204, description = "Granted or revoked"),
        (status = 409, description = "The user is the last active privileged user (`last-privileged-user`)")
    )
)]
#[patch("/{userID}/privileged")]
pub async fn set_privileged(
    who: Privileged,
    club: Club,
    id: Path<Id>,
    body: OptionalBody<RequestPrivileged>,
) -> Result<Reply, Failure> {
    let (id, privileged) = (DbUuid::from(*id), body.0.is_none_or(|body| body.privileged));
    let origin = club.origin.clone();
    let target = Target::new(format!("user {id}"), move |conn, _| show(conn, id, &club.origin));
    let target = target.recorded(&USER, id, Action::Changed, move |conn| {
        history::fields_of(&ResponseUser::new(queries::get(conn, id)?, &origin))
    });
    who.update(target, move |conn, _| {
        queries::set_privileged(conn, id, privileged)?;
        Ok(Reply::no_content())
    })
    .await
}

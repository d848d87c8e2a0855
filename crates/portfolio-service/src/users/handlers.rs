//! The operations on users.

use actix_web::{get, patch, web::Path};
use common::input::Id;
use serde_json::Value;
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, Failure},
    guard::Target,
    history::{self, Action},
    http::{Body, Page, Query, Reply},
    state::Now,
};

use super::{
    queries::{self, Person},
    wire::{EditUserRequest, ListQuery, User, UserDetail},
};
use crate::{
    auth::{Caller, ProfileOwner, UserSelf, Visitor},
    objects::PROFILE,
};

fn show(conn: &mut AnyConnection, id: DbUuid) -> Result<Reply, Error> {
    Reply::json(&UserDetail::new(queries::get(conn, id)?)?)
}

/// The user whom an operation changes. The history records the change.
pub fn recorded(id: DbUuid) -> Target<Caller> {
    let target = Target::new(format!("user {id}"), move |conn, _| show(conn, id));
    target.recorded(&PROFILE, id, Action::Changed, move |conn| fields(conn, id))
}

/// The fields of a profile, as its owner sees them.
pub fn fields(conn: &mut AnyConnection, id: DbUuid) -> Result<Value, Error> {
    history::fields_of(&UserDetail::own(queries::get(conn, id)?)?)
}

/// List users
///
/// Ordered by name. Only active users, unless a parameter selects others.
#[utoipa::path(
    tag = "users",
    operation_id = "getUsers",
    security((), ("proxy" = []), ("session" = []), ("token" = [])),
    params(ListQuery),
    responses((status = 200, description = "Users", body = [User]))
)]
#[get("")]
pub async fn list(who: Visitor, page: Page, query: Query<ListQuery>) -> Result<Reply, Failure> {
    let selection = query.0.into_selection()?;
    who.in_one_statement()
        .list(page, move |conn, _, page| {
            let users = queries::list(conn, &selection, &page.bounds()?)?;
            page.rows(users, Person::position, |user| Ok(User::from(user)))
        })
        .await
}

/// The caller
///
/// With `check`: whether the real name is published. 404 when there is no user of the caller's sign-in name.
#[utoipa::path(
    tag = "users",
    operation_id = "getMe",
    responses(
        (status = 200, description = "The caller", body = UserDetail),
        (status = 404, description = "There is no user of the caller's sign-in name"),
    )
)]
#[get("/me")]
pub async fn me(who: ProfileOwner) -> Result<Reply, Failure> {
    who.read(move |conn, me| Reply::json(&UserDetail::own(queries::get(conn, me.id)?)?)).await
}

/// One user
#[utoipa::path(
    tag = "users",
    operation_id = "getUser",
    security((), ("proxy" = []), ("session" = []), ("token" = [])),
    params(("userId" = uuid::Uuid, Path)),
    responses((status = 200, description = "The user", body = UserDetail))
)]
#[get("/{userId}")]
pub async fn get(who: Visitor, id: Path<Id>) -> Result<Reply, Failure> {
    who.in_one_statement().read(move |conn, _| show(conn, (*id).into())).await
}

/// Change a user
///
/// For the user themself and admins. The name and the state come from the directory.
#[utoipa::path(
    tag = "users",
    operation_id = "editUser",
    params(("userId" = uuid::Uuid, Path)),
    request_body = EditUserRequest,
    responses((status = 204, description = "Changed"))
)]
#[patch("/{userId}")]
pub async fn edit(who: UserSelf, Now(now): Now, id: Path<Id>, body: Body<EditUserRequest>) -> Result<Reply, Failure> {
    let (id, change) = (DbUuid::from(*id), body.0.into_change());
    who.update(recorded(id), move |conn, _| {
        queries::edit(conn, id, &change, DbTimestamp(now)).map(|()| Reply::no_content())
    })
    .await
}

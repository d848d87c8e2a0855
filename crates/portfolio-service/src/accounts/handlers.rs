//! The operations on accounts.

use actix_web::{delete, get, http::header, patch, post, web::Path};
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
    http::{Body, Page, Reply},
    state::Now,
};

use super::{
    queries,
    wire::{AddAccountRequest, EditUserAccountRequest},
};
use crate::{
    account_type::{Info, TABLE},
    auth::{Caller, UserSelf, Visitor},
    objects::ACCOUNT,
    users::{self, Account},
};

fn show(conn: &mut AnyConnection, user: DbUuid, id: DbUuid) -> Result<Reply, Error> {
    Reply::json(&Account::new(queries::get(conn, user, id)?)?)
}

/// The account that an operation changes. All accounts of a user have the same lock.
pub fn target(user: DbUuid, id: DbUuid) -> Target<Caller> {
    Target::new(format!("user {user}"), move |conn, _| show(conn, user, id))
}

/// The same with a record of its change in the history.
pub fn recorded(user: DbUuid, id: DbUuid) -> Target<Caller> {
    target(user, id).recorded(&ACCOUNT, id, Action::Changed, move |conn| fields(conn, user, id))
}

/// The fields of an account.
pub fn fields(conn: &mut AnyConnection, user: DbUuid, id: DbUuid) -> Result<Value, Error> {
    history::fields_of(&Account::new(queries::get(conn, user, id)?)?)
}

/// Records a new account, and shows it.
pub fn show_created(
    conn: &mut AnyConnection,
    user: DbUuid,
    account: users::queries::Account,
    me: &Caller,
) -> Result<Reply, Error> {
    let (id, account) = (account.id, Account::new(account)?);
    history::created(conn, &me.author, &ACCOUNT, [(id, history::fields_of(&account)?)])?;
    Ok(Reply::created(&account)?.with(header::LOCATION, format!("/api/v1/users/{user}/accounts/{id}")))
}

/// Deletes an account, and records that.
pub fn remove(conn: &mut AnyConnection, user: DbUuid, id: DbUuid, me: &Caller) -> Result<(), Error> {
    queries::delete(conn, user, id)?;
    history::deleted(conn, &me.author, &ACCOUNT, &[id])
}

/// The types of accounts
///
/// The sites on which members have accounts, and the addresses that each type accepts.
#[utoipa::path(
    tags = ["accounts", "additions"],
    operation_id = "getAccountTypes",
    security((), ("proxy" = []), ("session" = []), ("token" = [])),
    responses((status = 200, description = "The types, ordered by number", body = [Info],
        content_type = "application/json"))
)]
#[get("/account-types")]
pub async fn types(who: Visitor, page: Page) -> Result<Reply, Failure> {
    who.respond(page.whole().rows_of_all(TABLE.iter().collect(), |info| info.value, Ok)?.into_reply())
}

/// The accounts of a user
///
/// Ordered by type.
#[utoipa::path(
    tag = "accounts",
    operation_id = "getUserAccounts",
    security((), ("proxy" = []), ("session" = []), ("token" = [])),
    params(("userId" = uuid::Uuid, Path)),
    responses((status = 200, description = "Accounts", body = [Account]))
)]
#[get("/{userId}/accounts")]
pub async fn list(who: Visitor, user: Path<Id>, page: Page) -> Result<Reply, Failure> {
    who.list(page, move |conn, _, page| {
        users::queries::check_exists(conn, (*user).into())?;
        let accounts = users::queries::accounts_of(conn, (*user).into())?;
        page.rows_of_all(accounts, |account| (account.type_, account.id), Account::new)
    })
    .await
}

/// Add an account to a user
///
/// For the user themself and admins.
#[utoipa::path(
    tag = "accounts",
    operation_id = "addUserAccount",
    params(("userId" = uuid::Uuid, Path)),
    request_body = AddAccountRequest,
    responses(
        (status = 201, description = "The new account", body = Account,
            headers(("Location" = String, description = "Its address"))),
        (status = 409, description = "The user has an account of this type (`second-account-of-type`)"),
    )
)]
#[post("/{userId}/accounts")]
pub async fn add(
    who: UserSelf,
    Now(now): Now,
    user: Path<Id>,
    body: Body<AddAccountRequest>,
) -> Result<Reply, Failure> {
    let new = body.0.into_new();
    let id = DbUuid::from(*user);
    who.update(Target::parent(format!("user {id}")), move |conn, me| {
        let account = queries::add(conn, id, &new, DbTimestamp(now))?;
        show_created(conn, id, account, me)
    })
    .await
}

/// One account of a user
#[utoipa::path(
    tag = "accounts",
    operation_id = "getUserAccount",
    security((), ("proxy" = []), ("session" = []), ("token" = [])),
    params(("userId" = uuid::Uuid, Path), ("accountId" = uuid::Uuid, Path)),
    responses((status = 200, description = "The account", body = Account))
)]
#[get("/{userId}/accounts/{accountId}")]
pub async fn get(who: Visitor, path: Path<(Id, Id)>) -> Result<Reply, Failure> {
    let (user, id) = *path;
    who.read(move |conn, _| show(conn, user.into(), id.into())).await
}

/// Change an account of a user
///
/// For the user themself and admins. The resulting type must accept the resulting address.
#[utoipa::path(
    tag = "accounts",
    operation_id = "editUserAccount",
    params(("userId" = uuid::Uuid, Path), ("accountId" = uuid::Uuid, Path)),
    request_body = EditUserAccountRequest,
    responses(
        (status = 204, description = "Changed"),
        (status = 409, description = "The user has another account of this type (`second-account-of-type`)"),
    )
)]
#[patch("/{userId}/accounts/{accountId}")]
pub async fn edit(
    who: UserSelf,
    Now(now): Now,
    path: Path<(Id, Id)>,
    body: Body<EditUserAccountRequest>,
) -> Result<Reply, Failure> {
    let (user, id, change) = (DbUuid::from(path.0), DbUuid::from(path.1), body.0.into_change());
    who.update(recorded(user, id), move |conn, _| {
        queries::edit(conn, user, id, &change, DbTimestamp(now))?;
        Ok(Reply::no_content())
    })
    .await
}

/// Delete an account of a user
///
/// For the user themself and admins.
#[utoipa::path(
    tag = "accounts",
    operation_id = "deleteUserAccount",
    params(("userId" = uuid::Uuid, Path), ("accountId" = uuid::Uuid, Path)),
    responses((status = 204, description = "Deleted"))
)]
#[delete("/{userId}/accounts/{accountId}")]
pub async fn delete(who: UserSelf, path: Path<(Id, Id)>) -> Result<Reply, Failure> {
    let (user, id) = (DbUuid::from(path.0), DbUuid::from(path.1));
    who.update(target(user, id), move |conn, me| remove(conn, user, id, me).map(|()| Reply::no_content())).await
}

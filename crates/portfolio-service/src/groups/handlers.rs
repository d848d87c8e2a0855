//! The operations on groups.

use actix_web::{get, web::Path};
use common::input::Id;
use service_kit::{
    error::Failure,
    http::{Page, Reply},
};

use super::{
    queries::{self, Membership},
    wire::{Group, GroupDetail, UserGroup},
};
use crate::{auth::Visitor, users};

/// List groups
///
/// Ordered by name.
#[utoipa::path(
    tag = "groups",
    operation_id = "getGroups",
    security((), ("proxy" = []), ("session" = []), ("token" = [])),
    responses((status = 200, description = "Groups", body = [Group]))
)]
#[get("")]
pub async fn list(who: Visitor, page: Page) -> Result<Reply, Failure> {
    who.list(page, |conn, _, page| {
        let groups = queries::list(conn, &page.bounds()?)?;
        page.rows(groups, |group| (group.name.clone(), group.id), |group| Ok(Group::from(group)))
    })
    .await
}

/// One group
#[utoipa::path(
    tag = "groups",
    operation_id = "getGroup",
    security((), ("proxy" = []), ("session" = []), ("token" = [])),
    params(("groupId" = uuid::Uuid, Path)),
    responses((status = 200, description = "The group", body = GroupDetail))
)]
#[get("/{groupId}")]
pub async fn get(who: Visitor, id: Path<Id>) -> Result<Reply, Failure> {
    who.read(move |conn, _| Reply::json(&GroupDetail::from(queries::get(conn, (*id).into())?))).await
}

/// The groups of a user
///
/// Each span in which the user is or was a member. Ordered by name and start.
#[utoipa::path(
    tag = "groups",
    operation_id = "getUserGroups",
    security((), ("proxy" = []), ("session" = []), ("token" = [])),
    params(("userId" = uuid::Uuid, Path)),
    responses((status = 200, description = "Groups", body = [UserGroup]))
)]
#[get("/{userId}/groups")]
pub async fn of_user(who: Visitor, user: Path<Id>, page: Page) -> Result<Reply, Failure> {
    who.list(page, move |conn, _, page| {
        users::queries::check_exists(conn, (*user).into())?;
        page.rows_of_all(queries::of_user(conn, (*user).into())?, Membership::position, UserGroup::new)
    })
    .await
}

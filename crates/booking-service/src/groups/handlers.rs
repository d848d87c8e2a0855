//! The operations on groups.

use actix_web::{delete, get, post, put, web::Path};
use chrono_tz::Tz;
use common::{input::Id, kept::Kept};
use serde_json::Value;
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, Failure},
    guard::Target,
    history::{self, Action, Author},
    http::{Body, ListPage, ListPart, Page, Query, Reply},
    state::Now,
};

use super::{
    changes,
    queries::{self, Group},
    wire::{DeleteQuery, OfUserQuery, RequestGroup, ResponseGroup, Uuids},
};
use crate::{
    auth::{Caller, SignedIn},
    club::Zone,
    objects::GROUP,
    users,
};

fn show(conn: &mut AnyConnection, id: DbUuid, zone: Tz) -> Result<Reply, Error> {
    Reply::json(&ResponseGroup::new(queries::get(conn, id)?, zone))
}

fn lock_name(id: DbUuid) -> String {
    format!("group {id}")
}

/// The group that an operation changes.
pub fn target(id: DbUuid, zone: Tz) -> Target<Caller> {
    Target::new(lock_name(id), move |conn, _| show(conn, id, zone)).of_forms(&GROUP, move |conn| fields(conn, id, zone))
}

/// The group that an operation restores.
pub fn parent(id: DbUuid) -> Target<Caller> {
    Target::parent(lock_name(id))
}

/// The same as [`target`], for an operation whose change the history records.
pub fn recorded(id: DbUuid, zone: Tz) -> Target<Caller> {
    target(id, zone).recorded(&GROUP, id, Action::Changed, move |conn| fields(conn, id, zone))
}

fn fields(conn: &mut AnyConnection, id: DbUuid, zone: Tz) -> Result<Value, Error> {
    history::fields_of(&ResponseGroup::new(queries::get(conn, id)?, zone))
}

/// Records a new group in the history, and shows it.
pub fn show_created(conn: &mut AnyConnection, id: DbUuid, by: &Author, zone: Tz) -> Result<ResponseGroup, Error> {
    let made = ResponseGroup::new(queries::get(conn, id)?, zone);
    history::created(conn, by, &GROUP, [(id, history::fields_of(&made)?)])?;
    Ok(made)
}

/// List groups
///
/// Groups made here, then the everyone group, then directory groups; each by name.
#[utoipa::path(
    tag = "groups",
    operation_id = "getGroups",
    responses((status = 200, description = "Groups", body = [ResponseGroup]))
)]
#[get("")]
pub async fn list(who: SignedIn, Zone(zone): Zone, page: Page) -> Result<Reply, Failure> {
    who.list(page, move |conn, _, page| {
        let position = |group: &Group| (group.row.kind, group.row.name.clone(), group.row.id);
        page.rows(queries::list(conn, &page.bounds()?)?, position, |group| Ok(ResponseGroup::new(group, zone)))
    })
    .await
}

/// Create a group
#[utoipa::path(
    tag = "groups",
    operation_id = "createGroup",
    request_body = RequestGroup,
    responses((status = 201, description = "The new group", body = ResponseGroup))
)]
#[post("")]
pub async fn create(who: SignedIn, Zone(zone): Zone, now: Now, body: Body<RequestGroup>) -> Result<Reply, Failure> {
    let group = body.0.into();
    who.create(move |conn, me| {
        let id = changes::create(conn, &group, me.id, DbTimestamp(now.0))?;
        Reply::created(&show_created(conn, id, &me.author, zone)?)
    })
    .await
}

/// One group
#[utoipa::path(
    tag = "groups",
    operation_id = "getGroup",
    params(("groupID" = uuid::Uuid, Path)),
    responses((status = 200, description = "The group", body = ResponseGroup))
)]
#[get("/{groupID}")]
pub async fn get(who: SignedIn, Zone(zone): Zone, id: Path<Id>) -> Result<Reply, Failure> {
    who.read(move |conn, _| show(conn, (*id).into(), zone)).await
}

/// Change a group
///
/// Needs an admin of the group or a privileged user. Without `members` the members stay.
#[utoipa::path(
    tag = "groups",
    operation_id = "updateGroup",
    params(("groupID" = uuid::Uuid, Path)),
    request_body = RequestGroup,
    responses((status = 200, description = "The changed group", body = ResponseGroup))
)]
#[put("/{groupID}")]
pub async fn update(
    who: SignedIn,
    Zone(zone): Zone,
    now: Now,
    id: Path<Id>,
    body: Result<Body<Kept<RequestGroup>>, Failure>,
) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    let body = match body {
        Ok(body) => body.0,
        Err(refusal) => {
            return who.refuse(refusal, move |conn, me| queries::check_found_and_may_change(conn, id, me)).await;
        }
    };
    let (group, unchecked) = (body.body.into(), body.unchecked);
    who.update(recorded(id, zone), move |conn, me| {
        changes::update(conn, id, (&group, &unchecked), me, DbTimestamp(now.0))?;
        show(conn, id, zone)
    })
    .await
}

/// Delete a group
///
/// Needs an admin of the group or a privileged user. Its past events still show it.
#[utoipa::path(
    tag = "groups",
    operation_id = "deleteGroup",
    params(("groupID" = uuid::Uuid, Path), DeleteQuery),
    responses(
        (status = 204, description = "Deleted"),
        (status = 409, description = "The group has events that have not ended (`events-to-come`); `events` lists \
            them")
    )
)]
#[delete("/{groupID}")]
pub async fn delete(
    who: SignedIn,
    Zone(zone): Zone,
    now: Now,
    id: Path<Id>,
    query: Query<DeleteQuery>,
) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.update(target(id, zone), move |conn, me| {
        changes::delete(conn, id, query.0.force.0, me, DbTimestamp(now.0))?;
        Ok(Reply::no_content())
    })
    .await
}

/// Join a group
///
/// The group must be open.
#[utoipa::path(
    tag = "groups",
    operation_id = "addMeToGroup",
    params(("groupID" = uuid::Uuid, Path)),
    responses((status = 204, description = "The caller is a member"))
)]
#[put("/{groupID}/members/me")]
pub async fn join(who: SignedIn, Zone(zone): Zone, now: Now, id: Path<Id>) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.update(recorded(id, zone), move |conn, me| {
        changes::join(conn, id, me.id, DbTimestamp(now.0))?;
        Ok(Reply::no_content())
    })
    .await
}

/// Leave a group
///
/// The group must be open.
#[utoipa::path(
    tag = "groups",
    operation_id = "deleteMeFromGroup",
    params(("groupID" = uuid::Uuid, Path)),
    responses((status = 204, description = "The caller is not a member"))
)]
#[delete("/{groupID}/members/me")]
pub async fn leave(who: SignedIn, Zone(zone): Zone, now: Now, id: Path<Id>) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.update(recorded(id, zone), move |conn, me| {
        changes::leave(conn, id, me.id, DbTimestamp(now.0))?;
        Ok(Reply::no_content())
    })
    .await
}

/// Restore a deleted group
///
/// Needs an admin of the group or a privileged user, within 30 days of its deletion. Events that were deleted with it are
/// restored one by one.
#[utoipa::path(
    tags = ["groups", "additions"],
    operation_id = "restoreGroup",
    params(("groupID" = uuid::Uuid, Path)),
    responses(
        (status = 200, description = "The group", body = ResponseGroup),
        (status = 409, description = "It is not deleted (`not-deleted`)")
    )
)]
#[post("/{groupID}/restore")]
pub async fn restore(who: SignedIn, Zone(zone): Zone, now: Now, id: Path<Id>) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.update(parent(id), move |conn, me| {
        changes::restore(conn, id, me, DbTimestamp(now.0))?;
        show(conn, id, zone)
    })
    .await
}

/// The caller's groups
///
/// In the order of the list of groups.
#[utoipa::path(
    tag = "groups",
    operation_id = "getMyGroups",
    params(OfUserQuery),
    responses((status = 200, description = "Ids of groups", body = Uuids))
)]
#[get("/me/groups")]
pub async fn mine(who: SignedIn, page: Page, query: Query<OfUserQuery>) -> Result<Reply, Failure> {
    who.list(page, move |conn, me, page| ids_of_user(conn, me.id, &query.0, page)).await
}

/// A user's groups
///
/// In the order of the list of groups.
#[utoipa::path(
    tag = "groups",
    operation_id = "getUserGroups",
    params(("userID" = uuid::Uuid, Path), OfUserQuery),
    responses((status = 200, description = "Ids of groups", body = Uuids))
)]
#[get("/{userID}/groups")]
pub async fn of_user(who: SignedIn, id: Path<Id>, page: Page, query: Query<OfUserQuery>) -> Result<Reply, Failure> {
    who.list(page, move |conn, _, page| ids_of_user(conn, (*id).into(), &query.0, page)).await
}

fn ids_of_user(
    conn: &mut AnyConnection,
    user: DbUuid,
    query: &OfUserQuery,
    page: &ListPart,
) -> Result<ListPage, Error> {
    let user = users::queries::get(conn, user)?;
    let groups = queries::of_user(conn, &user, query.relation.belongs(), query.relation.admins())?;
    page.rows_of_all(groups, queries::Position::clone, |(.., id)| Ok(id))
}

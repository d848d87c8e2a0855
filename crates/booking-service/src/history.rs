//! The history of events, rooms, groups and polls: one row for each change (contract, "History"). The guard and the code
//! that creates and deletes objects write the rows ([`service_kit::history`]).

use actix_web::{get, web::Path};
use common::input::Id;
use service_kit::{
    audit::{AsLines, AuditQuery},
    database::{AnyConnection, types::DbUuid},
    error::{Error, Failure},
    history::{self, ResponseHistory},
    http::{Page, Query, Reply},
};
use utoipa_actix_web::service_config::ServiceConfig;

use crate::{
    auth::{Caller, Privileged, SignedIn},
    club::Zone,
    events, groups, polls, rooms,
};

/// Registers the list of all changes.
pub fn routes(config: &mut ServiceConfig<'_>) {
    config.service(audit);
}

/// Registers the operations below `/events`.
pub fn routes_of_events(config: &mut ServiceConfig<'_>) {
    config.service(of_event);
}

/// Registers the operations below `/rooms`.
pub fn routes_of_rooms(config: &mut ServiceConfig<'_>) {
    config.service(of_room);
}

/// Registers the operations below `/groups`.
pub fn routes_of_groups(config: &mut ServiceConfig<'_>) {
    config.service(of_group);
}

/// Registers the operations below `/draft-events`.
pub fn routes_of_polls(config: &mut ServiceConfig<'_>) {
    config.service(of_poll);
}

// The operations

/// Checks that a caller may change an object.
type Check = fn(&mut AnyConnection, DbUuid, &Caller) -> Result<(), Error>;

async fn list(who: SignedIn, zone: Zone, page: Page, object: Id, check: Check) -> Result<Reply, Failure> {
    let object = DbUuid::from(object);
    who.list(page, move |conn, me, page| {
        check(conn, object, me)?;
        let rows = history::load(conn, object, &page.bounds()?)?;
        page.rows(rows, |row| row.id, |row| ResponseHistory::new(row, zone.0))
    })
    .await
}

/// The history of an event
///
/// Needs an administrator of the event or a privileged user, also after its deletion. The newest change first.
#[utoipa::path(
    tags = ["events", "additions"],
    operation_id = "getEventHistory",
    params(("eventID" = uuid::Uuid, Path)),
    responses((status = 200, description = "The changes", body = [ResponseHistory]))
)]
#[get("/{eventID}/history")]
async fn of_event(who: SignedIn, zone: Zone, page: Page, id: Path<Id>) -> Result<Reply, Failure> {
    list(who, zone, page, *id, events::queries::check_editor).await
}

/// The history of a room
///
/// Needs an administrator of the room or a privileged user, also after its deletion. The newest change first. A room that
/// was made for an event changes with the event, whose history has that.
#[utoipa::path(
    tags = ["rooms", "additions"],
    operation_id = "getRoomHistory",
    params(("roomID" = uuid::Uuid, Path)),
    responses((status = 200, description = "The changes", body = [ResponseHistory]))
)]
#[get("/{roomID}/history")]
async fn of_room(who: SignedIn, zone: Zone, page: Page, id: Path<Id>) -> Result<Reply, Failure> {
    list(who, zone, page, *id, rooms::queries::check_editor).await
}

/// The history of a group
///
/// Needs an admin of the group or a privileged user, also after its deletion; for a group of the directory, a privileged
/// user. The newest change first. A change by the directory has the numbers of those who were added and removed.
#[utoipa::path(
    tags = ["groups", "additions"],
    operation_id = "getGroupHistory",
    params(("groupID" = uuid::Uuid, Path)),
    responses((status = 200, description = "The changes", body = [ResponseHistory]))
)]
#[get("/{groupID}/history")]
async fn of_group(who: SignedIn, zone: Zone, page: Page, id: Path<Id>) -> Result<Reply, Failure> {
    list(who, zone, page, *id, groups::queries::check_editor).await
}

/// The history of a poll
///
/// Needs an administrator of the poll or a privileged user, also after its deletion. The newest change first.
#[utoipa::path(
    tags = ["draft-events", "additions"],
    operation_id = "getDraftEventHistory",
    params(("draftEventID" = uuid::Uuid, Path)),
    responses((status = 200, description = "The changes", body = [ResponseHistory]))
)]
#[get("/{draftEventID}/history")]
async fn of_poll(who: SignedIn, zone: Zone, page: Page, id: Path<Id>) -> Result<Reply, Failure> {
    list(who, zone, page, *id, polls::queries::check_editor).await
}

/// All changes
///
/// Needs a privileged user. The newest first. With `Accept: application/x-ndjson` each is a line.
#[utoipa::path(
    tags = ["history", "additions"],
    operation_id = "getAudit",
    params(AuditQuery),
    responses((status = 200, description = "The changes", content(
        ([ResponseHistory] = "application/json"),
        (String = "application/x-ndjson"),
    )))
)]
#[get("/audit")]
async fn audit(
    who: Privileged,
    zone: Zone,
    page: Page,
    query: Query<AuditQuery>,
    as_lines: AsLines,
) -> Result<Reply, Failure> {
    service_kit::audit::audit(who, zone.0, page, &query.0, &as_lines).await
}

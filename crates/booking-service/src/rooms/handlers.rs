//! The operations on rooms.

use std::collections::BTreeMap;

use actix_web::{HttpRequest, delete, get, http::header, post, web::Path, web::Payload};
use chrono_tz::Tz;
use common::{input::Id, problem::Violations};
use serde_json::Value;
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::{Error, Failure},
    guard::Target,
    history::{self, Action},
    http::{Body, ListPage, Page, Query, Reply, body, pagination::Load},
    state::Now,
};

use super::{
    changes,
    import::import_table,
    queries::{self, Room, Selection},
    wire::{DeleteQuery, GetQuery, ImportQuery, ListQuery, RequestRoom, ResponseRoom},
};
use crate::{
    auth::{Caller, Privileged, SignedIn},
    club::Zone,
    objects::ROOM,
    users,
};

/// The most bytes of an imported table.
const IMPORT_LIMIT: usize = 2 << 20;

fn show(conn: &mut AnyConnection, id: DbUuid, exclude: Option<DbUuid>, zone: Tz) -> Result<Reply, Error> {
    Reply::json(&ResponseRoom::new(queries::get(conn, id, exclude)?, zone))
}

fn lock_name(id: DbUuid) -> String {
    format!("room {id}")
}

/// The room that an operation changes.
pub fn target(id: DbUuid, zone: Tz) -> Target<Caller> {
    Target::new(lock_name(id), move |conn, _| show(conn, id, None, zone))
        .of_forms(&ROOM, move |conn| fields_of(queries::get(conn, id, None)?, zone))
}

/// The room that an operation restores.
pub fn parent(id: DbUuid) -> Target<Caller> {
    Target::parent(lock_name(id))
}

/// The same as [`target`], for an operation whose change the history records.
pub fn recorded(id: DbUuid, action: Action, zone: Tz) -> Target<Caller> {
    target(id, zone).recorded(&ROOM, id, action, move |conn| fields_of(queries::get(conn, id, None)?, zone))
}

/// Imports the rooms of a table, and records the new ones in the history.
pub fn import_recorded(
    conn: &mut AnyConnection,
    table: &[u8],
    zone: Tz,
    me: &Caller,
    now: DbTimestamp,
) -> Result<Vec<Room>, Error> {
    let (rooms, new) = import_table(conn, table, zone, me.id, now)?;
    let new = rooms.iter().filter(|room| new.contains(&room.row.id)).map(|room| (room.row.id, room.clone()));
    // Equal rows of the table give the same room.
    let new: BTreeMap<_, _> = new.collect();
    let new = new.into_iter().map(|(id, room)| Ok((id, fields_of(room, zone)?))).collect::<Result<Vec<_>, Error>>()?;
    history::created(conn, &me.author, &ROOM, new)?;
    Ok(rooms)
}

fn fields_of(room: Room, zone: Tz) -> Result<Value, Error> {
    history::fields_of(&ResponseRoom::new(room, zone))
}

/// List rooms
///
/// Rooms whose period overlaps the span, open-ended when one end is missing. Ordered by timeStart, place and id.
#[utoipa::path(
    tag = "rooms",
    operation_id = "getRooms",
    params(ListQuery),
    responses((status = 200, description = "Rooms", body = [ResponseRoom]))
)]
#[get("")]
pub async fn list(who: SignedIn, Zone(zone): Zone, page: Page, query: Query<ListQuery>) -> Result<Reply, Failure> {
    let (selection, exclude) = query.0.into_selection()?;
    who.list(page, move |conn, _, page| {
        let rooms = match page.load()? {
            Load::Page(bounds) => queries::load_page(conn, &selection, exclude, &bounds)?,
            Load::First(bounds) => queries::load_first(conn, &selection, exclude, &bounds)?,
            Load::Ids(bounds) => return Ok(ListPage::ids(queries::load_ids(conn, &selection, &bounds)?)),
            Load::These(ids) => queries::load(conn, &Selection::these(ids), exclude)?,
        };
        page.rows(rooms, |room: &Room| room.row.position(), |room| Ok(ResponseRoom::new(room, zone)))
    })
    .await
}

/// Create an unverified room
#[utoipa::path(
    tag = "rooms",
    operation_id = "addRooms",
    request_body = RequestRoom,
    responses((status = 201, description = "The new room", body = ResponseRoom,
        headers(("Location" = String, description = "Its address"))))
)]
#[post("")]
pub async fn create(who: SignedIn, Zone(zone): Zone, Now(now): Now, body: Body<RequestRoom>) -> Result<Reply, Failure> {
    who.create(move |conn, me| {
        let mut violations = Violations::default();
        users::queries::note_unfit_admins(conn, &body.0.admins, &[], &mut violations)?;
        violations.into_result()?;
        let room = changes::create(conn, body.0.to_new_room(), me.id, DbTimestamp(now))?;
        let location = format!("/api/rooms/{}", room.row.id);
        history::created(conn, &me.author, &ROOM, [(room.row.id, fields_of(room.clone(), zone)?)])?;
        Ok(Reply::created(&ResponseRoom::new(room, zone))?.with(header::LOCATION, location))
    })
    .await
}

/// Import verified rooms from a table
///
/// CSV (RFC 4180) with a header row and the columns Subject, Start date, End date, Start time, End time and Location, in
/// any order; dates as YYYY/MM/DD or YYYY-MM-DD and times as HH:MM or HH:MM:SS in the club's time zone; at most 1000 rows
/// and 2 MiB. Commas, tabs or semicolons separate cells, as in the header row. UTF-8, UTF-16 with a byte order mark, or
/// code page 932. Either all rows are imported or none. A row that equals an existing verified room gives that room.
#[utoipa::path(
    tag = "rooms",
    operation_id = "addAllRooms",
    params(ImportQuery),
    request_body(content = String, content_type = "text/csv",
        example = "Subject,Start date,End date,Start time,End time,Location\n\
            club,2026/04/04,2026/04/04,18:00,21:00,S516\n"),
    responses(
        (status = 200, description = "What would be imported (`dryRun`)", body = [ResponseRoom]),
        (status = 201, description = "The rooms in the order of the rows", body = [ResponseRoom]),
        (status = 409, description = "A room overlaps a verified room on the same place (`room-overlap`), or \
            events would conflict (`room-conflict`); `violations` names the rows"),
    )
)]
#[post("/all")]
pub async fn import(
    who: Privileged,
    Zone(zone): Zone,
    Now(now): Now,
    query: Query<ImportQuery>,
    req: HttpRequest,
    payload: Payload,
) -> Result<Reply, Failure> {
    let table = body::read(&req, &mut payload.into_inner(), "text/csv", IMPORT_LIMIT).await?;
    who.dry_run(query.0.dry_run.0)
        .create(move |conn, me| {
            let rooms = import_recorded(conn, &table, zone, me, DbTimestamp(now))?;
            let rooms: Vec<_> = rooms.into_iter().map(|room| ResponseRoom::new(room, zone)).collect();
            Reply::created(&rooms)
        })
        .await
}

/// One room
#[utoipa::path(
    tag = "rooms",
    operation_id = "getRoom",
    params(("roomID" = uuid::Uuid, Path), GetQuery),
    responses((status = 200, description = "The room", body = ResponseRoom))
)]
#[get("/{roomID}")]
pub async fn get(who: SignedIn, Zone(zone): Zone, id: Path<Id>, query: Query<GetQuery>) -> Result<Reply, Failure> {
    let exclude = query.0.exclude_event_id.map(Into::into);
    who.read(move |conn, _| show(conn, (*id).into(), exclude, zone)).await
}

/// Delete a room
///
/// Needs an administrator of the room or a privileged user.
#[utoipa::path(
    tag = "rooms",
    operation_id = "deleteRoom",
    params(("roomID" = uuid::Uuid, Path), DeleteQuery),
    responses(
        (status = 200, description = "The room as it was", body = ResponseRoom),
        (status = 409, description = "Events in it have not ended (`events-to-come`); `events` lists them"),
    )
)]
#[delete("/{roomID}")]
pub async fn delete(
    who: SignedIn,
    Zone(zone): Zone,
    Now(now): Now,
    id: Path<Id>,
    query: Query<DeleteQuery>,
) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.update(target(id, zone), move |conn, me| {
        let exclude = query.0.exclude_event_id.map(DbUuid::from);
        let room = changes::delete(conn, id, me, query.0.force.0, exclude, DbTimestamp(now))?;
        Reply::json(&ResponseRoom::new(room, zone))
    })
    .await
}

/// Confirm that the club may use a room
///
/// Needs a privileged user.
#[utoipa::path(
    tag = "rooms",
    operation_id = "verifyRoom",
    params(("roomID" = uuid::Uuid, Path)),
    responses(
        (status = 204, description = "Verified"),
        (status = 409, description = "Another verified room overlaps it (`room-overlap`), or events would \
            conflict (`room-conflict`)"),
    )
)]
#[post("/{roomID}/verified")]
pub async fn verify(who: Privileged, Zone(zone): Zone, Now(now): Now, id: Path<Id>) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.update(recorded(id, Action::Verified, zone), move |conn, _| {
        changes::verify(conn, id, true, zone, DbTimestamp(now)).map(|()| Reply::no_content())
    })
    .await
}

/// Withdraw the confirmation of a room
///
/// Needs a privileged user.
#[utoipa::path(
    tag = "rooms",
    operation_id = "unverifyRoom",
    params(("roomID" = uuid::Uuid, Path)),
    responses((status = 204, description = "No longer verified"))
)]
#[delete("/{roomID}/verified")]
pub async fn unverify(who: Privileged, Zone(zone): Zone, Now(now): Now, id: Path<Id>) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.update(recorded(id, Action::Unverified, zone), move |conn, _| {
        changes::verify(conn, id, false, zone, DbTimestamp(now)).map(|()| Reply::no_content())
    })
    .await
}

/// Restore a deleted room
///
/// Needs an administrator of the room or a privileged user, within 30 days of its deletion. Events that were deleted
/// with it are restored one by one.
#[utoipa::path(
    tags = ["rooms", "additions"],
    operation_id = "restoreRoom",
    params(("roomID" = uuid::Uuid, Path)),
    responses(
        (status = 200, description = "The room", body = ResponseRoom),
        (status = 409, description = "It is not deleted (`not-deleted`), or verified, and another verified room \
            overlaps it (`room-overlap`) or events would conflict (`room-conflict`)"),
    )
)]
#[post("/{roomID}/restore")]
pub async fn restore(who: SignedIn, Zone(zone): Zone, Now(now): Now, id: Path<Id>) -> Result<Reply, Failure> {
    let id = DbUuid::from(*id);
    who.update(parent(id), move |conn, me| {
        changes::restore(conn, id, me, zone, DbTimestamp(now))?;
        show(conn, id, None, zone)
    })
    .await
}

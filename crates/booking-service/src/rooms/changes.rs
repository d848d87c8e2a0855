//! Changes of rooms. Those that can create a conflict lock the place.

use chrono_tz::Tz;
use common::problem::Problem;
use diesel::prelude::*;
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    history::Author,
    with_connection,
};

use super::{
    booking,
    place::place_key,
    queries::{
        Room, Row, check_admin_or_privileged, check_editor, find_locked, find_locked_even_deleted, get, not_found,
    },
};
use crate::{
    auth::Caller,
    codes, deletion,
    period_filter::{earliest_start, is_long},
    schema::{events, room_admins, rooms},
};

/// Rows inserted by one statement, well below the limits of both databases on bound values.
const CHUNK: usize = 1000;

/// A room to be inserted.
#[derive(Debug, Clone)]
pub struct NewRoom {
    pub place: String,
    pub starts_at: DbTimestamp,
    pub ends_at: DbTimestamp,
    pub verified: bool,
    pub made_for_event: bool,
    pub admins: Vec<DbUuid>,
}

impl NewRoom {
    /// An unverified room that is not made for an event.
    pub fn new(place: String, starts_at: DbTimestamp, ends_at: DbTimestamp, admins: Vec<DbUuid>) -> Self {
        Self { place, starts_at, ends_at, verified: false, made_for_event: false, admins }
    }
}

/// Inserts rooms with new ids. Their places must be locked.
pub fn insert(conn: &mut AnyConnection, new: &[NewRoom], by: DbUuid, now: DbTimestamp) -> Result<Vec<DbUuid>, Error> {
    let new: Vec<_> = new.iter().map(|room| (DbUuid::new(), room.clone())).collect();
    insert_with_ids(conn, &new, by, now)?;
    Ok(new.into_iter().map(|(id, _)| id).collect())
}

/// Inserts rooms with these ids. Their places must be locked.
pub fn insert_with_ids(
    conn: &mut AnyConnection,
    new: &[(DbUuid, NewRoom)],
    by: impl Into<Option<DbUuid>>,
    now: DbTimestamp,
) -> Result<(), Error> {
    let by: Option<DbUuid> = by.into();
    let rows: Vec<_> = new
        .iter()
        .map(|(id, room)| {
            (
                rooms::id.eq(*id),
                rooms::place.eq(&room.place),
                rooms::place_key.eq(place_key(&room.place)),
                rooms::starts_at.eq(room.starts_at),
                rooms::ends_at.eq(room.ends_at),
                rooms::is_long.eq(is_long(room.starts_at, room.ends_at)),
                rooms::reach_from.eq(earliest_start(room.starts_at)),
                rooms::verified.eq(room.verified),
                rooms::made_for_event.eq(room.made_for_event),
                rooms::created_by.eq(by),
                rooms::created_at.eq(now),
                rooms::updated_at.eq(now),
            )
        })
        .collect();
    for rows in rows.chunks(CHUNK) {
        with_connection!(conn, c => diesel::insert_into(rooms::table).values(rows).execute(c)?);
    }
    let admins: Vec<_> = new.iter().flat_map(|(id, room)| room.admins.iter().map(|user| (*id, *user))).collect();
    insert_admins(conn, &admins)
}

fn insert_admins(conn: &mut AnyConnection, admins: &[(DbUuid, DbUuid)]) -> Result<(), Error> {
    let rows: Vec<_> =
        admins.iter().map(|(room, user)| (room_admins::room_id.eq(*room), room_admins::user_id.eq(*user))).collect();
    for rows in rows.chunks(CHUNK) {
        with_connection!(conn, c => diesel::insert_into(room_admins::table).values(rows).execute(c)?);
    }
    Ok(())
}

/// Changes place, period and administrators of an instant event's own room. Both places must be locked.
pub fn move_to(conn: &mut AnyConnection, id: DbUuid, to: &NewRoom, now: DbTimestamp) -> Result<(), Error> {
    diesel::update(rooms::table.find(id))
        .set((
            rooms::place.eq(&to.place),
            rooms::place_key.eq(place_key(&to.place)),
            rooms::starts_at.eq(to.starts_at),
            rooms::ends_at.eq(to.ends_at),
            rooms::is_long.eq(is_long(to.starts_at, to.ends_at)),
            rooms::reach_from.eq(earliest_start(to.starts_at)),
            rooms::updated_at.eq(now),
        ))
        .execute(conn)?;
    diesel::delete(room_admins::table.filter(room_admins::room_id.eq(id))).execute(conn)?;
    insert_admins(conn, &to.admins.iter().map(|user| (id, *user)).collect::<Vec<_>>())
}

/// Locks the place of a room and inserts the room.
pub fn create(conn: &mut AnyConnection, new: NewRoom, by: DbUuid, now: DbTimestamp) -> Result<Room, Error> {
    booking::lock_places(conn, vec![place_key(&new.place)])?;
    let ids = insert(conn, &[new], by, now)?;
    get(conn, ids[0], None)
}

/// Deletes a room and returns it as it was. The event `exclude` does not count as a use in the answer's free times.
///
/// # Errors
/// 404; 403 for anybody but its administrators and privileged users; 409 `events-to-come` if events in it have not
/// ended and `force` is false.
pub fn delete(
    conn: &mut AnyConnection,
    id: DbUuid,
    me: &Caller,
    force: bool,
    exclude: Option<DbUuid>,
    now: DbTimestamp,
) -> Result<Room, Error> {
    let room = find_locked(conn, id)?.ok_or_else(not_found)?;
    let room = get(conn, room.id, exclude)?;
    check_admin_or_privileged(conn, id, me)?;
    let not_ended = events::table
        .filter(events::room_id.eq(id))
        .filter(events::deleted_at.is_null())
        .filter(events::ends_at.gt(now));
    let event_ids: Vec<DbUuid> = not_ended.select(events::id).order((events::starts_at, events::id)).load(conn)?;
    if !event_ids.is_empty() && !force {
        return Err(Problem::new(codes::EVENTS_TO_COME).member("events", serde_json::json!(event_ids)).into());
    }
    deletion::delete_room(conn, id, &event_ids, &me.author, now)?;
    Ok(room)
}

/// Verifies a room, or withdraws that.
///
/// After either, the room no longer belongs to the event that it was made for: it is not deleted with the event. After
/// verification the event does not own it either, so that the event's administrators cannot move what a privileged user
/// has verified.
///
/// # Errors
/// 404; 409 when another verified room on the place overlaps it, or events would then conflict.
pub fn verify(conn: &mut AnyConnection, id: DbUuid, verified: bool, zone: Tz, now: DbTimestamp) -> Result<(), Error> {
    let room = find_locked(conn, id)?.ok_or_else(not_found)?;
    if room.verified == verified {
        return Ok(());
    }
    if verified {
        check_verifiable(conn, &room, zone)?;
        diesel::update(events::table.filter(events::room_id.eq(id))).set(events::owns_room.eq(false)).execute(conn)?;
    }
    diesel::update(rooms::table.find(id))
        .set((rooms::verified.eq(verified), rooms::made_for_event.eq(false), rooms::updated_at.eq(now)))
        .execute(conn)?;
    Ok(())
}

/// Checks that a room may be verified. Its place must be locked.
fn check_verifiable(conn: &mut AnyConnection, room: &Row, zone: Tz) -> Result<(), Error> {
    let mut others = booking::load_verified(conn, room.starts_at, room.ends_at)?;
    others.retain(|other| other.place_key == room.place_key);
    if !others.is_empty() {
        return Err(booking::room_overlap(others.into_iter().map(|other| other.id).collect()).into());
    }
    booking::refuse_conflicts_of_verified(conn, &[room.period()], zone)
}

/// Takes the deletion of a room back, not that of the events that were deleted with it.
///
/// # Errors
/// 404, also 30 days after the deletion; 403 for anybody but its administrators and privileged users; 409 `not-deleted`;
/// 409 as [`verify`] if it is verified.
pub fn restore(conn: &mut AnyConnection, id: DbUuid, me: &Caller, zone: Tz, now: DbTimestamp) -> Result<(), Error> {
    check_editor(conn, id, me)?;
    let room = find_locked_even_deleted(conn, id)?;
    deletion::check_restorable("room", room.deleted_at, now)?;
    restore_locked(conn, &room, Some(&me.author), zone, now)
}

/// Takes the deletion of a room back whose place is locked. `by` as for [`deletion::restore_room`].
///
/// # Errors
/// 409 as [`verify`] if it is verified.
pub fn restore_locked(
    conn: &mut AnyConnection,
    room: &Row,
    by: Option<&Author>,
    zone: Tz,
    now: DbTimestamp,
) -> Result<(), Error> {
    if room.verified {
        check_verifiable(conn, room, zone)?;
    }
    deletion::restore_room(conn, room.id, by, now)
}

//! Changes of rooms, under the lock of the place where they can create a conflict.

use common::problem::Problem;
use diesel::prelude::*;
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    with_connection,
};

use super::{
    booking::{self, Conflict},
    overlap,
    place::place_key,
    queries::{Room, Row, find_locked, get, is_long, not_found, reach},
};
use crate::{
    auth::Caller,
    codes,
    schema::{events, room_admins, rooms},
};

/// Rows inserted by one statement: well below the bind limits of both databases.
const CHUNK: usize = 1000;

/// A room to be made.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the columns are explained in the migrations")]
pub struct NewRoom {
    pub place: String,
    pub starts_at: DbTimestamp,
    pub ends_at: DbTimestamp,
    pub verified: bool,
    pub admins: Vec<DbUuid>,
}

/// Makes rooms; their places must have rows, which [`booking::lock_places`] sees to.
///
/// # Errors
/// When the database fails.
pub fn insert(conn: &mut AnyConnection, new: &[NewRoom], by: DbUuid, now: DbTimestamp) -> Result<Vec<DbUuid>, Error> {
    let new: Vec<_> = new.iter().map(|room| (DbUuid::new(), room.clone())).collect();
    put(conn, &new, by, now)?;
    Ok(new.into_iter().map(|(id, _)| id).collect())
}

/// The same with ids of the caller's.
///
/// # Errors
/// When the database fails.
pub fn put(conn: &mut AnyConnection, new: &[(DbUuid, NewRoom)], by: DbUuid, now: DbTimestamp) -> Result<(), Error> {
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
                rooms::reach_from.eq(reach(room.starts_at)),
                rooms::verified.eq(room.verified),
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

/// Changes place, window and administrators of a room that belongs to one event. Its place must be locked.
///
/// # Errors
/// When the database fails.
pub fn move_to(conn: &mut AnyConnection, id: DbUuid, to: &NewRoom, now: DbTimestamp) -> Result<(), Error> {
    diesel::update(rooms::table.find(id))
        .set((
            rooms::place.eq(&to.place),
            rooms::place_key.eq(place_key(&to.place)),
            rooms::starts_at.eq(to.starts_at),
            rooms::ends_at.eq(to.ends_at),
            rooms::is_long.eq(is_long(to.starts_at, to.ends_at)),
            rooms::reach_from.eq(reach(to.starts_at)),
            rooms::updated_at.eq(now),
        ))
        .execute(conn)?;
    diesel::delete(room_admins::table.filter(room_admins::room_id.eq(id))).execute(conn)?;
    insert_admins(conn, &to.admins.iter().map(|user| (id, *user)).collect::<Vec<_>>())
}

/// Marks a room as deleted.
///
/// # Errors
/// When the database fails.
pub fn soft_delete(conn: &mut AnyConnection, id: DbUuid, now: DbTimestamp) -> Result<(), Error> {
    diesel::update(rooms::table.find(id)).set((rooms::deleted_at.eq(now), rooms::updated_at.eq(now))).execute(conn)?;
    Ok(())
}

/// Makes one unverified room.
///
/// # Errors
/// When the database fails.
pub fn create(conn: &mut AnyConnection, new: NewRoom, by: DbUuid, now: DbTimestamp) -> Result<Room, Error> {
    booking::lock_places(conn, vec![place_key(&new.place)])?;
    let ids = insert(conn, &[new], by, now)?;
    get(conn, ids[0], None)
}

/// Deletes a room and returns it as it was.
///
/// # Errors
/// 404; 403 for anybody but its administrators and privileged users; 409 listing the events in it that have not ended,
/// unless they are to be deleted with it.
pub fn delete(conn: &mut AnyConnection, id: DbUuid, me: &Caller, force: bool, now: DbTimestamp) -> Result<Room, Error> {
    let room = find_locked(conn, id)?.ok_or_else(not_found)?;
    let room = get(conn, room.id, None)?;
    if !me.privileged && !room.admins.contains(&me.id) {
        return Err(Problem::forbidden("an administrator of the room, or a privileged user").into());
    }
    let to_come = || {
        events::table
            .filter(events::room_id.eq(id))
            .filter(events::deleted_at.is_null())
            .filter(events::ends_at.gt(now))
    };
    let listed: Vec<DbUuid> = to_come().select(events::id).order((events::starts_at, events::id)).load(conn)?;
    if !listed.is_empty() && !force {
        return Err(Problem::new(codes::EVENTS_TO_COME).member("events", serde_json::json!(listed)).into());
    }
    // An id in a subquery of the table that is being changed: fine on both databases.
    diesel::update(to_come())
        .set((events::deleted_at.eq(now), events::updated_at.eq(now), events::sequence.eq(events::sequence + 1)))
        .execute(conn)?;
    soft_delete(conn, id, now)?;
    Ok(room)
}

/// Confirms that the club may use a room, or takes that back.
///
/// A confirmed room no longer belongs to the event it was made for: that event's administrators may not move what a
/// privileged user has confirmed.
///
/// # Errors
/// 404; 409 when another verified room on the place overlaps it, or its events would then conflict with others.
pub fn verify(
    conn: &mut AnyConnection,
    id: DbUuid,
    verified: bool,
    zone: chrono_tz::Tz,
    now: DbTimestamp,
) -> Result<(), Error> {
    let room = find_locked(conn, id)?.ok_or_else(not_found)?;
    if room.verified == verified {
        return Ok(());
    }
    if verified {
        let others: Vec<DbUuid> = rooms::table
            .filter(rooms::place_key.eq(&room.place_key))
            .filter(rooms::verified.eq(true))
            .filter(rooms::deleted_at.is_null())
            .filter(rooms::ends_at.gt(room.starts_at))
            .filter(rooms::starts_at.lt(room.ends_at))
            .select(rooms::id)
            .order(rooms::id)
            .load(conn)?;
        if !others.is_empty() {
            return Err(Problem::new(codes::ROOM_OVERLAP).member("rooms", serde_json::json!(others)).into());
        }
        refuse_conflicts(conn, &room, zone)?;
        diesel::update(events::table.filter(events::room_id.eq(id))).set(events::owns_room.eq(false)).execute(conn)?;
    }
    diesel::update(rooms::table.find(id))
        .set((rooms::verified.eq(verified), rooms::updated_at.eq(now)))
        .execute(conn)?;
    Ok(())
}

/// Refuses to verify a room one of whose events overlaps an event elsewhere on its place.
fn refuse_conflicts(conn: &mut AnyConnection, room: &Row, zone: chrono_tz::Tz) -> Result<(), Error> {
    let found: Vec<(DbUuid, Conflict)> = events::table
        .filter(events::place_key.eq(&room.place_key))
        .filter(events::deleted_at.is_null())
        .filter(overlapping!(events, room.starts_at, room.ends_at))
        .select((events::room_id, (events::id, events::starts_at, events::ends_at, events::shared)))
        .order((events::starts_at, events::id))
        .load(conn)?;
    let (inside, elsewhere): (Vec<_>, Vec<_>) = found.into_iter().partition(|(held_in, _)| *held_in == room.id);
    let in_the_way: Vec<_> = elsewhere
        .iter()
        .map(|(_, conflict)| *conflict)
        .filter(|theirs| inside.iter().any(|(_, ours)| overlap::conflicts(&ours.usage(), &theirs.usage())))
        .collect();
    if in_the_way.is_empty() {
        return Ok(());
    }
    let uses: Vec<_> = inside.into_iter().chain(elsewhere).map(|(_, conflict)| conflict).collect();
    let free = booking::free_between(room.window(), &uses);
    Err(booking::conflict(&in_the_way, free, zone).into())
}

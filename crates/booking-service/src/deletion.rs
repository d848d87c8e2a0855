//! Deletes events and rooms. Only this module marks them as deleted, because three slices delete events: an event ends
//! by itself, with its room or with its group.
//!
//! Nothing here locks: callers hold the places of the events and rooms, and have checked that the caller may delete
//! them.

use diesel::{
    dsl::{exists, not},
    prelude::*,
};
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
};

use crate::schema::{events, rooms};

/// Ids in one statement, well below the limits of both databases on bound values.
const CHUNK: usize = 1000;

/// Marks events as deleted, and also the rooms that were made for events and that no event uses any more.
pub fn delete_events(conn: &mut AnyConnection, ids: &[DbUuid], now: DbTimestamp) -> Result<(), Error> {
    mark_events(conn, ids, now)?;
    for ids in ids.chunks(CHUNK) {
        let rooms = events::table.filter(events::id.eq_any(ids)).select(events::room_id).distinct();
        let rooms: Vec<DbUuid> = rooms.load(conn)?;
        delete_unused_rooms(conn, &rooms, now)?;
    }
    Ok(())
}

/// Marks a room as deleted, and the events in it that are given. Other events keep the deleted room.
pub fn delete_room(conn: &mut AnyConnection, id: DbUuid, events: &[DbUuid], now: DbTimestamp) -> Result<(), Error> {
    mark_events(conn, events, now)?;
    mark_rooms(conn, &[id], now)
}

/// Marks those of the rooms as deleted that were made for an event and that no event uses.
pub fn delete_unused_rooms(conn: &mut AnyConnection, ids: &[DbUuid], now: DbTimestamp) -> Result<(), Error> {
    let uses = events::table.filter(events::room_id.eq(rooms::id)).filter(events::deleted_at.is_null());
    let mut unused = Vec::new();
    for ids in ids.chunks(CHUNK) {
        let made_for_events = rooms::table.filter(rooms::id.eq_any(ids)).filter(rooms::made_for_event);
        unused.extend(made_for_events.filter(not(exists(uses))).select(rooms::id).load::<DbUuid>(conn)?);
    }
    mark_rooms(conn, &unused, now)
}

/// Marks events as deleted that are not. Their rooms stay.
pub fn mark_events(conn: &mut AnyConnection, ids: &[DbUuid], now: DbTimestamp) -> Result<(), Error> {
    for ids in ids.chunks(CHUNK) {
        diesel::update(events::table.filter(events::id.eq_any(ids)).filter(events::deleted_at.is_null()))
            .set((events::deleted_at.eq(now), events::updated_at.eq(now), events::sequence.eq(events::sequence + 1)))
            .execute(conn)?;
    }
    Ok(())
}

/// Marks rooms as deleted that are not.
pub fn mark_rooms(conn: &mut AnyConnection, ids: &[DbUuid], now: DbTimestamp) -> Result<(), Error> {
    for ids in ids.chunks(CHUNK) {
        diesel::update(rooms::table.filter(rooms::id.eq_any(ids)).filter(rooms::deleted_at.is_null()))
            .set((rooms::deleted_at.eq(now), rooms::updated_at.eq(now)))
            .execute(conn)?;
    }
    Ok(())
}

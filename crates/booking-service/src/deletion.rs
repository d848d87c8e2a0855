//! Deletes events and rooms. Only this module marks them as deleted, because three slices delete events: an event ends
//! by itself, with its room or with its group. It also takes that back.
//!
//! The history has a row for each event, and for a room that is not deleted together with the event that it was made for.
//!
//! Nothing here locks: callers hold the places of the events and rooms, and have checked that the caller may delete
//! them.

use common::problem::{Problem, code};
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
    history::{self, Author},
    retention::RESTORABLE,
};

use crate::{
    objects::{EVENT, ROOM},
    schema::{draft_events, event_series, events, groups, rooms},
};

/// Ids in one statement, well below the limits of both databases on bound values.
const CHUNK: usize = 1000;

/// Marks events as deleted, and also the rooms that were made for events and that no event uses any more.
pub fn delete_events(conn: &mut AnyConnection, ids: &[DbUuid], by: &Author, now: DbTimestamp) -> Result<(), Error> {
    mark_events(conn, ids, now)?;
    history::deleted(conn, by, &EVENT, ids)?;
    for ids in ids.chunks(CHUNK) {
        let rooms = events::table.filter(events::id.eq_any(ids)).select(events::room_id).distinct();
        let rooms: Vec<DbUuid> = rooms.load(conn)?;
        delete_unused_rooms(conn, &rooms, now)?;
    }
    Ok(())
}

/// Marks a room as deleted, and the events in it that are given. Other events keep the deleted room.
pub fn delete_room(
    conn: &mut AnyConnection,
    id: DbUuid,
    events: &[DbUuid],
    by: &Author,
    now: DbTimestamp,
) -> Result<(), Error> {
    mark_events(conn, events, now)?;
    history::deleted(conn, by, &EVENT, events)?;
    mark_rooms(conn, &[id], now)?;
    history::deleted(conn, by, &ROOM, &[id])
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

/// Checks that an object can be restored.
///
/// # Errors
/// 409 `not-deleted`; 404 after [`RESTORABLE`].
pub fn check_restorable(what: &str, deleted_at: Option<DbTimestamp>, now: DbTimestamp) -> Result<(), Error> {
    match deleted_at {
        None => Err(Problem::new(code::NOT_DELETED).into()),
        Some(at) if at.plus(RESTORABLE) <= *now => Err(Problem::not_found(what).into()),
        Some(_) => Ok(()),
    }
}

/// Takes the deletion of an event back.
pub fn restore_event(conn: &mut AnyConnection, id: DbUuid, by: &Author, now: DbTimestamp) -> Result<(), Error> {
    diesel::update(events::table.find(id))
        .set((
            events::deleted_at.eq(None::<DbTimestamp>),
            events::deleted_by_until.eq(false),
            events::updated_at.eq(now),
            events::sequence.eq(events::sequence + 1),
        ))
        .execute(conn)?;
    history::restored(conn, by, &EVENT, id)
}

/// Takes the deletion of a room back. The history has a row for it unless it comes back with the event that it was made
/// for.
pub fn restore_room(conn: &mut AnyConnection, id: DbUuid, by: Option<&Author>, now: DbTimestamp) -> Result<(), Error> {
    diesel::update(rooms::table.find(id))
        .set((rooms::deleted_at.eq(None::<DbTimestamp>), rooms::updated_at.eq(now)))
        .execute(conn)?;
    by.map_or(Ok(()), |by| history::restored(conn, by, &ROOM, id))
}

/// Removes polls, events, rooms and groups that can no longer be restored and that nothing refers to, at most `limit` of
/// each, and returns how many.
pub fn purge(conn: &mut AnyConnection, now: DbTimestamp, limit: i64) -> Result<usize, Error> {
    let oldest = DbTimestamp(now.plus(-RESTORABLE));
    macro_rules! old {
        ($table:ident) => {
            $table::table
                .filter($table::deleted_at.le(oldest))
                .order($table::deleted_at)
                .select($table::id)
                .limit(limit)
        };
    }
    let polls: Vec<DbUuid> = old!(draft_events).load(conn)?;
    let mut removed = diesel::delete(draft_events::table.filter(draft_events::id.eq_any(polls))).execute(conn)?;
    let of_polls = draft_events::table.filter(draft_events::event_id.eq(events::id.nullable()));
    let old_events: Vec<DbUuid> = old!(events).filter(not(exists(of_polls))).load(conn)?;
    removed += diesel::delete(events::table.filter(events::id.eq_any(old_events))).execute(conn)?;
    let in_room = events::table.filter(events::room_id.eq(rooms::id));
    let of_series = events::table.filter(events::series_id.eq(event_series::id.nullable()));
    let old_series: Vec<DbUuid> =
        event_series::table.filter(not(exists(of_series))).select(event_series::id).limit(limit).load(conn)?;
    removed += diesel::delete(event_series::table.filter(event_series::id.eq_any(old_series))).execute(conn)?;
    let old_rooms: Vec<DbUuid> = old!(rooms).filter(not(exists(in_room))).load(conn)?;
    removed += diesel::delete(rooms::table.filter(rooms::id.eq_any(old_rooms))).execute(conn)?;
    let of_group = events::table.filter(events::group_id.eq(groups::id));
    let old_groups: Vec<DbUuid> = old!(groups).filter(not(exists(of_group))).load(conn)?;
    removed += diesel::delete(groups::table.filter(groups::id.eq_any(old_groups))).execute(conn)?;
    Ok(removed)
}

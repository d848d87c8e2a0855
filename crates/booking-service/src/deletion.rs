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
use serde_json::{Value, json};
use service_kit::{
    database::{
        AnyConnection, PageBounds,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    history::{self, Action, Author, Changes, Entry},
    removal::Removal,
    retention::RESTORABLE,
};

use crate::{
    objects::{EVENT, ROOM, SERIES},
    schema::{draft_events, event_series, events, groups, rooms},
};

/// Ids in one statement, well below the limits of both databases on bound values.
const CHUNK: usize = 1000;

/// The most rows of the history of a series in which an operation looks for what they left.
pub const LATEST: i64 = 1000;

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

/// Takes the deletion of an event back. If its series has removed it, the history says that the series has it again.
pub fn restore_event(conn: &mut AnyConnection, id: DbUuid, by: &Author, now: DbTimestamp) -> Result<(), Error> {
    diesel::update(events::table.find(id))
        .set((
            events::deleted_at.eq(None::<DbTimestamp>),
            events::deleted_by_until.eq(false),
            events::updated_at.eq(now),
            events::sequence.eq(events::sequence + 1),
        ))
        .execute(conn)?;
    history::restored(conn, by, &EVENT, id)?;
    let series = events::table.find(id).select(events::series_id).first::<Option<DbUuid>>(conn)?;
    let Some(series) = series else { return Ok(()) };
    let rows = history::load(conn, series, &PageBounds { after: None, rows: LATEST })?;
    let has = |list: &Value| list.as_array().is_some_and(|list| list.contains(&json!(id)));
    let removed = rows.iter().find_map(|row| {
        let changes: Changes = serde_json::from_str(&row.changes).ok()?;
        let events = changes.get("events")?;
        (has(&events["added"]) || has(&events["removed"])).then(|| has(&events["removed"]))
    });
    if removed != Some(true) {
        return Ok(());
    }
    let changes = Changes::from_iter([("events".to_owned(), json!({"added": [id], "removed": []}))]);
    history::record(conn, &by.uncounted(), &[Entry { kind: &SERIES, object: series, action: Action::Changed, changes }])
}

/// Takes the deletion of a room back. The history has a row for it unless it comes back with the event that it was made
/// for.
pub fn restore_room(conn: &mut AnyConnection, id: DbUuid, by: Option<&Author>, now: DbTimestamp) -> Result<(), Error> {
    diesel::update(rooms::table.find(id))
        .set((rooms::deleted_at.eq(None::<DbTimestamp>), rooms::updated_at.eq(now)))
        .execute(conn)?;
    by.map_or(Ok(()), |by| history::restored(conn, by, &ROOM, id))
}

/// The removal of a kind: which of its objects nothing refers to, and how they are removed.
macro_rules! removal {
    ($table:ident, $unused:expr, $remove:expr) => {
        Removal {
            deleted: |conn, oldest, (at, id), limit| {
                let deleted = $table::table
                    .filter($table::deleted_at.le(oldest).and($table::deleted_at.ge(at)))
                    .filter($table::deleted_at.gt(at).or($table::id.gt(id)))
                    .order(($table::deleted_at, $table::id))
                    .select(($table::deleted_at.assume_not_null(), $table::id))
                    .limit(limit);
                Ok(deleted.load(conn)?)
            },
            unused: |conn, ids| {
                let deleted = $table::table.filter($table::id.eq_any(ids)).filter($table::deleted_at.is_not_null());
                Ok(deleted.filter($unused).select($table::id).load(conn)?)
            },
            remove: $remove,
        }
    };
    ($table:ident, $unused:expr) => {
        removal!($table, $unused, |conn, ids| {
            diesel::delete($table::table.filter($table::id.eq_any(ids))).execute(conn)?;
            Ok(())
        })
    };
}

/// Removes polls, events, rooms and groups that nothing refers to, in this order: a past event keeps its deleted room and
/// group.
pub const REMOVALS: &[Removal] = &[
    removal!(draft_events, draft_events::id.is_not_null()),
    removal!(
        events,
        not(exists(draft_events::table.filter(draft_events::event_id.eq(events::id.nullable())))),
        remove_events
    ),
    removal!(rooms, not(exists(events::table.filter(events::room_id.eq(rooms::id))))),
    removal!(groups, not(exists(events::table.filter(events::group_id.eq(groups::id))))),
];

/// Removes events, and the series that have no others.
fn remove_events(conn: &mut AnyConnection, ids: &[DbUuid]) -> Result<(), Error> {
    let of_series = events::table.filter(events::id.eq_any(ids)).filter(events::series_id.is_not_null());
    let series: Vec<Option<DbUuid>> = of_series.select(events::series_id).distinct().load(conn)?;
    diesel::delete(events::table.filter(events::id.eq_any(ids))).execute(conn)?;
    let series: Vec<DbUuid> = series.into_iter().flatten().collect();
    let of_series = events::table.filter(events::series_id.eq(event_series::id.nullable()));
    let empty = event_series::table.filter(event_series::id.eq_any(series)).filter(not(exists(of_series)));
    let empty: Vec<DbUuid> = empty.select(event_series::id).load(conn)?;
    diesel::delete(event_series::table.filter(event_series::id.eq_any(empty))).execute(conn)?;
    Ok(())
}

//! Locks series, and deletes them.

use std::collections::BTreeSet;

use chrono::NaiveDate;
use chrono_tz::Tz;
use common::{input::IdSet, problem::Problem};
use diesel::prelude::*;
use service_kit::{
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    guard::lock_targets,
    history::Action,
    with_connection,
};

use super::{
    queries::{self, Row, check_found_and_may_change, check_may_change, find},
    target::{lock_events, record_change},
};
use crate::{
    auth::Caller,
    deletion,
    events::{lock_name, queries::Event, restoration, several},
    groups,
    rooms::{booking::lock_places, place::place_key},
    schema::{event_series, event_series_admins, skipped_occurrences},
};

/// The day of an instant.
pub fn day(at: DbTimestamp, zone: Tz) -> NaiveDate {
    at.utc().with_timezone(&zone).date_naive()
}

/// What a change of a series locks besides what its events have.
#[derive(Debug, Default)]
pub struct Also<'a> {
    /// A place.
    pub place: Option<&'a str>,
    /// A group.
    pub group: Option<DbUuid>,
}

/// Locks the events of a series, their groups and their places, and reads them again. The caller may change them.
///
/// # Errors
/// 404; 403; [`Error::Stale`] if an event has changed its group or place meanwhile.
pub fn lock(conn: &mut AnyConnection, id: DbUuid, also: &Also<'_>, me: &Caller) -> Result<(Row, Vec<Event>), Error> {
    let row = find(conn, id)?;
    lock_events(conn, id)?;
    let before = several::of_series(conn, id)?;
    check_may_change(conn, id, me)?;
    for group in before.iter().map(|event| event.row.group_id).chain(also.group).collect::<BTreeSet<_>>() {
        groups::queries::lock_against_deletion(conn, group)?;
    }
    let places = before.iter().map(|event| event.row.place_key.clone()).chain(also.place.map(place_key));
    let places: BTreeSet<_> = places.collect();
    lock_places(conn, places.into_iter().collect())?;
    let events = several::of_series(conn, id)?;
    check_may_change(conn, id, me)?;
    let locked = |event: &Event| {
        let row = &event.row;
        (row.id, row.room_id, row.place_key.clone(), row.owns_room, row.group_id)
    };
    if !events.iter().map(locked).eq(before.iter().map(locked)) {
        return Err(Error::Stale);
    }
    Ok((row, events))
}

/// Makes users the administrators of a series, and those alone.
pub fn set_admins(conn: &mut AnyConnection, id: DbUuid, admins: &IdSet<1>) -> Result<(), Error> {
    let present = event_series_admins::table.filter(event_series_admins::series_id.eq(id));
    diesel::delete(present).execute(conn)?;
    let row = |(_, user)| (event_series_admins::series_id.eq(id), event_series_admins::user_id.eq(DbUuid(user)));
    let rows: Vec<_> = admins.iter().map(row).collect();
    for rows in rows.chunks(1000) {
        with_connection!(conn, c => diesel::insert_into(event_series_admins::table).values(rows).execute(c)?);
    }
    Ok(())
}

/// Sets the time of the last change of a series.
pub fn touch(conn: &mut AnyConnection, id: DbUuid, now: DbTimestamp) -> Result<(), Error> {
    diesel::update(event_series::table.find(id)).set(event_series::updated_at.eq(now)).execute(conn)?;
    Ok(())
}

/// Forgets the skipped dates that begin at a time or later.
pub fn forget_skipped(conn: &mut AnyConnection, id: DbUuid, from: DbTimestamp) -> Result<usize, Error> {
    let skipped = skipped_occurrences::table.filter(skipped_occurrences::series_id.eq(id));
    Ok(diesel::delete(skipped.filter(skipped_occurrences::starts_at.ge(from))).execute(conn)?)
}

/// Deletes the events of a series that begin at a time or later, and records it in the history.
///
/// # Errors
/// 404; 403 for anybody but the administrators of the series and privileged users.
pub fn delete(
    conn: &mut AnyConnection,
    id: DbUuid,
    from: DbTimestamp,
    me: &Caller,
    zone: Tz,
    now: DbTimestamp,
) -> Result<(), Error> {
    let (_, events) = lock(conn, id, &Also::default(), me)?;
    let before = queries::get(conn, id)?;
    let ids: Vec<_> = events.iter().filter(|event| event.row.starts_at >= from).map(|event| event.row.id).collect();
    deletion::delete_events(conn, &ids, &me.author, now)?;
    let forgotten = forget_skipped(conn, id, from)?;
    if ids.is_empty() && forgotten == 0 {
        return Ok(());
    }
    let after = queries::get(conn, id)?;
    record_change(conn, Action::Deleted, (&before, &after), &[], &me.author, zone)?;
    touch(conn, id, now)
}

/// Takes the deletion of events of a series back: of those that were deleted together at a time, else of those that were
/// deleted last.
///
/// # Errors
/// 404, also if there are none; 403 for anybody but the administrators of the series and privileged users; those of the
/// restoration of each event.
pub fn restore(
    conn: &mut AnyConnection,
    id: DbUuid,
    at: Option<DbTimestamp>,
    me: &Caller,
    zone: Tz,
    now: DbTimestamp,
) -> Result<(), Error> {
    check_found_and_may_change(conn, id, me)?;
    let mut events = queries::restorable(conn, id, now)?;
    let at = at.or(events.first().and_then(|event| event.deleted_at));
    events.retain(|event| event.deleted_at == at);
    if events.is_empty() {
        return Err(Problem::not_found("deleted event in the series").into());
    }
    // In the order of all transactions, before any of them is restored.
    lock_targets(conn, events.iter().map(|event| lock_name(event.id)).collect())?;
    for group in events.iter().map(|event| event.group_id).collect::<BTreeSet<_>>() {
        groups::queries::lock_against_deletion(conn, group)?;
    }
    lock_places(conn, events.iter().map(|event| event.place_key.clone()).collect())?;
    for event in &events {
        restoration::restore(conn, event.id, None, me, zone, now)?;
    }
    touch(conn, id, now)
}

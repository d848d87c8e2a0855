//! Writes the copy of the events.

use std::collections::{HashMap, HashSet};

use diesel::{OptionalExtension, prelude::*};
use service_kit::{
    copies::is_suspicious,
    database::{
        AnyConnection,
        types::{DbTimestamp, DbUuid},
    },
    error::Error,
    with_connection,
};

use crate::{
    booking::{BookingEvent, EventChange},
    schema::{copies, event_hosts, events},
};

/// `copies.source` of the events.
pub const SOURCE: &str = "events";

/// How many events an update of the copy changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChangeCounts {
    /// New or different events.
    pub written: usize,
    /// Deleted events.
    pub deleted: usize,
}

/// Makes the copies of these events equal to the events of the booking-service. Levels do not change.
pub fn update(conn: &mut AnyConnection, changes: &[EventChange], now: DbTimestamp) -> Result<ChangeCounts, Error> {
    let mut copies = load(conn, changes)?;
    let mut outdated = Vec::new();
    let different: Vec<&BookingEvent> = changes
        .iter()
        .filter_map(|change| change.event.as_ref())
        .filter(|event| match copies.remove(&event.id) {
            Some(copy) if copy == **event => false,
            Some(_) => {
                outdated.push(event.id);
                true
            }
            None => true,
        })
        .collect();
    // The events of the remaining copies are deleted.
    let deleted = copies.len();
    outdated.extend(copies.into_keys());
    delete(conn, &outdated)?;
    insert(conn, &different, now)?;
    Ok(ChangeCounts { written: different.len(), deleted })
}

/// Why copies are not deleted: another replica dropped the copy during the round.
pub const DROPPED: &str = "the copy was dropped meanwhile";

/// Why copies are not deleted: the list lacks more than half of them.
pub const SUSPICIOUS: &str =
    "the booking-service lacks most of the events of the copy; they are deleted if it lacks them the next time as well";

/// Deletes the copies of all other events and returns their number, or the reason why they are not deleted. `force`
/// deletes them also when they are most of the copy.
pub fn delete_others(
    conn: &mut AnyConnection,
    ids: &HashSet<DbUuid>,
    force: bool,
) -> Result<Result<usize, &'static str>, Error> {
    let copies: Vec<DbUuid> = events::table.select(events::id).load(conn)?;
    let (present, others): (Vec<_>, Vec<_>) = copies.into_iter().partition(|copy| ids.contains(copy));
    if present.len() < ids.len() {
        return Ok(Err(DROPPED));
    }
    if !force && is_suspicious(present.len() + others.len(), others.len()) {
        return Ok(Err(SUSPICIOUS));
    }
    delete(conn, &others)?;
    Ok(Ok(others.len()))
}

fn delete(conn: &mut AnyConnection, ids: &[DbUuid]) -> Result<(), Error> {
    for ids in ids.chunks(1000) {
        // Deletes their hosts as well.
        diesel::delete(events::table.filter(events::id.eq_any(ids))).execute(conn)?;
    }
    Ok(())
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = events)]
struct Row {
    id: DbUuid,
    name: String,
    description: String,
    place: String,
    since: DbTimestamp,
    until: DbTimestamp,
}

fn load(conn: &mut AnyConnection, changes: &[EventChange]) -> Result<HashMap<DbUuid, BookingEvent>, Error> {
    let ids: Vec<DbUuid> = changes.iter().map(|change| change.id).collect();
    let mut copies = HashMap::new();
    for ids in ids.chunks(1000) {
        let rows = events::table.filter(events::id.eq_any(ids)).select(Row::as_select()).load(conn)?;
        let hosts = event_hosts::table
            .filter(event_hosts::event_id.eq_any(ids))
            .order((event_hosts::event_id, event_hosts::user_id))
            .load(conn)?;
        copies.extend(copies_of(rows, hosts));
    }
    Ok(copies)
}

fn copies_of(rows: Vec<Row>, hosts: Vec<(DbUuid, DbUuid)>) -> HashMap<DbUuid, BookingEvent> {
    let copy = |Row { id, name, description, place, since, until }: Row| {
        (id, BookingEvent { id, name, description, place, since, until, hosts: Vec::new() })
    };
    let mut copies: HashMap<_, _> = rows.into_iter().map(copy).collect();
    for (event, user) in hosts {
        if let Some(copy) = copies.get_mut(&event) {
            copy.hosts.push(user);
        }
    }
    copies
}

fn insert(conn: &mut AnyConnection, new: &[&BookingEvent], now: DbTimestamp) -> Result<(), Error> {
    for new in new.chunks(1000) {
        let row = |event: &&BookingEvent| {
            (
                events::id.eq(event.id),
                events::name.eq(event.name.clone()),
                events::description.eq(event.description.clone()),
                events::place.eq(event.place.clone()),
                events::since.eq(event.since),
                events::until.eq(event.until),
                events::updated_at.eq(now),
            )
        };
        let rows: Vec<_> = new.iter().map(row).collect();
        with_connection!(conn, c => diesel::insert_into(events::table).values(rows).execute(c)?);
    }
    let hosts = new.iter().flat_map(|event| event.hosts.iter().map(move |user| (event.id, *user)));
    let rows: Vec<_> =
        hosts.map(|(event, user)| (event_hosts::event_id.eq(event), event_hosts::user_id.eq(user))).collect();
    for rows in rows.chunks(1000) {
        with_connection!(conn, c => diesel::insert_into(event_hosts::table).values(rows).execute(c)?);
    }
    Ok(())
}

/// Deletes the copy. Levels stay.
pub fn drop_copy(conn: &mut AnyConnection) -> Result<(), Error> {
    // Deletes their hosts as well.
    diesel::delete(events::table).execute(conn)?;
    diesel::delete(copies::table.find(SOURCE)).execute(conn)?;
    Ok(())
}

/// Stores the time of the last update of the copy.
pub fn record_copy(conn: &mut AnyConnection, now: DbTimestamp) -> Result<(), Error> {
    let row = (copies::source.eq(SOURCE), copies::copied_at.eq(now));
    with_connection!(conn, c => diesel::insert_into(copies::table)
        .values(row)
        .on_conflict(copies::source)
        .do_update()
        .set(copies::copied_at.eq(now))
        .execute(c)?);
    Ok(())
}

/// The time of the last update of the copy by any replica. `None` when there is no copy.
pub fn copied_at(conn: &mut AnyConnection) -> Result<Option<DbTimestamp>, Error> {
    Ok(copies::table.find(SOURCE).select(copies::copied_at).first(conn).optional()?)
}
